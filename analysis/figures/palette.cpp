#include "analysis/figures/palette.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

namespace saccade {
namespace {

using Shades = std::array<Colour, 5>;

constexpr Shades shades(const std::array<uint32_t, 5>& rgb) {
  Shades all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {static_cast<uint8_t>(rgb[i] >> 16), static_cast<uint8_t>(rgb[i] >> 8 & 0xFF), static_cast<uint8_t>(rgb[i] & 0xFF)};
  return all;
}

/// Hues of the first seven: Okabe and Ito 2008, safe for colour-blind readers; without their yellow, which has a contrast of 1.3 : 1 on
/// white. Shades were sought by annealing, within 12 degrees of their hue, so that every two of different architectures are far apart in
/// OKLab on white and on the dark ground, the first three of each farthest (charts_test::shades_are_of_one_architecture).
struct Known {
  std::string_view title;
  Shades shades;
};
constexpr Known kKnown[] = {{"Transformer++", shades({0x000000, 0x818181, 0x585858, 0xADADAD, 0x2C2C2C})},
                            {"Top-1 Chunk exact", shades({0x0072B2, 0x87A5CD, 0x004083, 0x7BC2FF, 0x40647E})},
                            {"Avey", shades({0xD55E00, 0xFF967A, 0xDA7D64, 0xEDBB94, 0x6F1B01})},
                            {"Mamba", shades({0x009E73, 0x8BCA9F, 0x107C48, 0x72A794, 0x24583D})},
                            {"RWKV-7", shades({0xCC79A7, 0xFF98EB, 0xD2A2BB, 0xEAC7DA, 0x6C4855})},
                            {"Top-1 Element", shades({0xE69F00, 0xBCA775, 0x8B7143, 0xF4D794, 0x734303})},
                            {"DeltaNet", shades({0x56B4E9, 0x96D0F1, 0x105E97, 0x568A9E, 0x2C4A67})},
                            {"GPT", shades({0xA81E2D, 0xFF6651, 0xFFA2B0, 0xCD8D96, 0x7B3B30})},
                            {"Mamba-2", shades({0x6BA51E, 0xAEC65D, 0x016D00, 0x5B8755, 0x2C4700})},
                            {"RWKV-6", shades({0x882255, 0xA97C97, 0x6D0551, 0xFF7CB0, 0x5A2D38})},
                            {"RWKV-5", shades({0xB04FD6, 0xE53FFE, 0xFC7AFF, 0xD0A7FF, 0x755696})},
                            {"Based", shades({0x8C5A2B, 0xE6985A, 0xAA8C7C, 0xD3B2A1, 0x5E4335})},
                            {"Gated DeltaNet", shades({0x332288, 0x976CFF, 0x637CD5, 0xB0A6DA, 0x7C98FF})},
                            {"Top-1 Chunk approx", shades({0x2CA0A0, 0x89B6BC, 0x07626C, 0xA6D7D7, 0x1B4447})}};
constexpr std::array<Shades, 5> kFurther{
    {shades({0x8B8B00, 0x96AC57, 0x5C7001, 0xCACA94, 0x535022}), shades({0x009701, 0x7E8D72, 0x6BCB63, 0xB3C1AC, 0x37452F}),
     shades({0x690596, 0xA59DFF, 0x3346ED, 0xC0BAEA, 0x728ED2}), shades({0xBB7300, 0xD3B468, 0x785707, 0xC7926D, 0x4F3911}),
     shades({0xA42792, 0xD285DE, 0x343A61, 0xBCB9CB, 0x8C8D9F})}};
constexpr std::array kMarkers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::wedge};

const Known* family(const std::string& title) {
  const Known* best = nullptr;
  for (const Known& known : kKnown)
    if (title.starts_with(known.title) && (!best || known.title.size() > best->title.size())) best = &known;
  return best;
}

const Shades& shades_of(const std::string& title, size_t unknown) {
  const Known* known = family(title);
  return known ? known->shades : kFurther[unknown % kFurther.size()];
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

Colour architecture_colour(const std::string& title, size_t unknown) { return shades_of(title, unknown).front(); }

std::string_view hue_title(const std::string& title) {
  const Known* known = family(title);
  return known ? known->title : std::string_view();
}

VariantLook variant_look(const std::string& title, size_t variant, size_t unknown) {
  const Shades& all = shades_of(title, unknown);
  return {all[variant % all.size()], kMarkers[variant / all.size() % kMarkers.size()]};
}

std::vector<VariantLook> variant_looks(const std::vector<std::string>& titles, const std::vector<VariantLook>& taken) {
  std::map<std::string, size_t> variants;  // of a known family, or of a title
  std::map<std::string, size_t> unknown;
  std::vector<VariantLook> looks;
  for (const std::string& title : titles) {
    const Known* known = family(title);
    const size_t number = known ? 0 : unknown.try_emplace(title, unknown.size()).first->second;
    size_t& variant = variants[known ? std::string(known->title) : title];
    const auto is_taken = [&](size_t v) { return std::find(taken.begin(), taken.end(), variant_look(title, v, number)) != taken.end(); };
    for (size_t tries = 0; tries < kFurther[0].size() * kMarkers.size() && is_taken(variant); ++tries) ++variant;
    looks.push_back(variant_look(title, variant++, number));
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
