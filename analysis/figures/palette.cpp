#include "analysis/figures/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace saccade {
namespace {

/// The first seven: Okabe and Ito 2008, safe for colour-blind readers; without their yellow, which has a contrast of 1.3 : 1 on white.
struct Known {
  std::string_view title;
  Colour colour;
};
constexpr Known kKnown[] = {{"Transformer++", {0x00, 0x00, 0x00}},  {"Top-1 Chunk exact", {0x00, 0x72, 0xB2}},
                            {"Avey", {0xD5, 0x5E, 0x00}},           {"Mamba", {0x00, 0x9E, 0x73}},
                            {"RWKV-7", {0xCC, 0x79, 0xA7}},         {"Top-1 Element", {0xE6, 0x9F, 0x00}},
                            {"DeltaNet", {0x56, 0xB4, 0xE9}},       {"GPT", {0xA8, 0x1E, 0x2D}},
                            {"Mamba-2", {0x6B, 0xA5, 0x1E}},        {"RWKV-6", {0x88, 0x22, 0x55}},
                            {"RWKV-5", {0xB0, 0x4F, 0xD6}},         {"Based", {0x8C, 0x5A, 0x2B}},
                            {"Gated DeltaNet", {0x33, 0x22, 0x88}}, {"Top-1 Chunk approx", {0x2C, 0xA0, 0xA0}}};
constexpr std::array<Colour, 5> kFurther{
    {{0x80, 0x80, 0x00}, {0x4B, 0x6B, 0x3A}, {0x6A, 0x5A, 0xCD}, {0xB8, 0x86, 0x0B}, {0x4F, 0x4F, 0x6F}}};
constexpr std::array kMarkers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::wedge};

const Known* family(const std::string& title) {
  const Known* best = nullptr;
  for (const Known& known : kKnown)
    if (title.starts_with(known.title) && (!best || known.title.size() > best->title.size())) best = &known;
  return best;
}

Colour mixed(Colour colour, Colour with, double share) {
  const auto mix = [&](uint8_t a, uint8_t b) { return static_cast<uint8_t>(std::lround(a + share * (b - a))); };
  return {mix(colour.r, with.r), mix(colour.g, with.g), mix(colour.b, with.b)};
}

/// When the group's first run started, to the second, and its directory.
std::pair<std::string, std::string> first_start(const RunGroup& group) {
  std::pair<std::string, std::string> first;
  for (const Run* run : group.seeds) {
    const RunInfo& info = run->info();
    const auto started = info.provenance.find("started");
    const bool known = started != info.provenance.end() && started->is_string();
    const std::pair now{known ? started->get<std::string>() : std::string(), info.directory.filename().string()};
    if (first.second.empty() || now < first) first = now;
  }
  return first;
}

}  // namespace

Colour architecture_colour(const std::string& title, size_t unknown) {
  const Known* known = family(title);
  return known ? known->colour : kFurther[unknown % kFurther.size()];
}

VariantLook variant_look(Colour hue, size_t variant) {
  constexpr Colour kWhite{255, 255, 255}, kBlack{0, 0, 0};
  const bool dark = hue.r + hue.g + hue.b < 60;  // black has lighter shades only
  constexpr std::array kShares{0.0, 0.38, 0.35, 0.58, 0.6};
  constexpr std::array kOfBlack{0.0, 0.45, 0.28, 0.6, 0.15};
  const size_t shade = variant % kShares.size();
  const Colour colour = dark ? mixed(hue, kWhite, kOfBlack[shade]) : mixed(hue, shade % 2 == 1 ? kWhite : kBlack, kShares[shade]);
  return {colour, kMarkers[variant / kShares.size() % kMarkers.size()]};
}

std::vector<VariantLook> variant_looks(const std::vector<std::string>& titles) {
  std::map<std::string, size_t> variants;  // of a known family, or of a title
  std::map<std::string, size_t> unknown;
  std::vector<VariantLook> looks;
  for (const std::string& title : titles) {
    const Known* known = family(title);
    const size_t number = known ? 0 : unknown.try_emplace(title, unknown.size()).first->second;
    looks.push_back(variant_look(architecture_colour(title, number), variants[known ? std::string(known->title) : title]++));
  }
  return looks;
}

Dash seed_dash(size_t rank) {
  constexpr std::array kDashes = {Dash::solid, Dash::dash, Dash::dot, Dash::dash_dot};
  return kDashes[rank % kDashes.size()];
}

std::vector<RunLook> group_looks(const std::vector<RunGroup>& groups) {
  std::vector<std::pair<std::string, std::string>> starts;
  for (const RunGroup& group : groups) starts.push_back(first_start(group));
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return starts[a] < starts[b]; });  // a later one changes no look
  std::vector<std::string> titles;
  for (const size_t i : order) titles.push_back(groups[i].seeds.front()->info().title);
  const std::vector<VariantLook> variants = variant_looks(titles);
  std::vector<RunLook> looks(groups.size());
  for (size_t n = 0; n < order.size(); ++n) {
    const std::string& label = groups[order[n]].label;
    looks[order[n]] = {label, label, variants[n].colour, variants[n].marker, Dash::solid};
  }
  return looks;
}

RunLook seed_look(const RunGroup& group, size_t rank, const RunLook& of_group) {
  const RunInfo& info = group.seeds[rank]->info();
  RunLook look = of_group;
  if (group.seeds.size() > 1) look.label += ", seed " + std::to_string(info.seed);
  const auto twins = std::count_if(group.seeds.begin(), group.seeds.end(), [&](const Run* r) { return r->info().seed == info.seed; });
  if (twins > 1) look.label += " (" + info.directory.filename().string() + ")";
  look.dash = seed_dash(rank);
  return look;
}

std::vector<RunLook> run_looks(const std::vector<const Run*>& runs, const std::vector<const Run*>& among) {
  std::vector<const Run*> all = among;
  all.insert(all.end(), runs.begin(), runs.end());
  const std::vector<RunGroup> groups = group_runs(all);
  const std::vector<RunLook> of_groups = group_looks(groups);
  std::map<const Run*, RunLook> looks;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t rank = 0; rank < groups[g].seeds.size(); ++rank) looks[groups[g].seeds[rank]] = seed_look(groups[g], rank, of_groups[g]);
  std::vector<RunLook> list;
  for (const Run* run : runs) list.push_back(looks.at(run));
  return list;
}

}  // namespace saccade
