#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace saccade {

/// A file's bytes in order, decompressed when its name ends in .gz (several members) or .zst (several frames).
/// Damaged data is a DataError that names the file and how far it could be read; so is what is no regular file.
class ByteStream {
 public:
  static std::unique_ptr<ByteStream> open(const std::filesystem::path& path);
  virtual ~ByteStream() = default;
  /// Appends some bytes; false at the end.
  virtual bool read(std::string& to) = 0;
  /// Bytes of the file itself consumed so far, for progress.
  virtual int64_t consumed() const = 0;
};

/// The whole of a small file; throws DataError when there is more than `limit`.
std::string read_all(const std::filesystem::path& path, int64_t limit);

}  // namespace saccade
