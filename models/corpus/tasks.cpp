#include "models/corpus/tasks.h"

#include <algorithm>
#include <array>
#include <map>

#include "kernels/engine/error.h"
#include "kernels/engine/random.h"
#include "models/corpus/permutation.h"

namespace saccade {
namespace {

std::string letters(const Random& random, int64_t count, uint64_t& counter) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + random.below(26, counter++));
  return text;
}

// ---- copying

constexpr std::string_view kCopy = "copy ", kEquals = " = ";

std::string make_copy(int64_t length, const Random& random) {
  uint64_t counter = 0;
  const std::string word = letters(random, (length - 9) / 2, counter);
  return std::string(kCopy) + word + std::string(kEquals) + word + "\n";
}

std::vector<TaskAnswer> copy_answers(std::string_view text) {
  const size_t equals = text.find(kEquals);
  if (!text.starts_with(kCopy) || equals == text.npos) return {};
  const size_t begin = equals + kEquals.size(), size = text.size() - begin - 1;
  if (text.substr(kCopy.size(), equals - kCopy.size()) != text.substr(begin, size)) return {};
  return {{static_cast<int64_t>(begin), static_cast<int64_t>(size), static_cast<int64_t>(kCopy.size())}};
}

// ---- multi-query associative recall

constexpr int64_t kValue = 2;  // letters of a value
constexpr std::string_view kQueries = "? ";

/// Keys that differ: `index` of a permutation of all words of `size` letters.
std::string key_word(uint64_t index, int64_t size) {
  std::string word(static_cast<size_t>(size), 'a');
  for (char& c : word) {
    c = static_cast<char>('a' + index % 26);
    index /= 26;
  }
  return word;
}

std::string make_mqar(int64_t length, uint64_t seed, uint64_t index, const Random& random) {
  const int64_t key_size = length <= 4096 ? 2 : 4;
  const int64_t pairs = (length - 2) / (2 * (key_size + kValue + 2));
  const uint64_t all_keys = key_size == 2 ? 26 * 26 : 26 * 26 * 26 * 26;
  const Permutation keys(all_keys, seed, "mqar keys", index), order(static_cast<uint64_t>(pairs), seed, "mqar order", index);
  uint64_t counter = 0;
  std::vector<std::string> written;
  for (int64_t i = 0; i < pairs; ++i) written.push_back(key_word(keys(i), key_size) + ":" + letters(random, kValue, counter) + " ");
  std::string text;
  for (const auto& pair : written) text += pair;
  text += kQueries;
  for (int64_t i = 0; i < pairs; ++i) text += written[order(i)];
  text.back() = '\n';
  return text;
}

std::vector<TaskAnswer> mqar_answers(std::string_view text) {
  const size_t queries = text.find(" ? ");
  if (queries == text.npos || !text.ends_with('\n')) return {};
  std::map<std::string_view, size_t> known;  // where the value of a key stands
  std::vector<TaskAnswer> answers;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find_first_of(" \n", at), colon = text.find(':', at);
    if (text.substr(at, end - at) != "?") {
      if (colon == text.npos || colon > end) return {};
      const std::string_view key = text.substr(at, colon - at), value = text.substr(colon + 1, end - colon - 1);
      if (at < queries) {
        known[key] = colon + 1;
      } else {
        const auto found = known.find(key);
        if (found == known.end() || text.substr(found->second, value.size()) != value) return {};
        answers.push_back({static_cast<int64_t>(colon + 1), static_cast<int64_t>(value.size()), static_cast<int64_t>(found->second)});
      }
    }
    at = end + 1;
  }
  return answers;
}

// ---- passkey retrieval

constexpr std::string_view kKeyIs = "The pass key is ", kRemember = ". Remember it. ", kQuestion = "What is the pass key? ";
constexpr int64_t kDigits = 5;

std::string make_passkey(int64_t length, const Random& random) {
  static constexpr std::array<std::string_view, 5> filler{"The grass is green. ", "The sky is blue. ", "The sun is yellow. ",
                                                          "Here we go. ", "There and back again. "};
  uint64_t counter = 0;
  std::string digits;
  for (int64_t i = 0; i < kDigits; ++i) digits += static_cast<char>('0' + random.below(10, counter++));
  const std::string told = std::string(kKeyIs) + digits + std::string(kRemember);
  const std::string asked = std::string(kQuestion) + std::string(kKeyIs) + digits + ".\n";
  std::vector<std::string_view> sentences;
  auto room = length - static_cast<int64_t>(told.size() + asked.size());
  for (;;) {
    const std::string_view sentence = filler[random.below(filler.size(), counter++)];
    room -= static_cast<int64_t>(sentence.size());
    if (room < 0) break;
    sentences.push_back(sentence);
  }
  const uint64_t depth = random.below(sentences.size() + 1, counter++);
  std::string text;
  for (size_t i = 0; i <= sentences.size(); ++i) {
    if (i == depth) text += told;
    if (i < sentences.size()) text += sentences[i];
  }
  return text + asked;
}

std::vector<TaskAnswer> passkey_answers(std::string_view text) {
  const size_t first = text.find(kKeyIs), question = text.rfind(kQuestion);
  if (first == text.npos || question == text.npos || first > question) return {};
  const size_t source = first + kKeyIs.size(), begin = question + kQuestion.size() + kKeyIs.size();
  if (begin + kDigits > text.size() || text.substr(source, kDigits) != text.substr(begin, kDigits)) return {};
  return {{static_cast<int64_t>(begin), kDigits, static_cast<int64_t>(source)}};
}

[[noreturn]] void unknown(std::string_view task) {
  throw UsageError("task \"" + std::string(task) + "\", expected task-copy, task-mqar or task-passkey");
}

}  // namespace

int64_t shortest_task_document(std::string_view task) { return task == "task-passkey" ? 96 : 32; }

std::string make_task_document(std::string_view task, int64_t length, uint64_t seed, uint64_t index) {
  if (length < shortest_task_document(task) || length > 10'000'000)
    throw UsageError(std::string(task) + ": documents of " + std::to_string(length) + " bytes, expected " +
                     std::to_string(shortest_task_document(task)) + " to 10000000");
  const Random random(seed, std::string(task) + " " + std::to_string(length) + " " + std::to_string(index));
  if (task == "task-copy") return make_copy(length, random);
  if (task == "task-mqar") return make_mqar(length, seed, index, random);
  if (task == "task-passkey") return make_passkey(length, random);
  unknown(task);
}

std::vector<TaskAnswer> find_task_answers(std::string_view task, std::string_view document) {
  if (task == "task-copy") return copy_answers(document);
  if (task == "task-mqar") return mqar_answers(document);
  if (task == "task-passkey") return passkey_answers(document);
  unknown(task);
}

}  // namespace saccade
