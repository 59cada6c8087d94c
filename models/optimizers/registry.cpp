#include "models/optimizers/registry.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/engine/transfer.h"
#include "models/entries.h"

namespace saccade {
namespace {

Entries<OptimizerEntry>& entries() {
  static Entries<OptimizerEntry> list;
  return list;
}

}  // namespace

RegisterOptimizer::RegisterOptimizer(OptimizerEntry entry) {
  entries().add(std::move(entry), [](const OptimizerEntry& e) { return e.id; });
}

const std::vector<const OptimizerEntry*>& optimizers() { return entries().all(); }

const OptimizerEntry& optimizer(const std::string& id) { return entries().find("optimizer", id); }

Tensor OptimizedModel::state_of(size_t slot) const {
  const Tensor& value = slots[slot].value;
  Tensor x = arena.allocate(value.shape(), value.dtype());
  if (x.raw()) fill_zero(x);
  return x;
}

bool fits_pattern(const std::string& name, const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; }

std::vector<RateMultiplier> parse_multipliers(const std::vector<std::string>& texts, const std::string& pointer) {
  std::vector<RateMultiplier> multipliers;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    RateMultiplier m;
    const char* begin = equals == std::string::npos ? nullptr : text.data() + equals + 1;
    const char* end = text.data() + text.size();
    const bool read = begin && begin != end && std::from_chars(begin, end, m.factor).ptr == end;
    if (!read || equals == 0 || !std::isfinite(m.factor) || m.factor < 0)
      throw UsageError(pointer + " holds \"" + text +
                       "\"; expected a pattern of tensor names and a factor of at least 0, like layer*.key=0.5");
    m.pattern = text.substr(0, equals);
    multipliers.push_back(m);
  }
  return multipliers;
}

std::vector<double> rate_factors(const std::vector<RateMultiplier>& multipliers, const std::vector<Parameter>& parameters,
                                 const std::string& pointer) {
  for (const RateMultiplier& m : multipliers)
    if (std::none_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return fits_pattern(p.name, m.pattern); })) {
      std::vector<std::string> names;
      for (const Parameter& p : parameters) names.push_back(p.name);
      throw UsageError(pointer + ": no tensor of this model is called \"" + m.pattern + "\"" + did_you_mean(m.pattern, names));
    }
  std::vector<double> factors;
  for (const Parameter& p : parameters) {
    const auto found =
        std::find_if(multipliers.begin(), multipliers.end(), [&](const RateMultiplier& m) { return fits_pattern(p.name, m.pattern); });
    factors.push_back(found == multipliers.end() ? 1.0 : found->factor);
  }
  return factors;
}

}  // namespace saccade
