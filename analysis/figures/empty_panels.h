#pragma once
#include <string>

#include "analysis/figures/page.h"
#include "analysis/figures/recipe.h"

namespace saccade {

/// Of the parts that empty_parts() names: "no run has recorded what panel 1 (loss) shows"; of charts of benchmarks "no file of saccade
/// bench has what panel 2 (first-token) shows". Empty where every part shows something.
std::string empty_words(const FigureRecipe& recipe, const FigurePage& page);

/// A sentence of a caption on the panels that show nothing of their own: "(b) is empty: no run has recorded what it shows."; where a
/// paper's numbers stand there "(b) has published numbers alone: …". Nothing of the only panel of a page, which is refused, but where
/// published numbers are all that it shows.
std::string empty_note(const FigureRecipe& recipe, const FigurePage& page);

}  // namespace saccade
