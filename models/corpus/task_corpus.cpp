#include <algorithm>
#include <charconv>

#include "kernels/engine/error.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/tasks.h"
#include "models/json.h"

namespace saccade {
namespace {

struct TaskSettings {
  std::string task;
  uint64_t seed = 1;
  std::vector<int64_t> lengths;
  int64_t kilobytes = 1000;  ///< of training text in each domain
};

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

int64_t number(const std::string& corpus, const std::string& digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1)
    throw UsageError("corpus \"" + corpus + "\": \"" + digits + "\", expected a positive number");
  return value;
}

TaskSettings parse(const std::string& name) {
  const std::vector<std::string> parts = split_at(name, '.');
  TaskSettings settings{parts[0], 1, {}, 1000};
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::string> words = split_at(parts[i], '-');
    if (words.size() == 2 && words[0] == "seed")
      settings.seed = static_cast<uint64_t>(number(name, words[1]));
    else if (words.size() == 2 && words[0] == "kilobytes")
      settings.kilobytes = number(name, words[1]);
    else if (words.size() >= 2 && words[0] == "lengths")
      for (size_t j = 1; j < words.size(); ++j) settings.lengths.push_back(number(name, words[j]));
    else
      throw UsageError("corpus \"" + name + "\": \"" + parts[i] + "\", expected seed-1, kilobytes-1000 or lengths-64-256");
  }
  if (settings.lengths.empty())
    settings.lengths =
        settings.task == "task-passkey" ? std::vector<int64_t>{128, 512, 2048, 8192} : std::vector<int64_t>{64, 256, 1024, 4096};
  return settings;
}

/// Documents are numbered through the splits, so that none stands in two of them.
void write_domain(CorpusWriter& writer, const TaskSettings& settings, int64_t length) {
  uint64_t index = 0;
  for (const auto& [split, bytes] : {std::pair{Split::train, settings.kilobytes * 1000},
                                     {Split::validation, std::max<int64_t>(settings.kilobytes * 50, 4 * length)},
                                     {Split::test, std::max<int64_t>(settings.kilobytes * 50, 4 * length)}})
    for (int64_t written = 0; written < bytes;) {
      const std::string document = make_task_document(settings.task, length, settings.seed, index++);
      writer.add("length-" + std::to_string(length), split, document);
      written += static_cast<int64_t>(document.size());
    }
}

}  // namespace

bool is_task_corpus(std::string_view name) {
  const std::string_view task = name.substr(0, name.find('.'));
  return task == "task-copy" || task == "task-mqar" || task == "task-passkey";
}

void make_task_corpus(const std::string& name, const std::function<void(const std::string&)>& progress) {
  const TaskSettings settings = parse(name);
  if (progress) progress("generating " + name);
  CorpusWriter writer(name);
  for (int64_t length : settings.lengths) write_domain(writer, settings, length);
  writer.finish({{"made_by", settings.task}, {"version", 1}, {"seed", settings.seed}}, Existing::keep);
}

}  // namespace saccade
