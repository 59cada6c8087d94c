#include <QtTest>
#include <cmath>

#include "analysis/figures/recipe.h"
#include "analysis/figures/score_comparison.h"
#include "analysis/figures/score_figures.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_writer.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/tasks/task_run.h"
#include "kernels/engine/error.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {
namespace fs = std::filesystem;

/// Curves, maps, dots and tables of scores, from runs whose journals have made-up ones.
class ScoreFiguresTest : public QObject {
  Q_OBJECT

  struct Given {
    const char* task;
    double value, error;
    int64_t step = 10;
    bool partial = false;
  };
  QTemporaryDir folder_;

  Run scored(const std::string& mixer, int64_t seed, const std::vector<Given>& all, int64_t width = 16,
             const std::vector<std::string>& depths = {"10 %", "50 %"}) const {
    RunInfo info = fixture_info({.mixer = mixer, .seed = seed, .steps = 10});
    info.config["architecture"]["width"] = width;
    const fs::path directory = fs::path(folder_.path().toStdString()) / (mixer + std::to_string(seed) + "-" + std::to_string(width));
    fs::remove_all(directory);
    RunWriter writer = RunWriter::create(directory, info);
    writer.add(StepRecord{10, 1024, 6e9, 1, 4, 1e-3, 1.0, 1000});
    for (const Given& given : all) {
      TaskScoreRecord record{given.step, given.task, "acc", 0.25, "data", "checkpoint", {{"acc", given.value, given.error, 100}}};
      record.partial = given.partial;
      for (const std::string& depth : depths)
        record.scores.push_back({"acc depth " + depth, given.value - std::stod(depth) / 1000, 0.1, 50});
      writer.add(record);
    }
    writer.set_state(RunState::finished, 10);
    return Run(directory);
  }
  static FigurePage page_of(const std::string& panel, const RunSet& runs) {
    return make_page(parse_recipe(R"({"title": "t", "panels": [)" + panel + "]}", "recipe", "r"), runs);
  }
  static bool near(double a, double b) { return std::abs(a - b) < 1e-9; }

 private Q_SLOTS:
  void a_curve_over_lengths() {
    const std::vector<Given> longer{{"s-niah-1-4096", 0.5, 0.05},
                                    {"s-niah-1-2048", 0.9, 0.03},
                                    {"s-niah-2-2048", 0.1, 0.03},
                                    {"s-niah-1-2048", 0.8, 0.04, 5}};  // an earlier checkpoint
    const Run one = scored("attention", 1, longer), two = scored("attention", 2, {{"s-niah-1-2048", 0.7, 0.03}});
    const Run other = scored("top1_chunk", 1, {{"s-niah-1-8192", 1, 0}});
    const FigurePage page = page_of(R"({"chart": "score-curve", "task": "s-niah-1", "against": "length"})", {&one, &two, &other});
    const Figure& figure = page.panels.at(0);
    QCOMPARE(figure.curves.size(), size_t{3});
    const Curve& both = figure.curves[0];
    QCOMPARE(both.x, (std::vector<double>{2048, 4096}));
    QVERIFY(near(both.y[0], 0.8) && near(both.y[1], 0.5));
    // over two seeds 0.9 and 0.7: Student's t of one degree is 12.706, which reaches beyond both ends
    QVERIFY(near(both.high[0], 1) && near(both.low[0], 0));
    QVERIFY(std::abs(both.low[1] - 0.40383) < 1e-5 && std::abs(both.high[1] - 0.59617) < 1e-5);  // Wilson, 50 of 100
    QCOMPARE(figure.curves[2].label, std::string("chance"));
    QCOMPARE(figure.curves[2].x, (std::vector<double>{2048, 4096, 8192}));
    QCOMPARE(figure.curves[2].y, (std::vector<double>{0.25, 0.25, 0.25}));
    const Figure depth = page_of(R"({"chart": "score-curve", "task": "s-niah-1-4096", "against": "depth"})", {&one}).panels.at(0);
    QCOMPARE(depth.curves[0].x, (std::vector<double>{10, 50}));
    QVERIFY(near(depth.curves[0].y[0], 0.49) && near(depth.curves[0].y[1], 0.45));
  }

