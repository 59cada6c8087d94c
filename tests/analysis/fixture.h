#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "analysis/runs/run_writer.h"
#include "kernels/engine/random.h"

/// Complete run directories of made-up numbers, written through the real writer: for tests of what reads runs.
namespace saccade::test {

struct FixtureOptions {
  std::string mixer = "attention";  ///< attention, top1_element, top1_chunk, avey
  int64_t seed = 1, steps = 200, layers = 3, heads = 4;
  int64_t length = 96, chunk = 16;  ///< of captured samples: tokens, and tokens in a chunk or split
  double offset = 0;                ///< added to the OOD losses
  RunState end = RunState::finished;
  int64_t not_finite = 0;  ///< the training loss of this step and the next is NaN
  bool answers = false;    ///< of a generated task: shares of right answers are recorded
  bool health = false;     ///< memory is recorded, and of chunks churn from the second probe on, and dead ones
};

inline std::string fixture_title(const std::string& mixer) {
  if (mixer == "top1_element") return "Top-1 Element";
  if (mixer == "top1_chunk") return "Top-1 Chunk exact";
  return mixer == "avey" ? "Avey" : "Transformer++";
}

inline RunInfo fixture_info(const FixtureOptions& o) {
  RunInfo info;
  info.name = o.mixer + "-seed" + std::to_string(o.seed);
  info.title = fixture_title(o.mixer);
  info.config = {
      {"name", info.name},
      {"architecture",
       {{"block", o.mixer == "avey" ? "avey" : "llama"},
        {"mixer", o.mixer},
        {"width", 64},
        {"layers", o.layers},
        {"heads", o.heads},
        {"chunk", o.chunk}}},
      {"data", {{"corpus", "fixture"}, {"train", {"prose"}}, {"ood", {"c", "python"}}, {"tokenizer", "bytes"}, {"sequence_length", 128}}},
      {"training", {{"steps", o.steps}, {"batch_tokens", 1024}, {"seed", o.seed}, {"evaluate_every", 20}, {"evaluation_tokens", 16384}}}};
  if (o.answers) info.config["data"]["task"] = "mqar", info.config["data"].erase("corpus");
  info.provenance = {{"code_version", "fixture"}, {"device", "cpu"}, {"corpus_hash", "c0ffee"}, {"tokenizer_hash", "bytes"}};
  info.parameters = 1'000'000;
  info.seed = o.seed;
  info.steps = o.steps;
  return info;
}

inline Position fixture_position(int64_t step) {
  return {step, step * 1024, static_cast<double>(step) * 6e9, static_cast<double>(step) * 0.05};
}
inline double fixture_loss(const FixtureOptions& o, int64_t step) {
  return 2.0 + 3.5 * std::exp(-static_cast<double>(step) / 60.0) + 0.01 * static_cast<double>(o.seed);
}

inline StepRecord fixture_step(const FixtureOptions& o, int64_t step) {
  const Position at = fixture_position(step);
  const double noise = Random(static_cast<uint64_t>(o.seed), "fixture").normal(static_cast<uint64_t>(step));
  const bool finite = o.not_finite == 0 || (step != o.not_finite && step != o.not_finite + 1);
  const double loss = finite ? fixture_loss(o, step) + 0.05 * noise : std::numeric_limits<double>::quiet_NaN();
  return {at.step, at.tokens, at.flops, at.seconds, loss, 1e-3, 1.0 + 0.2 * noise * noise, 20000 + 500 * noise};
}

inline EvaluationRecord fixture_evaluation(const FixtureOptions& o, int64_t step) {
  const double loss = fixture_loss(o, step);
  EvaluationRecord record{
      fixture_position(step),
      {{"prose", false, loss, 0.01 * loss}, {"c", true, 1.2 * loss + o.offset, 0.02}, {"python", true, 1.3 * loss + o.offset, 0.03}}};
  for (DomainLoss& of : record.losses)
    of.by_position = {{0, 1, 1.5 * of.loss}, {1, 2, 1.2 * of.loss}, {2, 4, of.loss}, {4, 8, 0.9 * of.loss}};
  if (o.answers)
    for (DomainLoss& of : record.losses) of.accuracy = 0.5 / of.loss;
  return record;
}

inline StatisticsRecord fixture_statistics(const FixtureOptions& o, int64_t step) {
  StatisticsRecord record{fixture_position(step), {}};
  const auto add = [&](const char* name, const char* unit, double scale) {
    for (int64_t layer = 0; layer < o.layers; ++layer) {
      HeadStatistic s{name, unit, layer, {}};
      for (int64_t head = 0; head < o.heads; ++head)
        s.heads.push_back(scale * (1 - 0.1 * static_cast<double>(layer) - 0.05 * static_cast<double>(head)) *
                          (0.5 + 0.5 * std::exp(-static_cast<double>(step) / 100.0)));
      record.statistics.push_back(std::move(s));
    }
  };
  add("entropy", "nats", 4.0);
  add("entropy_normalized", "1", 0.9);
  if (o.mixer == "top1_chunk") add("captured_mass", "1", 0.8);
  if (o.mixer == "top1_chunk" && o.health) add("dead_chunks", "1", 0.5);
  if (o.mixer == "top1_chunk" && o.health && step > 50) add("churn", "1", 0.4);
  return record;
}

/// Weights that fall off with distance, one-hot for elements, on chosen and own chunk (split) alone where there are such.
inline void add_fixture_maps(Capture& capture, const FixtureOptions& o, int64_t layer) {
  const int64_t T = o.length, H = o.mixer == "avey" ? 1 : o.heads, N = (T + o.chunk - 1) / o.chunk;
  const bool chunked = o.mixer == "top1_chunk", split = o.mixer == "avey", element = o.mixer == "top1_element";
  const float none = -std::numeric_limits<float>::infinity(), unknown = std::numeric_limits<float>::quiet_NaN();
  CapturedMap weights{MapKind::weights, layer, {H, T, T}, std::vector<float>(static_cast<size_t>(H * T * T))};
  CapturedMap score{MapKind::score, layer, {H, T, N}, std::vector<float>(static_cast<size_t>(H * T * N), none)};
  CapturedMap selected{MapKind::selected, layer, {H, T}, std::vector<float>(static_cast<size_t>(H * T), -1)};
  CapturedMap margin{MapKind::margin, layer, {H, T}, std::vector<float>(static_cast<size_t>(H * T), unknown)}, mass = margin;
  mass.kind = MapKind::captured_mass;
  const Random random(static_cast<uint64_t>(o.seed + 10 * layer), "fixture maps");
  for (int64_t h = 0; h < H; ++h)
    for (int64_t t = 0; t < T; ++t) {
      const int64_t row = h * T + t, own = t / o.chunk;
      for (int64_t c = 0; c < own; ++c)
        score.values[static_cast<size_t>(row * N + c)] = static_cast<float>(random.normal(static_cast<uint64_t>(row * N + c)));
      const auto best = std::max_element(score.values.begin() + row * N, score.values.begin() + row * N + std::max<int64_t>(own, 1)) -
                        (score.values.begin() + row * N);
      const int64_t pick = element   ? static_cast<int64_t>(random.below(static_cast<uint64_t>(t + 1), static_cast<uint64_t>(row)))
                           : own > 0 ? best
                                     : -1;
      if (chunked || element) selected.values[static_cast<size_t>(row)] = static_cast<float>(pick);
      if (chunked && own > 0) mass.values[static_cast<size_t>(row)] = 0.8F;
      double total = 0;
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t j = 0; j <= t; ++j) {
          const bool read = element ? j == pick : (chunked || split) ? (j / o.chunk == own || j / o.chunk == pick) : true;
          const double w = read ? std::exp(-static_cast<double>(t - j) / (8.0 * static_cast<double>(h + 1))) + 0.01 : 0;
          if (pass == 0)
            total += w;
          else
            weights.values[static_cast<size_t>(row * T + j)] = static_cast<float>(w / total);
        }
    }
  capture.maps.push_back(std::move(weights));
  if (chunked) capture.maps.insert(capture.maps.end(), {score, selected, margin, mass});
  if (element) capture.maps.push_back(selected);
  if (!split || layer != 0) return;
  CapturedMap maxsim{MapKind::maxsim, -1, {N, N}, std::vector<float>(static_cast<size_t>(N * N))},
      chosen{MapKind::chosen, -1, {N, 2}, std::vector<float>(static_cast<size_t>(N * 2), -1)};
  for (int64_t i = 0; i < N; ++i)
    for (int64_t p = 0; p < i; ++p) {
      maxsim.values[static_cast<size_t>(i * N + p)] = static_cast<float>(10 + random.normal(static_cast<uint64_t>(1'000'000 + i * N + p)));
      if (i - p <= 2) chosen.values[static_cast<size_t>(i * 2 + (i - p - 1))] = static_cast<float>(p);
    }
  capture.maps.insert(capture.maps.end(), {maxsim, chosen});
}

