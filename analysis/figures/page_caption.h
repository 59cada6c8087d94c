#pragma once
#include "analysis/figures/recipe.h"

namespace saccade {

/// So many groups of runs a caption names; of more it says how many there are. Tables and CSV name them all.
inline constexpr size_t kNamedGroups = 20;

/// "Transformer++ (seeds 1, 2; 61 k tokens), Avey (seed 1; 61 k tokens; cooldown branches of 32 k tokens, not finished)", a group of seeds
/// each, its branches with it; of more than kNamedGroups "33 runs of 26 settings (seeds 1, 2; 205 k tokens) and 33 cooldown branches (128 k
/// tokens)". Empty without runs.
std::string runs_in_caption(const DrawnSet& drawn);

/// What a page of several seeds shows of them: "Means over seeds; bands are one standard deviation." Panels with other bands than the first
/// are told by their letters; what tables give behind ± is told of tables of losses, those of scores say it themselves.
std::string seeds_note(const FigureRecipe& recipe);

/// "Title. After SOURCE. Transformer++ (seeds 1, 2; 61 k tokens), Avey (seed 1; …). NOTES Saccade 0.1.0."
std::string caption_of(const FigureRecipe& recipe, const DrawnSet& drawn, const std::vector<std::string>& notes);

}  // namespace saccade
