#include "models/probe.h"

#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

namespace saccade {
namespace {

struct NamedKind {
  MapKind kind;
  const char* name;
  bool of_model;
};
constexpr std::array kKinds = {
    NamedKind{MapKind::weights, "weights", false},
    NamedKind{MapKind::soft_weights, "soft_weights", false},
    NamedKind{MapKind::selected, "selected", false},
    NamedKind{MapKind::score, "score", false},
    NamedKind{MapKind::captured_mass, "captured_mass", false},
    NamedKind{MapKind::margin, "margin", false},
    NamedKind{MapKind::maxsim, "maxsim", true},
    NamedKind{MapKind::chosen, "chosen", true},
    NamedKind{MapKind::split_weights, "split_weights", true},
};

const NamedKind& entry_of(MapKind kind) { return kKinds[static_cast<size_t>(kind)]; }

constexpr bool in_order() {
  for (size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i].kind != static_cast<MapKind>(i)) return false;
  return kKinds.back().kind == MapKind::split_weights;
}
static_assert(in_order(), "kKinds lists every MapKind in its order");

}  // namespace

const char* to_string(MapKind kind) { return entry_of(kind).name; }

std::optional<MapKind> parse_map_kind(const std::string& name) {
  for (const NamedKind& entry : kKinds)
    if (name == entry.name) return entry.kind;
  return {};
}

bool is_of_model(MapKind kind) { return entry_of(kind).of_model; }

HeadStatistic mean_of_sequences(const std::string& name, const std::string& unit, int64_t layer,
                                const std::vector<std::vector<double>>& sequences) {
  const size_t heads = sequences.front().size();
  HeadStatistic mean{name, unit, layer, std::vector<double>(heads), std::vector<int64_t>(heads)};
  for (size_t h = 0; h < heads; ++h) {
    for (const std::vector<double>& values : sequences)
      if (!std::isnan(values[h])) mean.heads[h] += values[h], ++mean.counts[h];
    mean.heads[h] = mean.counts[h] > 0 ? mean.heads[h] / static_cast<double>(mean.counts[h]) : std::numeric_limits<double>::quiet_NaN();
  }
  return mean;
}

namespace {

/// Sorted, without the empty places.
std::vector<int32_t> chosen_set(const ChosenSources& choices, int64_t head, int64_t query) {
  const auto count = static_cast<size_t>(choices.per_query);
  const auto all = std::span(choices.values).subspan(static_cast<size_t>(head * choices.queries + query) * count, count);
  std::vector<int32_t> set;
  std::copy_if(all.begin(), all.end(), std::back_inserter(set), [](int32_t c) { return c >= 0; });
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace

std::vector<double> churn(const ChosenSources& before, const ChosenSources& now) {
  if (before.heads != now.heads || before.queries != now.queries || before.per_query != now.per_query) return {};
  std::vector<double> heads;
  for (int64_t h = 0; h < now.heads; ++h) {
    int64_t changed = 0, choosing = 0;
    for (int64_t q = 0; q < now.queries; ++q) {
      const std::vector<int32_t> was = chosen_set(before, h, q), is = chosen_set(now, h, q);
      changed += was != is, choosing += !was.empty() || !is.empty();
    }
    heads.push_back(choosing > 0 ? static_cast<double>(changed) / static_cast<double>(choosing) : std::numeric_limits<double>::quiet_NaN());
  }
  return heads;
}

}  // namespace saccade