inline Capture fixture_capture(const FixtureOptions& o, int64_t step, int64_t sample, const std::string& domain) {
  Capture capture{fixture_position(step), domain, sample, {}, {}, {}, {}};
  const std::string text = domain == "prose" ? "The quick brown fox jumps over the lazy dog, and then it rests. "
                                             : "int main(void) { return 0; } /* nothing */ ";
  for (int64_t t = 0; t < o.length; ++t) {
    const char c = text[static_cast<size_t>(t) % text.size()];
    capture.tokens.push_back(static_cast<unsigned char>(c));
    capture.pieces.emplace_back(1, c);
    capture.token_losses.push_back(static_cast<float>(fixture_loss(o, step)) + 0.1F * static_cast<float>(t % 7));
  }
  for (int64_t layer = 0; layer < o.layers; ++layer) add_fixture_maps(capture, o, layer);
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    if (o.mixer == "top1_element") capture.selections[layer] = {Selection::Unit::element, 1};
    if (o.mixer == "top1_chunk") capture.selections[layer] = {Selection::Unit::chunk, o.chunk};
  }
  if (o.mixer == "avey") capture.selections = {{-1, {Selection::Unit::split, o.chunk}}};
  return capture;
}

/// A run as a real one leaves it, but for checkpoints: evaluated every 20 steps, statistics every 50, captures at the middle
/// and the end.
inline void write_fixture(const std::filesystem::path& directory, const FixtureOptions& o = {}) {
  RunWriter writer = RunWriter::create(directory, fixture_info(o));
  writer.set_state(RunState::running, 0);
  writer.log("started");
  for (int64_t step = 1; step <= o.steps; ++step) {
    writer.add(fixture_step(o, step));
    if (step % 20 == 0) writer.add(fixture_evaluation(o, step));
    if (step % 50 == 0) writer.add(fixture_statistics(o, step));
    if (step % 50 == 0 && o.health) writer.add(MemoryRecord{fixture_position(step), 300 << 20, (400 + step) << 20});
    if (step == o.steps / 2 || step == o.steps)
      writer.add(step, {fixture_capture(o, step, 0, "prose"), fixture_capture(o, step, 1, "c"), fixture_capture(o, step, 2, "python")});
  }
  writer.set_state(o.end, o.steps);
  writer.write_results();
}

}  // namespace saccade::test
