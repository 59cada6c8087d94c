#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/comparison/groups.h"
#include "analysis/figures/figure.h"

namespace saccade {

/// The hue of an architecture, by its title. Known architectures have their own, whatever else there is, and so have their kin
/// ("Transformer++ window 64" is a Transformer++); others get one of a few more by `unknown`, their number among those not known.
Colour architecture_colour(const std::string& title, size_t unknown = 0);

/// The known architecture whose hue a title has: "Transformer++" of "Transformer++ window 64". Empty: it has no hue of its own.
std::string_view hue_title(const std::string& title);

/// The look of the n-th setting of one architecture: five shades of its hue, then the next marker. No shade comes near another
/// architecture's.
struct VariantLook {
  Colour colour;
  Marker marker = Marker::circle;
  bool operator==(const VariantLook&) const = default;
};
VariantLook variant_look(const std::string& title, size_t variant, size_t unknown = 0);

/// The looks of variants of architectures, by the titles of their architectures: hues by title, shades in the order given, but none of
/// those that are `taken`, unless all are.
std::vector<VariantLook> variant_looks(const std::vector<std::string>& titles, const std::vector<VariantLook>& taken = {});

/// Of the seed of this rank in its group.
Dash seed_dash(size_t rank);

/// How a run, or a group of seeds, is called and drawn, the same in every figure and list.
struct RunLook {
  std::string architecture;  ///< label of its group
  std::string label;         ///< with the seed where there are several
  Colour colour;
  Marker marker = Marker::circle;
  Dash dash = Dash::solid;
  bool operator==(const RunLook&) const = default;
};
/// Of the seed of this rank in a group that has the look `of_group`: its label names the seed, and the folder where seeds are twins.
RunLook seed_look(const RunGroup& group, size_t rank, const RunLook& of_group);
/// Hue by architecture, shade by setting, dash by seed, in the order of `runs`. Which look is whose depends on when runs started: one that
/// starts later changes no other. `among`: all runs to tell apart, when those are more than `runs`.
std::vector<RunLook> run_looks(const std::vector<const Run*>& runs, const std::vector<const Run*>& among = {});

/// The look of whole groups, in the order of `groups`, which are all there are; solid lines. Labels are the groups'.
std::vector<RunLook> group_looks(const std::vector<RunGroup>& groups);

}  // namespace saccade
