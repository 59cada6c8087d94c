#include <algorithm>
#include <array>
#include <set>

#include "analysis/figures/figure.h"

namespace saccade {
namespace {

// Okabe and Ito 2008. Yellow stands last: it is too light for thin lines on white.
constexpr std::array<Colour, 8> kOkabeIto = {{{0x00, 0x00, 0x00},
                                              {0x00, 0x72, 0xB2},
                                              {0xD5, 0x5E, 0x00},
                                              {0x00, 0x9E, 0x73},
                                              {0xCC, 0x79, 0xA7},
                                              {0xE6, 0x9F, 0x00},
                                              {0x56, 0xB4, 0xE9},
                                              {0xF0, 0xE4, 0x42}}};

/// What a title would have if it stood alone, so that the usual ones look the same in every study.
size_t preferred_colour(const std::string& title) {
  constexpr std::array<std::string_view, 6> kUsual = {"Transformer++", "Top-1 Chunk", "Avey", "Mamba", "Transformer", "Top-1 Element"};
  for (size_t i = 0; i < kUsual.size(); ++i)
    if (title.starts_with(kUsual[i])) return i;
  return 3;
}

}  // namespace

Colour architecture_colour(const std::string& title, const std::vector<std::string>& all_titles) {
  std::set<std::string> titles(all_titles.begin(), all_titles.end());
  titles.insert(title);
  std::set<size_t> taken;
  for (const std::string& each : titles) {
    if (taken.size() == kOkabeIto.size()) taken.clear();
    size_t index = preferred_colour(each);
    while (taken.contains(index)) index = (index + 1) % kOkabeIto.size();
    taken.insert(index);
    if (each == title) return kOkabeIto[index];
  }
  return {};
}

Dash seed_dash(int64_t seed_index) {
  constexpr std::array kDashes = {Dash::solid, Dash::dash, Dash::dot, Dash::dash_dot};
  return kDashes[static_cast<size_t>(seed_index) % kDashes.size()];
}

}  // namespace saccade
