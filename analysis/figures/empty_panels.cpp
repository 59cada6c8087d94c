#include "analysis/figures/empty_panels.h"

#include <algorithm>
#include <vector>

#include "analysis/figures/published.h"

namespace saccade {
namespace {

/// Whether anything is drawn, published numbers left aside.
bool shows_own(const Figure& figure) {
  return figure.map || std::any_of(figure.curves.begin(), figure.curves.end(),
                                   [](const Curve& curve) { return !curve.x.empty() && !is_published(curve); });
}

/// The places in the recipe of panels that show nothing of their own.
std::vector<size_t> empty_panels(const FigureRecipe& recipe, const FigurePage& page) {
  std::vector<size_t> places;
  size_t figures = 0, tables = 0;
  for (size_t i = 0; i < recipe.panels.size(); ++i) {
    bool shows = false;
    if (is_table_chart(recipe.panels[i].chart)) {
      shows = !page.tables.at(tables++).rows.empty();
      tables += !recipe.panels[i].published.empty();
    } else {
      shows = shows_own(page.panels.at(figures++));
    }
    if (!shows) places.push_back(i);
  }
  return places;
}

std::string part_name(const FigureRecipe& recipe, size_t place) {
  return "panel " + std::to_string(place + 1) + " (" + recipe.panels[place].chart + ")";
}

/// Parts that are empty for one reason.
struct Parts {
  std::string names;
  size_t count = 0;
  void add(const std::string& name) { names += (count++ > 0 ? ", " : "") + name; }
  std::string show() const { return count > 1 ? " show" : " shows"; }
};

/// "(a), (b) are empty: no run has recorded what they show."
std::string sentence(const Parts& parts, const std::string& one, const std::string& several, const std::string& nobody) {
  if (parts.count == 0) return "";
  return parts.names + (parts.count > 1 ? several : one) + ": " + nobody + " what " + (parts.count > 1 ? "they show." : "it shows.");
}

constexpr const char* kNoRun = "no run has recorded";
constexpr const char* kNoBench = "no file of saccade bench has";

}  // namespace

std::vector<std::string> empty_parts(const FigureRecipe& recipe, const FigurePage& page) {
  std::vector<std::string> parts;
  for (const size_t place : empty_panels(recipe, page)) parts.push_back(part_name(recipe, place));
  return parts;
}

std::string empty_words(const FigureRecipe& recipe, const FigurePage& page) {
  Parts of_runs, of_bench;
  for (const size_t place : empty_panels(recipe, page))
    (is_bench_chart(recipe.panels[place].chart) ? of_bench : of_runs).add(part_name(recipe, place));
  std::string words;
  if (of_runs.count > 0) words = std::string(kNoRun) + " what " + of_runs.names + of_runs.show();
  if (of_bench.count > 0) words += (words.empty() ? "" : ", and ") + std::string(kNoBench) + " what " + of_bench.names + of_bench.show();
  return words;
}

std::string empty_note(const FigureRecipe& recipe, const FigurePage& page) {
  Parts of_runs, of_bench, published;
  size_t figure = 0;
  for (const PanelRecipe& panel : recipe.panels) {
    if (is_table_chart(panel.chart)) continue;
    const size_t place = figure++;
    if (shows_own(page.panels.at(place))) continue;
    const bool only_published = !page.panels[place].curves.empty();
    if (page.panels.size() < 2 && !only_published) continue;
    const std::string name = page.panels.size() < 2 ? "The figure" : "(" + std::string(1, static_cast<char>('a' + place)) + ")";
    (only_published ? published : is_bench_chart(panel.chart) ? of_bench : of_runs).add(name);
  }
  std::string note;
  for (const std::string& each :
       {sentence(of_runs, " is empty", " are empty", kNoRun), sentence(of_bench, " is empty", " are empty", kNoBench),
        sentence(published, " has published numbers alone", " have published numbers alone", kNoRun)})
    if (!each.empty()) note += (note.empty() ? "" : " ") + each;
  return note;
}

}  // namespace saccade
