#pragma once
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "analysis/tasks/task_items.h"
#include "models/corpus/tokenizer.h"
#include "models/evaluation/evaluation_pass.h"

namespace saccade {

/// What stands before a request whose context is empty, or before every request.
enum class Prefix {
  none,         ///< Tokenizer::begin_of_text() where the context is empty, nothing else
  begin,        ///< always begin_of_text()
  end_of_text,  ///< always end_of_text()
};
/// none, begin or end_of_text.
const char* to_string(Prefix prefix);
/// Throws UsageError for another name.
Prefix parse_prefix(const std::string& name);
/// Puts in front of a context's tokens what `prefix` says.
void add_prefix(const Tokenizer& tokenizer, Prefix prefix, bool context_is_empty, std::vector<int32_t>& tokens);

/// A request in tokens: the last `scored` of them are the continuation's.
struct EncodedRequest {
  std::vector<int32_t> tokens;
  int64_t scored = 0;
  bool cut = false;   ///< its beginning was cut off
  int64_t item = -1;  ///< requests of one item may have a common context; −1: of none
};
/// White space at the end of the context moves to the front of the continuation; both are encoded as one text, and the continuation's
/// tokens are those behind the context's own (EleutherAI's evaluation harness, _encode_pair). At most `longest` + 1 tokens are kept, the
/// last ones, for the model reads all but the last; 0: all. Throws DataError for a continuation without a token.
EncodedRequest encode_request(const Tokenizer& tokenizer, const TaskRequest& request, Prefix prefix, int64_t longest);

/// Which requests may be read side by side.
enum class Batching {
  padded,  ///< of any lengths, padded on the right: what follows is not seen
  equal,   ///< only of equal lengths: the model looks ahead (Avey's ranker reads the whole split)
};
struct ScoredRequest {
  size_t request = 0;
  double log_likelihood = 0;  ///< Σ ln p of the continuation's tokens, log-softmax in float32, summed in double
  bool greedy = false;        ///< it is what greedy decoding would write (every token the first of the likeliest), where that was asked
};
struct ScoringOptions {
  Batching batching = Batching::padded;
  bool greedy = false;          ///< say ScoredRequest::greedy, too
  bool shared_contexts = true;  ///< what the requests of an item begin with is read once, where the model decodes
};
/// Scores requests a batch after another; `batch` hears of each, and ends the work by returning false. First items whose requests have a
/// common context, which is read once: its state is kept, and each continuation goes on from a copy. Then the others, the longest first.
/// Which requests share a batch, and whether a context is read once, does not change scores but by rounding. With Batching::equal nothing
/// is shared: what the model looks ahead at belongs to one choice.
void score_requests(EvaluationPass& pass, std::span<const EncodedRequest> requests, std::span<const size_t> which,
                    const ScoringOptions& options, const std::function<bool(const std::vector<ScoredRequest>&)>& batch);

/// Characters of valid UTF-8 text, as Python counts them.
int64_t characters(const std::string& text);

struct ItemScore {
  std::vector<double> log_likelihoods;                   ///< of each choice
  size_t chosen = 0, chosen_norm = 0, chosen_bytes = 0;  ///< by acc, acc_norm, acc_bytes; ties go to the first
  size_t gold = 0;
  std::string group;
  std::vector<bool> greedy = {};  ///< of each choice, where it was asked for
  // Of each choice; results of earlier versions do not have them.
  std::vector<int64_t> characters = {};  ///< that acc_norm divides by
  std::vector<int64_t> tokens = {};      ///< of the continuation
};
/// All but tokens and greedy.
ItemScore score_item(const TaskItem& item, std::vector<double> log_likelihoods);

/// An item that is answered by generation, or an example of a task on symbols.
struct AnswerScore {
  std::string answer, target;   ///< of generation
  double right = 0;             ///< of generation 0 or 1; of symbols the share of what is asked for
  std::string group = {};       ///< "depth 20 %"
  int64_t prompt_tokens = 0;    ///< of generation
  double depth = std::nan("");  ///< of generated prompts: the needle's token over the prompt's tokens
};
/// Whether the target is in the answer, letter case ignored (unicode_text.h).
bool contains_answer(const std::string& answer, const std::string& target);
/// Whether the answer without outer white space is the target.
bool is_answer(const std::string& answer, const std::string& target);
/// 1 where an answer is right by the task's metric, "contains" or "exact", else 0.
double answer_is_right(const Task& task, const std::string& answer, const std::string& target);

struct TaskScore {
  std::string metric;         ///< "acc", "acc_norm", "acc_bytes", "contains", "exact"; "acc GROUP" of a group
  double value = 0;           ///< share of the items
  double standard_error = 0;  ///< sample deviation (n − 1) / sqrt(n); NaN for one item
  int64_t items = 0;
};
/// Over all items, then by group where there are groups, then by groups of groups.
std::vector<TaskScore> task_scores(const Task& task, const std::vector<ItemScore>& items);
/// Of generation: the task's metric over all items, then by group.
std::vector<TaskScore> answer_scores(const Task& task, const std::vector<AnswerScore>& items);
/// What guessing among choices gets: the mean of 1 / choices. 0 for items that are answered by generation.
double chance_level(const std::vector<TaskItem>& items);

}  // namespace saccade
