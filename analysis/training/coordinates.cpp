#include "analysis/training/coordinates.h"

#include <cmath>

#include "analysis/training/training_loop.h"
#include "kernels/engine/transfer.h"

namespace saccade {
namespace {

/// What layers leave to each other, and the logits behind them.
struct Activations : Probe {
  std::vector<std::vector<double>> layers;
  std::vector<double> logits;
  void statistic(HeadStatistic) override {}
  void map(CapturedMap) override {}
  void selects(int64_t, const Selection&) override {}
  void stream(int64_t, const Tensor& x) override { layers.push_back(to_doubles(x)); }
};

Activations activations_of(Trainer& trainer, const FrozenBatch& batch) {
  Activations seen;
  Tape tape(trainer.arena(), false);
  const Tensor tokens = tape.empty({1, batch.length}, DType::i32);
  copy_from_host(tokens, batch.tokens.data());
  seen.logits = to_doubles(trainer.model().logits(tape, tokens, &seen));
  return seen;
}

double root_mean_square(const std::vector<double>& a, const std::vector<double>* minus = nullptr) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double value = minus ? a[i] - (*minus)[i] : a[i];
    squares += value * value;
  }
  return std::sqrt(squares / static_cast<double>(a.size()));
}

}  // namespace

RunConfig at_width(const RunConfig& config, int64_t width) {
  nlohmann::json object = to_json(config);
  object["architecture"]["width"] = width;
  return resolve_config(object, "width " + std::to_string(width));
}

std::vector<Coordinates> check_coordinates(const RunConfig& config, const std::vector<int64_t>& widths, int64_t steps,
                                           const RunProgress& progress) {
  std::vector<Coordinates> all;
  for (const int64_t width : widths) {
    TrainingInput input = prepare_training(at_width(config, width), progress);
    const FrozenBatch& text = input.evaluation.front();
    const Activations before = activations_of(*input.trainer, text);
    if (before.layers.empty()) throw UsageError("the activations of this architecture's layers cannot be seen: it is not made of blocks");
    for (int64_t i = 0; i < steps; ++i) input.trainer->step();
    const Activations after = activations_of(*input.trainer, text);
    Coordinates c{width, {}, {}, root_mean_square(after.logits), root_mean_square(after.logits, &before.logits)};
    for (size_t l = 0; l < after.layers.size(); ++l) {
      c.layers.push_back(root_mean_square(after.layers[l]));
      c.changes.push_back(root_mean_square(after.layers[l], &before.layers[l]));
    }
    all.push_back(std::move(c));
  }
  return all;
}

double growth(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  if (x.size() < 2) return std::nan("");
  double mx = 0, my = 0, xy = 0, xx = 0;
  for (size_t i = 0; i < x.size(); ++i) mx += std::log(x[i]) / n, my += std::log(y[i]) / n;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = std::log(x[i]) - mx;
    xy += dx * (std::log(y[i]) - my), xx += dx * dx;
  }
  return xy / xx;
}

}  // namespace saccade
