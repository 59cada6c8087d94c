#include "tests/bench/window/made_runs.h"

#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_writer.h"
#include "kernels/engine/random.h"

namespace saccade::test {
namespace {

namespace fs = std::filesystem;

struct Made {
  const char *block, *mixer, *title;
};
constexpr std::array<Made, 9> kMade{{{"llama", "attention", "Transformer++"},
                                     {"llama", "top1_chunk", "Top-1 Chunk exact"},
                                     {"avey", "avey", "Avey"},
                                     {"mamba2", "mamba2", "Mamba-2"},
                                     {"rwkv7", "rwkv7", "RWKV-7"},
                                     {"llama", "deltanet", "DeltaNet"},
                                     {"llama", "based", "Based"},
                                     {"llama", "top1_element", "Top-1 Element"},
                                     {"gpt", "attention", "GPT"}}};
constexpr int64_t kSeeds = 3, kLayers = 4, kHeads = 4;

/// Nine architectures by three seeds, then the same with another width, and so on.
RunInfo info_of(int64_t index, int64_t points) {
  const Made& made = kMade[static_cast<size_t>(index / kSeeds) % kMade.size()];
  const int64_t seed = 1 + index % kSeeds, width = 64 + 16 * (index / kSeeds / static_cast<int64_t>(kMade.size()));
  RunInfo info;
  info.name = std::string(made.mixer) + "-w" + std::to_string(width) + "-s" + std::to_string(seed);
  info.title = made.title;
  info.config = {
      {"name", info.name},
      {"architecture",
       {{"block", made.block}, {"mixer", made.mixer}, {"width", width}, {"layers", kLayers}, {"heads", kHeads}, {"chunk", 16}}},
      {"data", {{"corpus", "made"}, {"train", {"prose"}}, {"ood", {"c", "python"}}, {"tokenizer", "bytes"}, {"sequence_length", 128}}},
      {"training",
       {{"steps", points}, {"batch_tokens", 1024}, {"seed", seed}, {"evaluate_every", points / 100}, {"evaluation_tokens", 16384}}}};
  info.provenance = {{"code_version", "made"}, {"device", "cpu"}, {"corpus_hash", "c0ffee"}, {"tokenizer_hash", "bytes"}};
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "2026-01-%02dT%02d:%02d:00Z", static_cast<int>(1 + index / 1440 % 28),
                static_cast<int>(index / 60 % 24), static_cast<int>(index % 60));
  info.provenance["started"] = time.data();
  info.parameters = 1'000'000 + 20'000 * width;
  info.seed = seed;
  info.steps = points;
  return info;
}

struct Course {
  Random random;
  int64_t index, points;

  Position at(int64_t step) const {
    return {step, step * 1024, static_cast<double>(step) * 6e9,
            static_cast<double>(step) * (0.04 + 0.001 * static_cast<double>(index % 7))};
  }
  double loss(int64_t step) const {
    return 2.0 + 0.02 * static_cast<double>(index % 27) + 3.5 * std::exp(-6.0 * static_cast<double>(step) / static_cast<double>(points));
  }
  StepRecord step(int64_t n) const {
    const Position p = at(n);
    const double noise = random.normal(static_cast<uint64_t>(n));
    return {p.step, p.tokens, p.flops, p.seconds, loss(n) + 0.05 * noise, 1e-3, 1.0 + 0.2 * noise * noise, 20000 + 500 * noise};
  }
  EvaluationRecord evaluation(int64_t n) const {
    const double inside = loss(n);
    return {at(n), {{"prose", false, inside, 0.01}, {"c", true, 1.2 * inside, 0.02}, {"python", true, 1.3 * inside, 0.03}}};
  }
  StatisticsRecord statistics(int64_t n) const {
    StatisticsRecord record{at(n), {}};
    for (const auto& [name, unit, scale] : {std::tuple("entropy", "nats", 4.0), std::tuple("entropy_normalized", "1", 0.9)})
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        HeadStatistic s{name, unit, layer, {}};
        for (int64_t head = 0; head < kHeads; ++head) s.heads.push_back(scale / static_cast<double>(1 + layer + head));
        record.statistics.push_back(std::move(s));
      }
    return record;
  }
  template <class F>
  void records(int64_t n, F add) const {
    add(to_record(step(n)));
    if (n % std::max<int64_t>(1, points / 100) == 0) add(to_record(evaluation(n)));
    if (n % std::max<int64_t>(1, points / 50) == 0) add(to_record(statistics(n)));
  }
};

Course course_of(int64_t index, int64_t points) { return {Random(static_cast<uint64_t>(index), "made run"), index, points}; }

void write_journal(const fs::path& path, int64_t index, int64_t points) {
  std::ofstream file(path, std::ios::binary);
  int64_t number = 0;
  const auto add = [&](const Record& record) { file << journal_line(number++, record); };
  add(state_record(RunState::running, 0, ""));
  const Course course = course_of(index, points);
  for (int64_t n = 1; n <= points; ++n) course.records(n, add);
  add(state_record(RunState::finished, points, ""));
  if (!file.flush()) throw_file_error("write", path);
}

std::string digits(int64_t index) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04d", static_cast<int>(index));
  return text.data();
}

}  // namespace

void make_runs(const fs::path& folder, const MadeRuns& options) {
  const std::string made = std::to_string(options.runs) + " x " + std::to_string(options.points) + ", 2\n";
  const fs::path mark = folder / ".made";
  if (fs::exists(mark) && read_text(mark) == made) return;
  fs::remove_all(folder);
  for (int64_t i = 0; i < options.runs; ++i) {
    RunInfo info = info_of(i, options.points);
    info.directory = folder / ("run-" + digits(i));
    fs::create_directories(info.directory);
    info.state = RunState::finished;
    info.step = options.points;
    const fs::path journal = info.directory / "journal.jsonl";
    if (i < options.journals)
      write_journal(journal, i, options.points);
    else
      fs::create_hard_link(folder / ("run-" + digits(i % options.journals)) / "journal.jsonl", journal);
    write_run_info(info);
  }
  replace_text(mark, made);
}

void write_live_run(const fs::path& directory, int64_t points, double per_second) {
  fs::remove_all(directory);
  RunWriter writer = RunWriter::create(directory, info_of(0, 100 * points));
  writer.set_state(RunState::running, 0);
  const Course course = course_of(0, 100 * points);
  for (int64_t n = 1;; ++n) {
    writer.add(course.step(n));
    if (n % std::max<int64_t>(1, points / 100) == 0) writer.add(course.evaluation(n));
    if (n > points) std::this_thread::sleep_for(std::chrono::duration<double>(1 / per_second));
  }
}

}  // namespace saccade::test
