// Tables of papers as they come with the program, and how they stand beside charts.
#include <QtTest>
#include <cmath>
#include <map>
#include <set>

#include "analysis/figures/empty_panels.h"
#include "analysis/figures/published.h"
#include "analysis/figures/recipe.h"
#include "kernels/engine/error.h"
#include "models/resources.h"

using namespace saccade;

namespace {

const std::map<std::string, double> kItems{{"mmlu", 14042}, {"openbookqa", 500},  {"arc-easy", 2376}, {"arc-challenge", 1172},
                                           {"boolq", 3270}, {"race", 1045},       {"siqa", 1954},     {"sciq", 1000},
                                           {"copa", 100},   {"hellaswag", 10042}, {"piqa", 1838},     {"winogrande", 1267},
                                           {"wsc273", 273}, {"swde", 1111},       {"fda", 1102},      {"squad-completion", 2984}};

size_t column_of(const PublishedTable& table, const std::string& name) {
  return static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin());
}

/// Columns whose names are tasks.
std::vector<size_t> tasks_of(const PublishedTable& table) {
  std::vector<size_t> places;
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (kItems.contains(table.columns[i])) places.push_back(i);
  return places;
}

}  // namespace

class PublishedTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void everyTableNamesItsSource() {
    const std::vector<std::string> names = published_tables();
    QVERIFY(names.size() >= 15);
    for (const std::string& name : names) {
      const PublishedTable table = load_published(name);
      const std::string paper = name.substr(0, 10), number = name.substr(name.find("table-") + 6);
      QVERIFY2(table.source == "arXiv:" + paper + ", table " + number.substr(0, number.find('-')), name.c_str());
      QVERIFY2(!table.rows.empty() && !table.columns.empty() && !table.title.empty(), name.c_str());
      std::set<std::string> rows;
      for (const PublishedTable::Row& row : table.rows) QVERIFY2(rows.insert(row.name).second, row.name.c_str());
    }
    QCOMPARE(load_published("2506.11305-table-8").rows.size(), size_t{69});
  }

  /// Printed means are those of the printed scores, but where the table's note says otherwise: a slip of a digit would show.
  void meansAreThoseOfTheScores() {
    const std::map<std::string, size_t> apart{{"2506.11305-table-8", 1}, {"2506.11305-table-13", 15}};
    for (const std::string& name : published_tables()) {
      const PublishedTable table = load_published(name);
      const size_t mean = column_of(table, "mean");
      if (mean == table.columns.size()) continue;
      size_t others = 0;
      for (const PublishedTable::Row& row : table.rows) {
        double sum = 0;
        for (const size_t task : tasks_of(table)) sum += row.values[task];
        others += std::abs(sum / static_cast<double>(tasks_of(table).size()) - row.values[mean]) > 0.011;
      }
      QVERIFY2(others == (apart.contains(name) ? apart.at(name) : 0), name.c_str());
      QVERIFY2((others > 0) == (table.note.find("mean") != std::string::npos) || name == "2506.11305-table-2", name.c_str());
    }
  }

  /// Scores of arXiv:2505.18522 are shares of the tasks' items, to the last digit.
  void scoresAreSharesOfTheItems() {
    for (const char* name : {"2505.18522-table-1", "2505.18522-table-2"}) {
      const PublishedTable table = load_published(name);
      for (const PublishedTable::Row& row : table.rows)
        for (const size_t task : tasks_of(table)) {
          const double items = kItems.at(table.columns[task]), share = std::round(row.values[task] * items / 100) / items;
          QVERIFY2(std::abs(100 * share - row.values[task]) < 0.00501, (row.name + " " + table.columns[task]).c_str());
        }
    }
  }

  /// Standard errors are deviations over the root of three, intervals 4.303 of them (arXiv:2506.11305, appendix L).
  void statisticsOfCheckpointsHold() {
    for (const PublishedTable::Row& row : load_published("2506.11305-table-14").rows) {
      QVERIFY2(std::abs(row.values[1] / std::sqrt(3) - row.values[2]) < 2e-4, row.name.c_str());
      QVERIFY2(std::abs(row.values[0] - 4.303 * row.values[2] - row.values[3]) < 0.011, row.name.c_str());
      QVERIFY2(std::abs(row.values[0] + 4.303 * row.values[2] - row.values[4]) < 0.011, row.name.c_str());
    }
  }

  void numbersAreHollowMarkers() {
    Figure figure;
    add_published_numbers(figure, load_published("2506.11305-table-6"), "perplexity", "architecture.tail");
    QCOMPARE(figure.curves.size(), size_t{5});
    int in_legend = 0;
    for (const Curve& curve : figure.curves) {
      QVERIFY(curve.sparse && curve.marker != Marker::none && curve.x.size() == 1 && is_published(curve));
      QCOMPARE(curve.label, std::string("published (arXiv:2506.11305, table 6)"));
      in_legend += curve.in_legend;
    }
    QCOMPARE(in_legend, 1);
    QCOMPARE(figure.curves[2].x.back(), 0.5);
    QCOMPARE(figure.curves[2].y.back(), 30.18);
    QVERIFY(to_csv(figure).find("published (arXiv:2506.11305, table 6)") != std::string::npos);

    figure.curves.clear();
    add_published_numbers(figure, load_published("2506.11305-table-10"), "perplexity", "training.learning_rate");
    std::set<std::string> looks;
    for (const Curve& curve : figure.curves) looks.insert(curve.label);
    QVERIFY(figure.curves.front().marker != figure.curves.back().marker && figure.curves.front().colour != figure.curves.back().colour);
    QCOMPARE(looks,
             (std::set<std::string>{"constant, published (arXiv:2506.11305, table 10)", "cosine, published (arXiv:2506.11305, table 10)"}));
    add_published_numbers(figure, load_published("2506.11305-table-3"), "perplexity", "training.learning_rate");  // rows without a rate
    QCOMPARE(figure.curves.size(), size_t{6});
  }

  void scoresStandAtTheirTasks() {
    Figure figure;
    figure.x.names = {"piqa", "mqar", "siqa"};
    add_published_scores(figure, load_published("2506.11305-table-2", {"Avey-153M", "RWKV-7-1.5B"}));
    QCOMPARE(figure.curves.size(), size_t{4});
    QVERIFY(figure.curves[0].x.back() > 1.3 && figure.curves[0].x.back() < 1.5);
    QCOMPARE(figure.curves[0].y.back(), 0.6837);
    QCOMPARE(figure.curves[3].y.back(), 0.4171);
    QVERIFY_THROWS_EXCEPTION(UsageError, load_published("2506.11305-table-2", {"Avey-154M"}));
    QVERIFY_THROWS_EXCEPTION(UsageError, load_published("2506.11305-table-99"));
    QVERIFY_THROWS_EXCEPTION(DataError, load_published("/nowhere/table.json"));
  }

  /// The paper's numbers alone are nothing to show.
  void aPageOfPublishedNumbersIsEmpty() {
    const FigureRecipe recipe = parse_recipe(
        R"({"panels": [{"chart": "table", "published": "2506.11305-table-6"},
                       {"chart": "setting", "value": "perplexity", "against": "architecture.tail", "published": "2506.11305-table-6"}]})",
        "r", "r");
    QVERIFY(parse_recipe(to_json(recipe).dump(), "again", "r") == recipe);
    const FigurePage page = make_page(recipe, {});
    QCOMPARE(page.tables.size(), size_t{2});
    QCOMPARE(page.tables[1].rows.size(), size_t{5});
    QCOMPARE(page.tables[1].rows[2][1], std::string("30.18"));
    const std::string latex = to_latex(page);  // a label of its own, and no word of our runs in its caption
    QVERIFY(latex.find("\\label{tab:r-2}") != std::string::npos &&
            latex.find("as published (arXiv:2506.11305, table 6).}") != std::string::npos);
    QCOMPARE(page.panels[0].curves.size(), size_t{5});
    QCOMPARE(empty_parts(recipe, page), (std::vector<std::string>{"panel 1 (table)", "panel 2 (setting)"}));
    QVERIFY2(page.caption.find("The figure has published numbers alone: no run has recorded what it shows.") != std::string::npos,
             page.caption.c_str());
    QCOMPARE(empty_words(recipe, page), std::string("no run has recorded what panel 1 (table), panel 2 (setting) show"));
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_recipe(R"({"panels": [{"chart": "loss", "published": "2506.11305-table-6"}]})", "r", "r"));
  }

  /// However far they lie from the runs' own.
  void theAxisReachesPublishedNumbers() {
    const std::string panel =
        R"("chart": "setting", "value": "perplexity", "against": "architecture.tail", "published": "2506.11305-table-6")";
    const Figure figure = make_page(parse_recipe("{\"panels\": [{" + panel + "}]}", "r", "r"), {}).panels.at(0);
    QVERIFY(figure.y.range);
    for (const Curve& curve : figure.curves)
      for (const double y : curve.y) QVERIFY(y > figure.y.range->at(0) && y < figure.y.range->at(1));
    const Figure chosen = make_page(parse_recipe("{\"panels\": [{" + panel + ", \"y_range\": [1, 2]}]}", "r", "r"), {}).panels.at(0);
    QCOMPARE(*chosen.y.range, (std::array<double, 2>{1, 2}));
  }

  /// Every shipped recipe that names a table names one that is there, and rows of it.
  void recipesNameTables() {
    int named = 0;
    for (const std::string& name : shipped_recipes())
      for (const PanelRecipe& panel : load_recipe(find_recipe(name)).panels) {
        if (panel.published.empty()) continue;
        QVERIFY(!load_published(panel.published, panel.published_rows).rows.empty());
        ++named;
      }
    QVERIFY(named >= 15);
  }
};

QTEST_APPLESS_MAIN(PublishedTest)
#include "published_test.moc"
