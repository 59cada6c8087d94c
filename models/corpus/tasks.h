#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saccade {

/// Generated text whose answers are known, to see what a model can copy, recall and retrieve. To train on and to look at: these are not the
/// published benchmarks of similar names, and nothing is scored. MQAR of arXiv:2312.04927 is made of token numbers, asks some pairs and
/// leaves gaps between them; the passkeys of RULER (arXiv:2404.06654) and of arXiv:2506.11305 have other fillers, lengths and depths.
///
///   task-copy     "copy LETTERS = LETTERS\n"                    the answer: what follows " = "
///   task-mqar     "KEY:VALUE KEY:VALUE … ? KEY:VALUE …\n"       the answers: each VALUE after " ? ", where all keys come again in
///                 another order (multi-query associative recall after Arora et al. 2023, arXiv:2312.04927, section 3, as text)
///   task-passkey  "FILLER The pass key is DIGITS. Remember it. FILLER What is the pass key? The pass key is DIGITS.\n"
///                 the answer: the last five DIGITS (after Mohtashami and Jaggi 2023, arXiv:2305.16300, section 4.2)
struct TaskAnswer {
  int64_t begin = 0, size = 0;  ///< bytes of the document
  int64_t source = 0;           ///< where the same bytes stand before
  bool operator==(const TaskAnswer&) const = default;
};

/// The task's document number `index`, at most `length` bytes (at least shortest_task_document). Depends on its arguments only.
std::string make_task_document(std::string_view task, int64_t length, uint64_t seed, uint64_t index);
int64_t shortest_task_document(std::string_view task);
/// The answers in a document of that form, in order; empty for any other text.
std::vector<TaskAnswer> find_task_answers(std::string_view task, std::string_view document);

/// "task-copy", or with settings: "task-copy.seed-3.lengths-128-4096.kilobytes-500". A domain is a difficulty: "length-128" has
/// documents of 128 bytes.
bool is_task_corpus(std::string_view name);
void make_task_corpus(const std::string& name, const std::function<void(const std::string&)>& progress);

}  // namespace saccade
