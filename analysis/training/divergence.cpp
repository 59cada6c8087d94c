#include "analysis/training/divergence.h"

#include <algorithm>
#include <cmath>

#include "analysis/runs/files.h"
#include "analysis/runs/record_json.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/training/loss_course.h"
#include "models/config_text.h"

namespace saccade {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& directory, int64_t step) { return directory / ("diverged-step-" + std::to_string(step) + ".json"); }

/// The largest magnitude of a tensor's finite values, and how many are not finite.
struct Extent {
  double largest = 0;
  int64_t not_finite = 0;
};
Extent extent_of(const Tensor& tensor) {
  Extent extent;
  dispatch(tensor.dtype(), [&](auto zero) {
    const auto* values = tensor.data<decltype(zero)>();
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double value = std::abs(static_cast<double>(values[i]));
      if (std::isfinite(value))
        extent.largest = std::max(extent.largest, value);
      else
        ++extent.not_finite;
    }
  });
  return extent;
}

/// "layer3.down" is of layer 3; −1 for what is of none.
int64_t layer_of(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    std::string part = name.substr(begin, end - begin);
    if (part.starts_with("layer")) part.erase(0, 5);
    if (!part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == std::string::npos) return std::stoll(part);
    begin = end + 1;
  }
  return -1;
}

std::string named(const std::string& kind, const std::string& name) {
  const int64_t layer = layer_of(name);
  return kind + " " + name + (layer < 0 ? "" : " (layer " + std::to_string(layer) + ")");
}

struct TensorExtent {
  std::string name;
  Extent weight, gradient;
};

std::string first_not_finite(const std::vector<TensorExtent>& tensors) {
  const auto weight = std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.weight.not_finite > 0; });
  if (weight != tensors.end()) return named("first in the weight", weight->name);
  const auto bad = [](const auto& t) { return t.gradient.not_finite > 0; };
  if (std::all_of(tensors.begin(), tensors.end(), bad)) return "in the forward pass: every gradient is not finite";
  const auto gradient = std::find_if(tensors.rbegin(), tensors.rend(), bad);
  if (gradient != tensors.rend()) return named("first in the gradient of", gradient->name);
  const auto largest = std::max_element(tensors.begin(), tensors.end(),
                                        [](const auto& a, const auto& b) { return a.gradient.largest < b.gradient.largest; });
  return largest == tensors.end() ? "" : named("in no single tensor; the largest gradient is that of", largest->name);
}

Record rows_of(const FrozenBatch& batch, const std::vector<int32_t>& values) {
  Record rows = Record::array();
  for (int64_t s = 0; s < batch.sequences; ++s)
    rows.push_back(std::vector<int32_t>(values.begin() + s * batch.length, values.begin() + (s + 1) * batch.length));
  return rows;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string describe_divergence(const StepRecord& step) {
  if (std::isfinite(step.loss) && std::isfinite(step.gradient_norm)) return {};
  const bool loss = !std::isfinite(step.loss);
  const double value = loss ? step.loss : step.gradient_norm;
  return std::string("the ") + (loss ? "loss" : "gradient norm") + " became " + (std::isnan(value) ? "NaN" : "infinite") + " at step " +
         std::to_string(step.step);
}

Divergence record_divergence(Trainer& trainer, const StepRecord& step, const fs::path& directory) {
  const std::vector<NamedTensor> weights = trainer.state().weights, gradients = trainer.gradients();
  std::vector<TensorExtent> tensors;
  Record rows = Record::array();
  for (size_t i = 0; i < weights.size(); ++i) {
    const TensorExtent& t =
        tensors.emplace_back(TensorExtent{weights[i].name, extent_of(weights[i].tensor), extent_of(gradients[i].tensor)});
    rows.push_back({{"tensor", t.name},
                    {"layer", layer_of(t.name)},
                    {"largest_weight", t.weight.largest},
                    {"weights_not_finite", t.weight.not_finite},
                    {"largest_gradient", t.gradient.largest},
                    {"gradients_not_finite", t.gradient.not_finite}});
  }
  Divergence divergence{describe_divergence(step), first_not_finite(tensors), file_of(directory, step.step)};
  const TrainedBatch trained = trainer.last_batch();
  const Record record{{"format_version", 1},
                      {"step", step.step},
                      {"loss", json_number(step.loss)},
                      {"gradient_norm", json_number(step.gradient_norm)},
                      {"where", divergence.where},
                      {"data_position", trained.data_position},
                      {"tensors", rows},
                      {"tokens", rows_of(trained.batch, trained.batch.tokens)},
                      {"targets", rows_of(trained.batch, trained.batch.targets)}};
  write_sealed_json(divergence.file, record);
  return divergence;
}

uint64_t diverged_position(const fs::path& directory, int64_t step) {
  const fs::path path = file_of(directory, step);
  const auto record = read_sealed_json(path);
  const auto position = whole_number<uint64_t>(record.value("data_position", nlohmann::json()));
  if (!position) throw DataError(path.string() + " is damaged: no data position");
  return *position;
}

std::string way_back(const fs::path& directory) {
  const std::vector<int64_t> steps = step_files(directory, kCheckpoints);
  const std::optional<int64_t> on_course = course_so_far(directory, recorded_history(directory)).on_course;
  std::vector<std::string> names;
  for (const int64_t step : steps)
    names.push_back("step " + std::to_string(step) + (step == on_course ? " (the last before the loss left its course)" : ""));
  const std::string kept = steps.empty() ? "it has no checkpoint" : "it keeps the checkpoints of " + joined(names);
  return kept + "; go back with saccade resume " + directory.string() + " --from " + std::to_string(on_course.value_or(0)) +
         (on_course ? "" : " (the beginning)") + ", with a smaller --set training.learning_rate=X, or with --skip-batch";
}

}  // namespace saccade
