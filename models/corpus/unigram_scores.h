#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace saccade {

/// A decimal number of JSON as Hugging Face's tokenizers read it (serde_json without its feature float_roundtrip): its digits as an integer
/// of at most 64 bits, what does not fit left out, rounded to a double, times or over a power of ten, rounded again. That is up to some
/// units in the last place from the nearest double, and decides between segmentations of (nearly) equal scores.
double serde_number(std::string_view decimal);

/// The numbers in the entries of /model/vocab of a tokenizer.json (valid JSON), in order.
std::vector<double> unigram_scores(const std::string& file);

}  // namespace saccade
