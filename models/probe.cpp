#include "models/probe.h"

#include <array>

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

}  // namespace saccade