  void a_map_of_length_and_depth() {
    const Run run = scored("attention", 1, {{"passkey-2000", 0.5, 0.1}, {"passkey-1000", 0.9, 0.1}, {"passkey-4000", 0.3, 0.1}});
    const Figure figure =
        page_of(R"({"chart": "score-map", "task": "passkey", "against": "length", "rows": "depth"})", {&run}).panels.at(0);
    const HeatMap& map = figure.map.value();
    QCOMPARE(map.rows, 2);
    QCOMPARE(map.columns, 3);
    const std::vector<double> expected{0.89, 0.49, 0.29, 0.85, 0.45, 0.25};
    for (size_t i = 0; i < expected.size(); ++i) QVERIFY(std::abs(map.values[i] - expected[i]) < 1e-6);
    QCOMPARE(figure.x.title, std::string("length (tokens)"));
    QCOMPARE(figure.x.names, (std::vector<std::string>{"1000", "2000", "4000"}));
    QCOMPARE(figure.y.names, (std::vector<std::string>{"10", "50"}));
    QCOMPARE(title_with_names(figure.y), std::string("depth (%): 1 10, 2 50"));
    QVERIFY(near(map.row_extent[0], 0.5) && near(map.row_extent[1], 2.5));  // the names stand at 1 and 2
    QVERIFY(to_csv(figure).starts_with("row,column,value,row_name,column_name\n0,0,0.89,10,1000\n"));
    QCOMPARE(figure_from_json(to_json(figure)).y.names, figure.y.names);
    const Figure turned =
        page_of(R"({"chart": "score-map", "task": "passkey", "against": "depth", "rows": "length"})", {&run}).panels.at(0);
    QVERIFY(std::abs(turned.map.value().values[1] - 0.85F) < 1e-6);
    QCOMPARE(turned.map.value().rows, 3);
  }

  void depths_of_a_map_are_called_by_their_groups() {
    const auto axis = [this](const std::vector<std::string>& depths) {
      const Run run = scored("attention", 1, {{"passkey-1000", 0.5, 0.1}}, 16, depths);
      const Figure figure =
          page_of(R"({"chart": "score-map", "task": "passkey", "against": "length", "rows": "depth"})", {&run}).panels.at(0);
      return figure.y.names;
    };
    QCOMPARE(axis({"0-10 %", "10-20 %"}), (std::vector<std::string>{"0–10", "10–20"}));
    QCOMPARE(axis({"0-10 %", "50-60 %"}), (std::vector<std::string>{"0–10", "50–60"}));
  }

  void a_map_of_pairs_and_width() {
    const Run narrow = scored("attention", 1, {{"mqar-length-64-pairs-4-vocabulary-64", 0.9, 0}, {"mqar-length-64-pairs-8", 0.5, 0}}, 16);
    const Run wide = scored("attention", 1, {{"mqar-length-64-pairs-8", 0.7, 0}}, 32);
    const HeatMap map =
        page_of(R"({"chart": "score-map", "task": "mqar", "against": "architecture.width", "rows": "pairs"})", {&narrow, &wide})
            .panels.at(0)
            .map.value();
    QCOMPARE(map.rows, 2);
    QCOMPARE(map.columns, 2);
    QVERIFY(std::abs(map.values[0] - 0.9F) < 1e-6 && std::isnan(map.values[1]));
    QVERIFY(std::abs(map.values[2] - 0.5F) < 1e-6 && std::abs(map.values[3] - 0.7F) < 1e-6);
  }

  /// As evaluate_task() leaves them: of each item whether it was right.
  static void answered(const Run& run, const std::string& task, const std::vector<int>& right, const std::string& data = "data") {
    TaskResult result;
    result.task = task, result.metric = "acc", result.step = 10, result.data_hash = data;
    double sum = 0;
    for (const int each : right) {
      ItemScore item;
      item.gold = 1, item.chosen = each ? 1 : 0;
      result.items.push_back(item), sum += each;
    }
    result.scores = {{"acc", sum / static_cast<double>(right.size()), 0.01, static_cast<int64_t>(right.size())}};
    fs::create_directories(run.info().directory / "tasks");
    write_sealed_json(run.info().directory / "tasks" / (task + "-step-10.json"), to_json(result));
  }
  /// `right` ones behind `wrong` ones, of `count`.
  static std::vector<int> items(int wrong, int right, int count) {
    std::vector<int> list(static_cast<size_t>(count), 0);
    std::fill_n(list.begin() + wrong, right, 1);
    return list;
  }

