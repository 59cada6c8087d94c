#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/corpus/piece_model.h"
#include "models/corpus/text_steps.h"
#include "models/corpus/tokenizer.h"

namespace saccade {

/// Everything that a tokenizer of the files of Hugging Face or tiktoken does with text, in this order: added tokens, normalization, added
/// tokens that are looked for in normalized text, cutting, and the model of each piece.
struct PieceTokenizerParts {
  std::string name, content, hash;
  AddedTokens added, added_normalized;
  std::vector<Normalization> normalizations;
  std::vector<SplitStep> steps;
  std::unique_ptr<PieceModel> model;
  std::vector<std::string> token_bytes;  ///< what each token decodes to
  int32_t end_of_text = -1;
  int32_t begin_of_text = -1;  ///< -1: texts begin with nothing of their own
  bool adds_space = false;     ///< before the first word; decoding takes one away
};

std::unique_ptr<Tokenizer> make_piece_tokenizer(PieceTokenizerParts parts);

/// Numbers of tokens are below this, so that a file of some bytes asks for no more memory.
constexpr int64_t kMostTokens = 1 << 21;

/// A tokenizer.json. Throws DataError "NAME: …", of one line, for what is damaged, and names what of it is not read.
std::unique_ptr<Tokenizer> parse_tokenizer_json(const std::string& content, const std::string& name);

/// GPT-2's pair of files as one tokenizer.json. Throws DataError "NAME: …".
std::string join_vocabulary_and_merges(const std::string& vocabulary, const std::string& merges, const std::string& name);

/// A rank file of tiktoken. Its name says how it cuts text and what ends a text: gpt2, r50k_base, p50k_base, cl100k_base or o200k_base,
/// with or without ".tiktoken". Throws DataError "NAME: …", of one line.
std::unique_ptr<Tokenizer> parse_rank_file(const std::string& content, const std::string& name);
/// Whether the first line is a token in base64 and its rank.
bool is_rank_file(std::string_view content);

}  // namespace saccade
