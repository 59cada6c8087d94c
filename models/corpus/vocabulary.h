#pragma once
#include <cstdint>
#include <string>

namespace saccade {

/// Size of the vocabulary that a tokenizer setting stands for ("bytes", "bpe:4096", a .model), read from its name or file
/// without a corpus. Throws UsageError, DataError.
int64_t vocabulary_of(const std::string& spec);

}  // namespace saccade
