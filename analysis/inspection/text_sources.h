#pragma once
#include <string>
#include <vector>

#include "analysis/runs/run_records.h"
#include "models/corpus/tokenizer.h"

namespace saccade {

/// An answer that is known: the query that predicts its first token, where the same tokens stand before, and how many they are. The
/// next ones follow: query + i is to predict what stands at source + i.
struct KnownAnswer {
  int64_t query = 0, source = 0, size = 0;
  bool follows = true;  ///< the answer stands behind the query in the text; of tasks on symbols it may not
  bool operator==(const KnownAnswer&) const = default;
};

/// Text to inspect, in tokens.
struct InspectedText {
  std::string title;  ///< "typed text", "notes.txt", "task-copy 3", "prose, sample 0"
  std::vector<int32_t> tokens;
  std::vector<KnownAnswer> answers = {};
  bool cut = false;          ///< its end was left out
  int64_t left_out = 0;      ///< tokens of its beginning that were
  int64_t lost_answers = 0;  ///< known answers whose place was among them
  int64_t query = -1;        ///< to look at first; −1: none before others
  AskedTokens asked = {};
};

/// Most bytes of text that are taken from a file or a request.
inline constexpr int64_t kMostTextBytes = int64_t{1} << 20;

/// The token that holds each byte of a text, and the number of tokens for what lies behind it.
class TokenPlaces {
 public:
  TokenPlaces(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens);
  int64_t of_byte(int64_t byte) const;

 private:
  std::vector<int64_t> bounds_;  ///< where each token begins, and where the last one ends
};

/// At most `most` tokens of a text. Throws DataError for one without tokens.
InspectedText typed_text(const Tokenizer& tokenizer, const std::string& text, int64_t most);
/// The beginning of a regular file. Throws DataError, naming it.
InspectedText text_of_file(const Tokenizer& tokenizer, const std::string& path, int64_t most);

/// Document `index` of a generated task (models/corpus/tasks.h).
struct TaskText {
  std::string task = "task-copy";
  int64_t length = 256;  ///< bytes, at most
  uint64_t seed = 1, index = 0;
};
/// With its answers. Throws UsageError for another task or a length that it does not have.
InspectedText task_text(const Tokenizer& tokenizer, const TaskText& task, int64_t most);

}  // namespace saccade
