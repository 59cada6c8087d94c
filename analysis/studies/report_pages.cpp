#include "analysis/studies/report_pages.h"

#include "analysis/figures/recipe.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace {

std::vector<Run> runs_shown(const StudyView& view, const std::vector<CellNumbers>& cells) {
  std::vector<Run> runs;
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds) {
      const std::filesystem::path directory = view.directory / "runs" / seed.run;
      runs.emplace_back(directory);
      for (const RunEnd& branch : seed.summary.branches) runs.emplace_back(directory / branch.branch);
    }
  return runs;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

void add_page(RecipePages& made, const std::string& name, const RunSet& runs) {
  const FigureRecipe recipe = load_recipe(find_recipe(name));
  FigurePage page;
  try {
    page = make_page(recipe, runs, {}, tuning_by_study());
  } catch (const UsageError& error) {  // it asks for what no run has
    made.remarks.push_back("The figure " + name + " is not drawn: " + error.what() + ".");
    return;
  }
  const std::vector<std::string> empty = empty_parts(recipe, page);
  const std::string words = "no run has recorded what " + joined(empty) + (empty.size() > 1 ? " show." : " shows.");
  if (empty.size() == recipe.panels.size()) {
    made.remarks.push_back("The figure " + name + " is not drawn: " + words);
    return;
  }
  if (!empty.empty()) made.remarks.push_back("The figure " + name + " is empty in part: " + words);
  made.pages.push_back({std::move(page), recipe.formats});
}

}  // namespace

RecipePages recipe_pages(const StudyView& view, const std::vector<CellNumbers>& cells) {
  RecipePages made;
  if (view.study.recipes.empty()) return made;
  const std::vector<Run> runs = runs_shown(view, cells);
  RunSet all;
  for (const Run& run : runs) all.push_back(&run);
  for (const std::string& name : view.study.recipes) add_page(made, name, all);
  return made;
}

}  // namespace saccade
