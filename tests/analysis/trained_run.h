#pragma once
#include <QString>
#include <QTemporaryDir>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/files.h"
#include "analysis/runs/journal.h"
#include "analysis/runs/run_info.h"
#include "analysis/training/training_run.h"
#include "models/corpus/corpus_store.h"
#include "tests/support/tiny_run.h"

/// Small real runs: a corpus made here, a tiny model, twelve steps.
namespace saccade::test {

/// A data folder of our own with a corpus "tiny" of two domains.
class TinyCorpus {
 public:
  TinyCorpus() {
    qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_.path() + "/cache").toUtf8());
    CorpusWriter writer("tiny");
    add(writer, "prose", "the cat sat on the mat and looked at the moon over hill ");
    add(writer, "code", "for (int i = 0; i < n; ++i) sum += values[i]; // line ");
    writer.finish({}, Existing::refuse);
  }

 private:
  static void add(CorpusWriter& writer, const std::string& domain, const std::string& words) {
    for (const Split split : {Split::train, Split::validation})
      for (int i = 0; i < 20; ++i) {
        std::string text;
        for (int line = 0; line < 8; ++line) text += words + std::to_string(100 * i + line) + "\n";
        writer.add(domain, split, text);
      }
  }
  QTemporaryDir folder_;
};

inline RunConfig tiny_config(const std::string& mixer = "attention") {
  nlohmann::json object = tiny_run("tiny");
  object["architecture"]["mixer"] = mixer;
  object["training"].update({{"evaluate_every", 3}, {"capture_tokens", 48}});
  if (mixer == "documents") {  // of 520 bytes and more
    object["architecture"]["mixer"] = "attention";
    object["data"].update({{"packing", "document"}, {"sequence_length", 600}});
    object["training"].update({{"batch_tokens", 1200}, {"gradient_accumulation", 2}});
  }
  if (mixer == "top1_chunk") object["architecture"]["chunk"] = 16;
  if (mixer == "avey") object["architecture"] = {{"block", "avey"}, {"width", 16}, {"layers", 2}, {"split", 16}, {"top_k", 2}};
  if (mixer == "hybrid") {
    object["architecture"].erase("mixer");
    object["architecture"]["layers"] =
        "based(layout=[\"conv\"]), top1_chunk(chunk=8), top1_chunk(chunk=16), top1_element, attention(heads=4)";
  }
  return resolve_config(object, "tiny");
}

struct Outcome {
  RunState state = RunState::created;
  std::vector<std::string> messages;
  bool said(const std::string& part) const {
    return std::any_of(messages.begin(), messages.end(), [&](const std::string& m) { return m.find(part) != std::string::npos; });
  }
};

/// Trains, or resumes when `directory` holds a run; stops after `stop_after` steps when that is positive.
inline Outcome work_on(const std::filesystem::path& directory, const RunConfig& config, int64_t stop_after = 0) {
  Outcome outcome;
  std::atomic<bool> stop = false;
  RunProgress progress;
  progress.message = [&](const std::string& line) { outcome.messages.push_back(line); };
  progress.step = [&](const StepRecord& step, const EvaluationRecord*) { stop = stop_after > 0 && step.step >= stop_after; };
  outcome.state = holds_run(directory) ? resume_run(directory, progress, stop) : train_run(config, directory, progress, stop);
  return outcome;
}

/// The journal's records that count, without what may differ between equal runs: numbers of lines, times, memory, states.
inline std::vector<std::string> comparable_journal(const std::filesystem::path& directory) {
  std::vector<Record> records;
  JournalReader(directory / "journal.jsonl").poll([&](const Record& record) {
    if (record.at("type") == "resume")
      std::erase_if(records, [&](const Record& r) { return r.at("step") > record.at("step"); });
    else if (record.at("type") != "state" && record.at("type") != "memory")
      records.push_back(record);
  });
  std::vector<std::string> lines;
  for (Record& record : records) {
    for (const char* key : {"n", "crc32c", "seconds", "tokens_per_second"}) record.erase(key);
    lines.push_back(record.dump());
  }
  return lines;
}

/// Empty when two checkpoints are equal byte for byte, times apart; else what differs.
inline QString checkpoint_difference(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Checkpoint x = read_checkpoint(a), y = read_checkpoint(b);
  if (x.state.data_position != y.state.data_position) return "data position";
  if (x.state.record.step != y.state.record.step || x.state.record.tokens != y.state.record.tokens ||
      x.state.record.loss != y.state.record.loss)
    return "record";
  if (x.config != y.config || x.tokenizer_hash != y.tokenizer_hash || x.corpus_hash != y.corpus_hash) return "config or hashes";
  if (x.state.optimizer.size() != y.state.optimizer.size()) return "groups of the optimizer's state";
  for (size_t group = 0; group <= x.state.optimizer.size(); ++group) {
    const auto& s = group == 0 ? x.state.weights : x.state.optimizer[group - 1].tensors;
    const auto& t = group == 0 ? y.state.weights : y.state.optimizer[group - 1].tensors;
    if (s.size() != t.size()) return "number of tensors";
    for (size_t i = 0; i < s.size(); ++i)
      if (s[i].name != t[i].name || s[i].tensor.bytes() != t[i].tensor.bytes() ||
          std::memcmp(s[i].tensor.raw(), t[i].tensor.raw(), static_cast<size_t>(s[i].tensor.bytes())) != 0)
        return QString::fromStdString("tensor " + s[i].name);
  }
  return {};
}

inline void flip_byte(const std::filesystem::path& path, double where) {
  std::string content = read_text(path);
  content[static_cast<size_t>(where * static_cast<double>(content.size() - 1))] ^= 0x40;
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace saccade::test
