#pragma once
#include <cstdint>
#include <string>

namespace saccade {

/// Size of the vocabulary that a tokenizer setting stands for ("bytes", "bpe:4096", a file), read from its name or file
/// without a corpus. Throws UsageError, DataError.
int64_t vocabulary_of(const std::string& spec);

/// Rows of the embedding and logits: the tokenizer's vocabulary, up to a multiple (data.vocabulary_multiple).
inline int64_t padded_vocabulary(int64_t vocabulary, int64_t multiple) { return (vocabulary + multiple - 1) / multiple * multiple; }

}  // namespace saccade
