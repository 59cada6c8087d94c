#pragma once
#include <cstddef>
#include <filesystem>

namespace saccade {

/// A mapped file that becomes shorter, or whose disk or server is gone, cannot be read any more, which the system says by SIGBUS. From the
/// first call on that ends the program with exit code 3 and a line that names the file; what is in no map ends it as it would have.
void watch_map(const void* begin, size_t size, const std::filesystem::path& file);
void forget_map(const void* begin);

}  // namespace saccade