  /// Single runs by the items that both answered: of 20, 12 that only the first has, and 2 that only the other has.
  void a_table_marks_the_best_of_single_runs_by_their_items() {
    const Run a = scored("attention", 1, {{"arc-easy", 0.60, 0.01}, {"piqa", 0.60, 0.02}});
    const Run b = scored("top1_chunk", 2, {{"arc-easy", 0.55, 0.01}, {"piqa", 0.64, 0.02}});
    const auto rows = [&] { return page_of(R"({"chart": "scores", "title": "Choices"})", {&a, &b}).tables.at(0).rows; };
    const std::vector<std::string> plain{"arc-easy", "25.0", "60.0 ± 1.0", "55.0 ± 1.0"};
    QCOMPARE(rows()[0], plain);  // no items were kept
    answered(a, "arc-easy", items(0, 14, 20)), answered(b, "arc-easy", items(12, 4, 20));
    QCOMPARE(rows()[0], (std::vector<std::string>{"arc-easy", "25.0", "60.0 ± 1.0 *", "55.0 ± 1.0"}));
    DrawnSet drawn = each_run({&a, &b});
    const ScoreComparison found = compare_scores(drawn, {"arc-easy"});
    const ScoreTest& test = found.tasks.at(0).rows.at(1).test;
    QVERIFY(std::abs(*test.test.p - 2.0 * (1 + 14 + 91) / 16384) < 1e-12);  // 12 against 2: k ≤ 2 of 14
    QCOMPARE(test.over, std::string("20 items"));
    QCOMPARE(test.name, std::string("McNemar"));
    QVERIFY(std::abs(test.test.difference.mean + 0.05) < 1e-12 && found.tasks[0].best == size_t{0});
    const nlohmann::json json = to_json(found);
    QVERIFY(json[0]["rows"][0]["best"] == true && json[0]["rows"][1]["tested_over"] == "20 items" &&
            json[0]["rows"][1]["test"] == "McNemar");
    QVERIFY(json[0]["rows"][0]["against_first"].is_null() && json[0]["rows"][1]["p_holm"] == json[0]["rows"][1]["p"]);
    answered(b, "arc-easy", items(10, 6, 20));  // 10 against 2: p = 0.039
    QCOMPARE(rows()[0].at(2), std::string("60.0 ± 1.0 *"));
    answered(b, "arc-easy", items(9, 7, 20));  // 9 against 2: p = 0.065
    QCOMPARE(rows()[0], plain);
    answered(b, "arc-easy", items(12, 4, 20), "other");  // other items
    QCOMPARE(rows()[0], plain);
  }

  /// Three seeds each: 0.60, 0.62, 0.61 against 0.55, 0.58, 0.56; the differences 0.05, 0.04, 0.05 have p = 0.0051.
  void a_table_marks_the_best_of_seeds_by_their_pairs() {
    const auto of = [this](const char* mixer, int64_t seed, double share) { return scored(mixer, seed, {{"piqa", share, 0.001}}); };
    const Run a1 = of("attention", 1, 0.60), a2 = of("attention", 2, 0.62), a3 = of("attention", 3, 0.61);
    const Run b1 = of("top1_chunk", 1, 0.55), b2 = of("top1_chunk", 2, 0.58), b3 = of("top1_chunk", 3, 0.56);
    const auto row = [&](const Run& last) {
      return page_of(R"({"chart": "scores"})", {&a1, &a2, &a3, &b1, &b2, &last}).tables.at(0).rows.at(0);
    };
    QVERIFY(row(b3).at(2).ends_with(" *") && !row(b3).at(3).ends_with("*"));
    QVERIFY(!row(of("top1_chunk", 3, 0.609)).at(2).ends_with("*"));  // 0.05, 0.04, 0.001: p = 0.18, though means are apart
  }

