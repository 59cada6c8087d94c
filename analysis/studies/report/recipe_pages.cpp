#include "analysis/studies/report/recipe_pages.h"

#include "analysis/comparison/end_evaluations.h"
#include "analysis/figures/empty_panels.h"
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

/// A recipe that says nothing of them shows the losses that the report's tables show: the study's pre-training loss, and at the ends those
/// of the test split where the study has evaluated them.
void take_losses_of(const Study& study, FigureRecipe& recipe, const RunSet& runs) {
  constexpr const char* kKinds[] = {"validation", "weighted", "train"};
  const bool tested = study.evaluation.split == "test" && EndEvaluations(runs, "test").count() > 0;
  for (PanelRecipe& panel : recipe.panels) {
    const PanelRecipe usual;
    if (takes_pretraining(panel) && panel.pretraining == usual.pretraining)
      panel.pretraining = kKinds[static_cast<size_t>(study.pretraining.kind)], panel.window = study.pretraining.window;
    if (takes_split(panel) && tested) panel.split = "test";
  }
}

void add_page(RecipePages& made, const Study& study, const std::string& name, const RunSet& runs) {
  FigureRecipe recipe = load_recipe(find_recipe(name));
  take_losses_of(study, recipe, runs);
  FigurePage page;
  try {
    page = make_page(recipe, runs, {}, tuning_by_study());
  } catch (const UsageError& error) {  // it asks for what no run has
    made.remarks.push_back("The figure " + name + " is not drawn: " + error.what() + ".");
    return;
  }
  const std::vector<std::string> empty = empty_parts(recipe, page);
  const std::string words = empty_words(recipe, page) + ".";
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
  for (const std::string& name : view.study.recipes) add_page(made, view.study, name, all);
  return made;
}

}  // namespace saccade
