#include "analysis/studies/equal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/comparison/tuning.h"
#include "kernels/engine/error.h"
#include "models/corpus/vocabulary.h"
#include "models/training/decoder.h"
#include "models/training/plan.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargest = int64_t{1} << 20;  ///< of a width

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * share);
  return text.data();
}

/// What is held equal of a model: parameters, or numbers of its state.
double amount_of(StudyEqual::What what, const RunConfig& config) {
  return what == StudyEqual::What::state ? count_state(config) : static_cast<double>(count_parameters(config));
}

/// One setting of a cell, and how much the cell has with each of its values; nothing where the setting does not take it.
class Knob {
 public:
  /// `solved`: assignments of the knobs before.
  Knob(const EqualCell& cell, StudyEqual::What what, std::string setting, const std::vector<std::string>& solved)
      : cell_(cell), what_(what), setting_(std::move(setting)), solved_(solved) {
    const Json::json_pointer pointer = setting_pointer(setting_);
    const Json resolved = to_json(cell_.parse(solved_));
    value_ = resolved.contains(pointer) ? resolved.at(pointer) : cell_.written.value(pointer, Json());
    width_ = resolved.value(Json::json_pointer("/architecture/width"), int64_t{64});
  }

  bool is_there() const { return !value_.is_null(); }

  int64_t start() const {
    if (!whole_number<int64_t>(value_))
      throw UsageError("/equal/by names " + setting_ + ", which is " + value_.dump() + "; expected an integer setting");
    return value_ > 0 ? value_.get<int64_t>() : 4 * width_;  // 0: chosen by the architecture
  }

  std::optional<double> count(int64_t value) const {
    std::vector<std::string> settings = solved_;
    settings.push_back(assignment(value));
    try {
      return amount_of(what_, cell_.parse(settings));
    } catch (const UsageError&) {
      return {};
    }
  }

  std::string assignment(int64_t value) const { return setting_ + "=" + std::to_string(value); }

 private:
  const EqualCell& cell_;
  StudyEqual::What what_;
  std::string setting_;
  std::vector<std::string> solved_;
  Json value_;
  int64_t width_ = 0;
};

struct Tried {
  int64_t value = 0;
  double amount = 0;
};

/// The first value from `value` on, in steps of `step`, that the setting takes, up to `end` and excluding it.
std::optional<Tried> next_valid(const Knob& knob, int64_t value, int64_t step, int64_t end) {
  constexpr int kMost = 512;
  for (int i = 0; i < kMost && value != end && value > 0 && value <= kLargest; ++i, value += step)
    if (const auto amount = knob.count(value)) return Tried{value, *amount};
  return {};
}

/// The value whose amount is nearest to the goal: amounts grow with every setting that is solved for.
std::optional<Tried> nearest(const Knob& knob, double goal) {
  std::optional<Tried> low = next_valid(knob, knob.start(), 1, 0), high = low;
  while (low && low->amount > goal && low->value > 1) {
    high = low;
    low = next_valid(knob, std::max<int64_t>(1, low->value / 2), 1, high->value);
  }
  while (high && high->amount < goal) {
    low = high;
    high = next_valid(knob, high->value * 2, 1, 0);
  }
  while (low && high && high->value - low->value > 1) {
    const int64_t middle = (low->value + high->value) / 2;
    std::optional<Tried> between = next_valid(knob, middle, 1, high->value);
    if (!between) between = next_valid(knob, middle, -1, low->value);
    if (!between) break;
    (between->amount <= goal ? low : high) = between;
  }
  if (!low || !high) return low ? low : high;
  return goal - low->amount <= high->amount - goal ? low : high;
}

EqualSolution equal_models(const StudyEqual& equal, double goal, const EqualCell& cell) {
  const bool state = equal.what == StudyEqual::What::state;
  const double within = state ? kEqualState : kEqualParameters;
  const auto off = [&](double amount) { return amount / goal - 1; };
  std::vector<std::string> settings;
  double amount = amount_of(equal.what, cell.parse({}));
  for (const std::string& name : equal.by) {
    if (std::abs(off(amount)) <= within) break;
    const Knob knob(cell, equal.what, name, settings);
    if (!knob.is_there()) continue;  // of other architectures of the grid
    const std::optional<Tried> found = nearest(knob, goal);
    if (!found) continue;
    settings.push_back(knob.assignment(found->value));
    amount = found->amount;
  }
  if (std::abs(off(amount)) <= within) return {settings, ""};
  if (state)
    return {settings, "keeps " + std::to_string(std::llround(amount)) + " numbers of state per token of context, not " +
                          std::to_string(std::llround(goal)) + " (" + percent(off(amount)) + "): no value of /equal/by comes nearer"};
  std::string text;
  for (const std::string& setting : settings) text += (text.empty() ? "" : ", ") + setting;
  throw UsageError("/equal: " + cell.name + " comes no nearer than " + percent(off(amount)) + " to " + std::to_string(std::llround(goal)) +
                   " parameters (" + (text.empty() ? "nothing could be changed" : text) +
                   "); name a finer setting in /equal/by, like architecture.mlp_width");
}

double flops_per_step(const RunConfig& config) { return make_plan(config, vocabulary_of(config.data.tokenizer)).flops_per_step; }

std::vector<std::string> steps_for(double steps, const RunConfig& config) {
  const int64_t nearest_step = std::max<int64_t>(1, std::llround(steps));
  if (nearest_step == config.training.steps) return {};
  return {"training.steps=" + std::to_string(nearest_step)};
}

}  // namespace

namespace {

InferenceModel planned_model(const RunConfig& config) {
  return {config.architecture,
          vocabulary_of(config.data.tokenizer),
          config.data.sequence_length,
          Device::plan(Engine::cpu),
          "f32",
          static_cast<uint64_t>(config.training.seed)};
}

}  // namespace

int64_t count_parameters(const RunConfig& config) { return planned_model(config).model().parameter_count(); }

double count_state(const RunConfig& config) { return planned_model(config).model().state_values_per_token(); }

std::vector<std::string> solve_parameters(int64_t goal, const std::vector<std::string>& by, const EqualCell& cell) {
  return equal_models({StudyEqual::What::parameters, by, {}}, static_cast<double>(goal), cell).settings;
}

EqualSolution solve_equal(const StudyEqual& equal, const RunConfig& goal, const EqualCell& cell) {
  if (equal.what == StudyEqual::What::seconds) return {};
  if (equal.what == StudyEqual::What::parameters || equal.what == StudyEqual::What::state)
    return equal_models(equal, amount_of(equal.what, goal), cell);
  const RunConfig config = cell.parse({});
  if (goal.training.batch_warmup_steps > 0 || config.training.batch_warmup_steps > 0)
    throw UsageError("/equal: " + cell.name + " has a batch that grows; expected training.batch_warmup_steps 0 where steps are solved for");
  const auto steps = static_cast<double>(goal.training.steps);
  if (equal.what == StudyEqual::What::tokens)
    return {steps_for(steps * static_cast<double>(goal.training.batch_tokens) / static_cast<double>(config.training.batch_tokens), config),
            ""};
  return {steps_for(steps * flops_per_step(goal) / flops_per_step(config), config), ""};
}

}  // namespace saccade
