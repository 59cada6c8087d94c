#include "models/optimizers/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/engine/transfer.h"
#include "models/suggest.h"

namespace saccade {
namespace {

std::vector<std::unique_ptr<OptimizerEntry>>& entries() {
  static std::vector<std::unique_ptr<OptimizerEntry>> list;
  return list;
}

}  // namespace

RegisterOptimizer::RegisterOptimizer(OptimizerEntry entry) {
  entries().push_back(std::make_unique<OptimizerEntry>(std::move(entry)));
  std::sort(entries().begin(), entries().end(), [](const auto& a, const auto& b) { return a->id < b->id; });
}

const std::vector<const OptimizerEntry*>& optimizers() {
  static const std::vector<const OptimizerEntry*> list = [] {
    std::vector<const OptimizerEntry*> all;
    for (const auto& entry : entries()) all.push_back(entry.get());
    return all;
  }();
  return list;
}

const OptimizerEntry& optimizer(const std::string& id) {
  std::vector<std::string> names;
  for (const OptimizerEntry* entry : optimizers()) {
    if (entry->id == id) return *entry;
    names.push_back(entry->id);
  }
  throw UsageError("there is no optimizer \"" + id + "\"" + did_you_mean(id, names));
}

Tensor OptimizedModel::state_of(size_t parameter) const {
  const Tensor& value = parameters()[parameter].value;
  Tensor x = arena.allocate(value.shape(), value.dtype());
  if (x.raw()) fill_zero(x);
  return x;
}

bool fits_pattern(const std::string& name, const std::string& pattern) {
  size_t n = 0, p = 0, star = std::string::npos, after = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++after;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

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