  void a_table_has_the_mean_of_its_tasks() {
    const Run a = scored("attention", 1, {{"arc-easy", 0.60, 0.01}, {"piqa", 0.60, 0.02}});
    const Run b = scored("top1_chunk", 1, {{"arc-easy", 0.55, 0.01}, {"piqa", 0.64, 0.02}});
    const PageTable table = page_of(R"({"chart": "scores", "title": "Choices"})", {&a, &b}).tables.at(0);
    QCOMPARE(table.title, std::string("Choices"));
    QCOMPARE(table.rows.size(), size_t{3});
    QCOMPARE(table.rows[2], (std::vector<std::string>{"mean of the tasks", "", "60.0", "59.5"}));
    QCOMPARE(table.notes.size(), size_t{1});
    const Run lacks = scored("deltanet", 1, {{"piqa", 0.5, 0.02}});
    const PageTable with = page_of(R"({"chart": "scores"})", {&a, &lacks}).tables.at(0);
    QCOMPARE(with.rows[0].back(), std::string("–"));
    QCOMPARE(with.rows[2].back(), std::string("–"));  // no mean of fewer tasks
    QVERIFY(page_of(R"({"chart": "scores", "task": "hellaswag"})", {&a}).tables.at(0).rows.empty());
  }

  void dots_have_intervals() {
    const Run a = scored("attention", 1, {{"arc-easy", 0.60, 0.01}, {"piqa", 0.60, 0.02}});
    const Figure figure = page_of(R"({"chart": "score-dots"})", {&a}).panels.at(0);
    QCOMPARE(figure.x.names, (std::vector<std::string>{"arc-easy", "piqa"}));
    QVERIFY(to_csv(figure).starts_with("curve,\"1 arc-easy, 2 piqa\",share right,low,high\n"));
    QCOMPARE(figure.curves.size(), size_t{3});  // the dot of each, chance
    QVERIFY(figure.curves[0].in_legend && !figure.curves[1].in_legend && figure.curves[1].bars);
    QVERIFY(std::abs(figure.curves[1].low[0] - 0.50200) < 1e-5 &&
            std::abs(figure.curves[1].high[0] - 0.69060) < 1e-5);  // Wilson, 60 of 100
  }

  /// Groups that were scored on nothing take no room, and what guessing gets is drawn all the same.
  void dots_stand_evenly_beside_their_task() {
    const Run none = scored("avey", 1, {}), a = scored("attention", 1, {{"a", 0.5, 0.1}}), b = scored("top1_chunk", 1, {{"a", 0.6, 0.1}});
    const RunSet runs{&none, &a, &b};
    const Figure figure = page_of(R"({"chart": "score-dots"})", runs).panels.at(0);
    QVERIFY(near(figure.curves.at(0).x[0], 0.85) && near(figure.curves.at(1).x[0], 1.15));
    QCOMPARE(figure.curves.at(2).label, std::string("chance"));
    const std::vector<ScoreSource> behind = sources_of_dot(each_run(runs), "a", 1.15);
    QVERIFY(behind.size() == 1 && behind[0].run == &b);
  }

  /// 1.96 standard errors would be none at 0 and 1, and reach beyond them near by.
  void intervals_stay_between_nothing_and_all() {
    const Run a = scored("attention", 1, {{"a", 0, 0}, {"b", 1, 0}, {"c", 0.01, 0.01}, {"d", 0.9, 0.03}});
    const Run b = scored("attention", 2, {{"d", 0.5, 0.05}});
    const auto interval = [](const Figure& figure, size_t i) {
      return std::array{figure.curves.at(i).low[0], figure.curves.at(i).high[0]};
    };
    const Figure one = page_of(R"({"chart": "score-dots"})", {&a}).panels.at(0);
    QVERIFY(near(interval(one, 0)[0], 0) && std::abs(interval(one, 0)[1] - 0.03699) < 1e-5);  // 3.8415 / 103.8415
    QVERIFY(std::abs(interval(one, 1)[0] - 0.96301) < 1e-5 && near(interval(one, 1)[1], 1));
    QVERIFY(interval(one, 2)[0] > 0 && interval(one, 2)[0] < 0.01);
    const Figure two = page_of(R"({"chart": "score-dots", "task": "d"})", {&a, &b}).panels.at(0);
    QVERIFY(near(interval(two, 0)[0], 0) && near(interval(two, 0)[1], 1));  // two seeds say little
  }

