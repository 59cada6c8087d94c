#include "analysis/figures/palette.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "analysis/comparison/groups.h"

namespace saccade {
namespace {

// Okabe and Ito 2008, safe for colour-blind readers; without their yellow, which has a contrast of 1.3 : 1 on white.
constexpr std::array<Colour, 7> kColours = {{{0x00, 0x00, 0x00},
                                             {0x00, 0x72, 0xB2},
                                             {0xD5, 0x5E, 0x00},
                                             {0x00, 0x9E, 0x73},
                                             {0xCC, 0x79, 0xA7},
                                             {0xE6, 0x9F, 0x00},
                                             {0x56, 0xB4, 0xE9}}};
constexpr std::array kMarkers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::wedge};
enum ColourName : size_t { black, blue, vermilion, green, purple, orange, sky };

struct Slot {
  size_t colour, marker;
  auto operator<=>(const Slot&) const = default;
};

/// Own places, so that an architecture looks the same beside whatever else: kin differ in colour, not in marker alone.
struct Known {
  std::string_view label;
  Slot slot;
};
constexpr Known kKnown[] = {
    {"Transformer++", {black, 0}},   {"Top-1 Chunk exact", {blue, 0}}, {"Avey", {vermilion, 0}}, {"Mamba", {green, 0}},
    {"RWKV-7", {purple, 0}},         {"Top-1 Element", {orange, 0}},   {"DeltaNet", {sky, 0}},   {"GPT", {black, 1}},
    {"Mamba-2", {blue, 1}},          {"RWKV-6", {vermilion, 1}},       {"RWKV-5", {green, 1}},   {"Based", {purple, 1}},
    {"Gated DeltaNet", {orange, 1}}, {"Top-1 Chunk approx", {sky, 1}}};

/// The slot of a variant ("Transformer++ window 64"): free, of the colour that is used least, then near its own family's. The first
/// of several settings of a known architecture ("Avey (run-a)", "Avey (run-b)") has the architecture's own.
Slot free_slot(const std::string& label, const std::vector<Slot>& used) {
  size_t family = green, longest = 0;
  for (const Known& known : kKnown) {
    if (label.starts_with(std::string(known.label) + " (") && std::count(used.begin(), used.end(), known.slot) == 0) return known.slot;
    if (label.starts_with(known.label) && known.label.size() > longest) family = known.slot.colour, longest = known.label.size();
  }
  const auto cost = [&](const Slot& slot) {
    return std::tuple(std::count(used.begin(), used.end(), slot),
                      std::count_if(used.begin(), used.end(), [&](const Slot& u) { return u.colour == slot.colour; }), slot.marker,
                      (slot.colour + kColours.size() - family) % kColours.size());
  };
  Slot best{family, 0};
  for (size_t marker = 0; marker < kMarkers.size(); ++marker)
    for (size_t colour = 0; colour < kColours.size(); ++colour)
      if (const Slot slot{colour, marker}; cost(slot) < cost(best)) best = slot;
  return best;
}

std::string first_start(const RunGroup& group) {
  std::string first;
  for (const Run* run : group.seeds) {
    const auto started = run->info().provenance.find("started");
    if (started == run->info().provenance.end() || !started->is_string()) continue;
    if (const std::string time = started->get<std::string>(); first.empty() || time < first) first = time;
  }
  return first;
}

}  // namespace

std::map<std::string, ArchitectureLook> architecture_looks(const std::vector<std::string>& labels) {
  std::map<std::string, Slot> slots;
  std::vector<Slot> used;
  for (const Known& known : kKnown)
    if (std::find(labels.begin(), labels.end(), known.label) != labels.end()) used.push_back(slots[std::string(known.label)] = known.slot);
  for (const std::string& label : labels)
    if (!slots.contains(label)) used.push_back(slots[label] = free_slot(label, used));
  std::map<std::string, ArchitectureLook> looks;
  for (const auto& [label, slot] : slots) looks[label] = {kColours[slot.colour], kMarkers[slot.marker]};
  return looks;
}

Dash seed_dash(size_t rank) {
  constexpr std::array kDashes = {Dash::solid, Dash::dash, Dash::dot, Dash::dash_dot};
  return kDashes[rank % kDashes.size()];
}

std::vector<RunLook> run_looks(const std::vector<const Run*>& runs, const std::vector<const Run*>& among) {
  std::vector<const Run*> all = among;
  for (const Run* run : runs)
    if (std::find(all.begin(), all.end(), run) == all.end()) all.push_back(run);
  std::vector<RunGroup> groups = group_runs(all);
  std::sort(groups.begin(), groups.end(), [](const RunGroup& a, const RunGroup& b) {  // who comes later changes nobody's look
    return std::tuple(first_start(a), a.label) < std::tuple(first_start(b), b.label);
  });
  std::vector<std::string> labels;
  for (const RunGroup& group : groups) labels.push_back(group.label);
  const auto architectures = architecture_looks(labels);
  std::map<const Run*, RunLook> looks;
  for (const RunGroup& group : groups)
    for (size_t rank = 0; rank < group.seeds.size(); ++rank) {
      const RunInfo& info = group.seeds[rank]->info();
      const auto twins = std::count_if(group.seeds.begin(), group.seeds.end(), [&](const Run* r) { return r->info().seed == info.seed; });
      std::string label = group.label;
      if (group.seeds.size() > 1) label += ", seed " + std::to_string(info.seed);
      if (twins > 1) label += " (" + info.directory.filename().string() + ")";
      const ArchitectureLook& look = architectures.at(group.label);
      looks[group.seeds[rank]] = {group.label, label, look.colour, look.marker, seed_dash(rank)};
    }
  std::vector<RunLook> list;
  for (const Run* run : runs) list.push_back(looks.at(run));
  return list;
}

}  // namespace saccade
