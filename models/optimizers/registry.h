#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/adamw/adamw.h"
#include "models/json.h"
#include "models/model.h"
#include "models/settings.h"

namespace saccade {

/// Tensors that an optimizer keeps between steps, all of one meaning.
struct NamedTensor {
  std::string name;  ///< of the parameter
  Tensor tensor;
};
struct TensorGroup {
  std::string name;  ///< "first_moments", "momentum": the folder in a checkpoint
  std::vector<NamedTensor> tensors;
};

/// The update of one model's parameters. On a GPU what `update` launches is captured as a graph and replayed; what changes from step to
/// step it reads from `rates` on its device.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// What `update` reads at this step (counted from 1), always as many numbers.
  virtual std::vector<double> rates(double learning_rate, int64_t step) const = 0;
  /// Clips by global norm (0: not) and updates values and compute copies; touches nothing where `norm` f64 [1] is not finite. `rates` f64
  /// [n].
  virtual void update(Tape& tape, const Tensor& rates, double clip, const Tensor& norm) = 0;
  /// All that a run needs to go on, in the optimizer's own memory; of slots that are pieces of parameters, these pieces.
  virtual std::vector<TensorGroup> state() const = 0;
};

/// Elements begin … end − 1 of a parameter, by its number in the model.
struct Piece {
  size_t parameter = 0;
  int64_t begin = 0, end = 0;
};

/// What an optimizer is made for: slots, without moments, in the order of the model's parameters; where several ranks share the model,
/// those of one shard (models/training/shards.h).
struct OptimizedModel {
  const Model& model;
  const std::vector<AdamWSlot>& slots;
  const std::vector<Piece>& pieces;  ///< what each slot is of the parameters
  Arena& arena;                      ///< where the state goes

  const Parameter& parameter(size_t slot) const { return model.parameters()[pieces[slot].parameter]; }
  /// Zeros in the shape of a slot.
  Tensor state_of(size_t slot) const;
};

/// One entry of the registry of optimizers (`training.optimizer`).
struct OptimizerEntry {
  std::string id;     ///< "adamw"
  std::string title;  ///< "AdamW"
  std::string paper;  ///< citation with section
  std::vector<Setting> settings;
  std::function<std::unique_ptr<Optimizer>(const nlohmann::json& values, const OptimizedModel&)> make;
  /// Whether it takes a parameter only as a whole; empty: it takes pieces of any.
  std::function<bool(const nlohmann::json& values, const Model&, size_t parameter)> whole = {};
};

/// All entries, sorted by id. A file registers its own with a namespace-scope `const RegisterOptimizer`.
const std::vector<const OptimizerEntry*>& optimizers();
/// Throws UsageError with a suggestion when there is none of that id.
const OptimizerEntry& optimizer(const std::string& id);

struct RegisterOptimizer {
  explicit RegisterOptimizer(OptimizerEntry entry);
};

/// Whether a tensor's name fits a pattern as the shell's: * stands for any characters, ? for one, [0-3] for one of these.
bool fits_pattern(const std::string& name, const std::string& pattern);

/// Factor of the learning rate for tensors whose names fit a pattern.
struct RateMultiplier {
  std::string pattern;
  double factor = 1;
};
/// Reads "layer*.key=0.5". Throws UsageError naming `pointer`.
std::vector<RateMultiplier> parse_multipliers(const std::vector<std::string>& texts, const std::string& pointer);
/// Of every parameter, 1 where no pattern fits, else of the first that does. Throws UsageError for a pattern that fits no parameter.
std::vector<double> rate_factors(const std::vector<RateMultiplier>& multipliers, const std::vector<Parameter>& parameters,
                                 const std::string& pointer);

}  // namespace saccade