  void a_table_has_the_tasks_of_its_list() {
    const Run a = scored("attention", 1, {{"arc-easy", 0.6, 0.01}, {"mqar-length-64", 1, 0}, {"piqa", 0.7, 0.02}});
    const PageTable table = page_of(R"({"chart": "scores", "tasks": ["piqa", "arc-easy"]})", {&a}).tables.at(0);
    QCOMPARE(table.rows.size(), size_t{3});
    QCOMPARE(table.rows[0][0], std::string("piqa"));
    QCOMPARE(table.rows[2][2], std::string("65.0"));  // without mqar
    const PageTable lacks = page_of(R"({"chart": "scores", "tasks": ["piqa", "siqa"]})", {&a}).tables.at(0);
    QCOMPARE(lacks.rows[1][2], std::string("–"));
    QCOMPARE(lacks.rows[2][2], std::string("–"));
    const Figure dots = page_of(R"({"chart": "score-dots", "tasks": ["piqa", "arc-easy"]})", {&a}).panels.at(0);
    QCOMPARE(dots.x.names, (std::vector<std::string>{"piqa", "arc-easy"}));
  }

  /// The averages of arXiv:2506.11305, appendix L: 42.32, 0.368, 0.213 and 41.41 to 43.24, whose end is of the rounded error; of the
  /// error itself it is 43.2348.
  void a_table_of_means_over_checkpoints() {
    const Run a = scored("attention", 1,
                         {{"x", 0.42166, 0.01, 8},
                          {"x", 0.42056, 0.01, 9},
                          {"x", 0.42741, 0.01},
                          {"y", 0.42166, 0.01, 8},
                          {"y", 0.42056, 0.01, 9},
                          {"y", 0.42741, 0.01},
                          {"y", 0.99, 0.01, 4, true}});  // the last on some items alone
    const PageTable table = page_of(R"({"chart": "scores", "tasks": ["x", "y"], "checkpoints": "mean"})", {&a}).tables.at(0);
    QString last;  // column
    for (const auto& row : table.rows) last += QString::fromStdString(row.back()) + "; ";
    QCOMPARE(last, QStringLiteral("42.3 ± 1.0; 42.3 ± 1.0; 42.3; 0.37; 0.21; 41.41 to 43.23; "));
    const PageTable newest = page_of(R"({"chart": "scores"})", {&a}).tables.at(0);
    QCOMPARE(newest.rows[0].back(), std::string("42.7 ± 1.0"));
    QCOMPARE(newest.rows.size(), size_t{3});
  }

  void whole_results_come_before_partial_ones() {
    const Run a = scored("attention", 1, {{"piqa", 0.6, 0.02, 8}, {"piqa", 1, 0, 10, true}, {"siqa", 0.5, 0.1, 10, true}});
    const PageTable table = page_of(R"({"chart": "scores"})", {&a}).tables.at(0);
    QCOMPARE(table.rows[0].back(), std::string("60.0 ± 2.0"));
    QCOMPARE(table.rows[1].back(), std::string("50.0 ± 10.0 (part)"));
    QCOMPARE(table.notes.back(), std::string("(part): not all items of the task were scored."));
  }

  void recipes_keep_their_words() {
    const FigureRecipe recipe =
        parse_recipe(R"({"panels": [{"chart": "score-map", "task": "mqar", "against": "length", "rows": "pairs"}]})", "r", "r");
    QVERIFY(parse_recipe(to_json(recipe).dump(), "again", "r") == recipe);
    const FigureRecipe list = parse_recipe(R"({"panels": [{"chart": "scores", "tasks": ["b", "a"], "checkpoints": "mean"}]})", "r", "r");
    QVERIFY(list.panels[0].checkpoint_mean && parse_recipe(to_json(list).dump(), "again", "r") == list);
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_recipe(R"({"panels": [{"chart": "scores", "checkpoints": "all"}]})", "r", "r"));
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_recipe(R"({"panels": [{"chart": "score-maps"}]})", "r", "r"));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ScoreFiguresTest)
#include "score_figures_test.moc"
