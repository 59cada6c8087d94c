#include <QtTest>
#include <cmath>

#include "analysis/comparison/comparison.h"
#include "analysis/comparison/end_evaluations.h"
#include "analysis/figures/recipe.h"
#include "kernels/engine/error.h"
#include "tests/analysis/compared_runs.h"
#include "tests/analysis/end_evaluation.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Which losses recipes show: what counts as pre-training loss, and which text the losses at the end are of.
class RecipeLossesTest : public QObject {
  Q_OBJECT
  std::unique_ptr<ComparedRuns> folder_;

  Run write(const std::string& name, const FixtureOptions& options) const {
    const fs::path directory = folder_->path("study/runs") / name;
    fs::create_directories(directory.parent_path());
    write_fixture(directory, options);
    return Run(directory);
  }
  /// What the study evaluated at the end of one of its runs: losses above the given one.
  void evaluate(const Run& run, const std::string& kind, double loss, int64_t step = 0) const {
    write_end_evaluation(folder_->path("study"), run.info().directory, kind, loss, step > 0 ? step : run.info().step);
  }
  static FigureRecipe recipe(const std::string& panels) {
    return parse_recipe(R"({"title": "t", "panels": [)" + panels + "]}", "recipe", "r");
  }
  static std::string refusal(const std::function<void()>& act) {
    try {
      act();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
  static constexpr const char* kSetting = R"({"chart": "setting", "value": "ood", "against": "architecture.layers", "split": "test"})";

 private Q_SLOTS:
  void init() { folder_ = std::make_unique<ComparedRuns>(); }

  /// The words, and the numbers, are those of `saccade compare`.
  void the_pretraining_loss_is_chosen() {
    const Run run = write("one", {});
    const RunSet runs{&run};
    const FigureRecipe over_training = recipe(R"({"chart": "trajectory", "pretraining": "train", "window": 4096})");
    QVERIFY(parse_recipe(to_json(over_training).dump(), "again", "r") == over_training);
    const FigurePage page = make_page(over_training, runs);
    const Figure& figure = page.panels.at(0);
    QCOMPARE(figure.x.title, std::string("training loss, smoothed (nats)"));
    QCOMPARE(figure.curves.at(0).x, trajectory(run, "", {PretrainingLoss::Kind::train, 4096}).pretraining);
    QVERIFY2(has(page.caption, "Pre-training loss: training loss, mean over the last 4096 tokens."), page.caption.c_str());
    QCOMPARE(make_page(recipe(R"({"chart": "trajectory"})"), runs).panels.at(0).x.title, std::string("pre-training loss (nats)"));
    const PageTable table = make_page(recipe(R"({"chart": "table", "pretraining": "train", "at_loss": 3})"), runs).tables.at(0);
    QCOMPARE(table.header.at(4), std::string("training loss"));
    QVERIFY(std::any_of(table.notes.begin(), table.notes.end(),
                        [](const std::string& note) { return note.starts_with("Equal pre-training loss: training loss, mean over"); }));
    FigureRecipe chosen = recipe(R"({"chart": "loss"}, {"chart": "trajectory"})");  // by the command line, for all that take it
    choose_pretraining(chosen, "weighted", 1e7);
    QVERIFY(chosen.panels[0].pretraining == "validation" && chosen.panels[1].pretraining == "weighted");
    // the fixture does not record the tokens of its domains
    QVERIFY(has(refusal([&] { make_page(chosen, runs); }), "/panels/1/pretraining: "));
  }

  void the_split_of_ends_is_chosen() {
    const Run a = write("a", {.seed = 1, .layers = 2}), b = write("b", {.seed = 2, .layers = 2}), c = write("c", {.seed = 1, .layers = 4});
    const Run branch = write("a/branches/step-50", {.seed = 1, .steps = 100, .layers = 2});
    const RunSet runs{&a, &b, &c, &branch};
    QVERIFY2(has(refusal([&] { make_page(recipe(kSetting), runs); }), "no study has evaluated the ends of these runs on it"), "");
    evaluate(a, "test.64", 3), evaluate(b, "test.64", 4), evaluate(c, "test.64", 5);
    evaluate(a, "test.128", 3.25), evaluate(b, "test.128", 4.25);       // of fewer runs
    evaluate(a, "test.64.length-8", 7), evaluate(a, "test.old", 7);     // of other sequences; no evaluation
    evaluate(branch, "test.64", 9), evaluate(c, "validation.4096", 8);  // no point of its own; another split
    const FigurePage page = make_page(recipe(kSetting), runs);
    const Figure& figure = page.panels.at(0);
    QCOMPARE(figure.y.title, std::string("OOD loss, test split (nats)"));
    QCOMPARE(figure.curves.size(), size_t{1});
    QCOMPARE(figure.curves[0].x, (std::vector<double>{2, 4}));
    QCOMPARE(figure.curves[0].y, (std::vector<double>{5, 6.5}));  // of 3 and 4, and of 5: 1.5 above
    QVERIFY2(has(page.caption, "Losses at the end: test split, up to 64 tokens of every domain, as the study evaluated them."),
             page.caption.c_str());
    FigureRecipe recorded = recipe(R"({"chart": "setting", "value": "gap", "against": "architecture.layers"})");
    QVERIFY(make_page(recorded, runs).panels.at(0).y.title == "OOD loss − validation loss (nats)");
    choose_split(recorded, "test");
    QCOMPARE(make_page(recorded, runs).panels.at(0).curves.at(0).y, (std::vector<double>{1.5, 1.5}));
    QVERIFY(has(refusal([] {
                  FigureRecipe none = recipe(R"({"chart": "loss"})");
                  choose_split(none, "test");
                }),
                "shows no losses at the end"));
  }

  /// saccade compare --split test: ends are those that the study evaluated, all else stays.
  void comparisons_take_the_split() {
    const Run a = write("a", {.seed = 1, .layers = 2}), b = write("b", {.seed = 2, .layers = 2}), c = write("c", {.seed = 1, .layers = 4}),
              d = write("d", {.seed = 1, .layers = 8});
    const RunSet runs{&a, &b, &c, &d};
    evaluate(a, "test.64", 3), evaluate(b, "test.64", 4), evaluate(c, "test.64", 5);
    const EndEvaluations ends(runs, "test");
    const Comparison recorded = compare(runs), found = compare_at_ends(runs, ends);
    QCOMPARE(found.split, std::string("test"));
    QCOMPARE(found.split_tokens, int64_t{64});
    QCOMPARE(found.rows.size(), size_t{3});
    QCOMPARE(found.rows[0].id_at_end.mean, std::optional(3.5));
    QCOMPARE(found.rows[0].ood_at_end.mean, std::optional(5.0));
    QCOMPARE(found.rows[1].ood_at_end.by_seed, (std::map<int64_t, double>{{1, 6.5}}));
    QVERIFY(!found.rows[2].id_at_end.mean && recorded.rows[2].id_at_end.mean);  // it was not evaluated there
    QCOMPARE(found.rows[0].ood_at_equal.mean, recorded.rows[0].ood_at_equal.mean);
    const std::string text = to_text(found);
    for (const char* part : {"ID loss, test split", "OOD at the end, test split", "ID at the end, test split",
                             "test split, up to 64 tokens of every domain", "not evaluated on 64 tokens of the test split at the end"})
      QVERIFY2(has(text, part), text.c_str());
    QVERIFY(!has(to_text(recorded), "test split"));
    QCOMPARE(to_json(found).at("split"), "test");
    QCOMPARE(to_json(found).at("ends"), "evaluations of studies");
    QCOMPARE(to_json(recorded).at("split"), "validation");
  }

  void runs_without_an_evaluation_are_left_out() {
    const Run a = write("a", {.layers = 2}), b = write("b", {.layers = 4}), c = write("c", {.layers = 6});
    const RunSet runs{&a, &b, &c};
    evaluate(a, "test.64", 3), evaluate(b, "test.64", 4), evaluate(c, "test.64", 5, 20);  // of an earlier step
    const FigurePage page = make_page(recipe(kSetting), runs);
    QCOMPARE(page.panels.at(0).curves.at(0).y, (std::vector<double>{4.5, 5.5}));
    QVERIFY2(has(page.caption, "; 1 of 3 runs was not, and is left out."), page.caption.c_str());
    const PageTable table = make_page(recipe(R"({"chart": "table", "split": "test"})"), runs).tables.at(0);
    QCOMPARE(table.header.at(4), std::string("in-domain, test split"));
    QCOMPARE(table.header.at(5), std::string("OOD, test split"));
    QVERIFY(table.rows[0][4] == "3.000" && table.rows[0][5] == "4.500" && table.rows[1][4] == "4.000");
    QVERIFY(table.rows[2][4] == "–" && table.rows[2][5] == "–");
    const auto noted = [&](const std::string& part) {
      return std::any_of(table.notes.begin(), table.notes.end(), [&](const std::string& note) { return has(note, part); });
    };
    QVERIFY(noted("Losses at the end: test split, up to 64 tokens") && noted("layers 6: not evaluated on 64 tokens of the test split"));
  }

  /// Groups at the same number across are no line: what tells them apart parts the curves.
  void curves_join_what_differs_along_them_alone() {
    std::vector<Run> written;
    for (const int64_t layers : {2, 4})
      for (const int64_t heads : {1, 2})
        written.push_back(write("p" + std::to_string(10 * layers + heads), {.layers = layers, .heads = heads}));
    RunSet runs;
    for (const Run& run : written) runs.push_back(&run);
    const std::vector<Curve> curves =
        make_page(recipe(R"({"chart": "setting", "value": "ood", "against": "architecture.heads"})"), runs).panels.at(0).curves;
    QCOMPARE(curves.size(), size_t{2});
    QCOMPARE(curves[0].label, std::string("Transformer++, layers 2"));
    QCOMPARE(curves[1].label, std::string("Transformer++, layers 4"));
    for (const Curve& curve : curves) QCOMPARE(curve.x, (std::vector<double>{1, 2}));
    QVERIFY(!(curves[0].colour == curves[1].colour));
    const std::string along_both = R"({"chart": "setting", "value": "ood", "against": "architecture.heads", "runs": "layers:2"})";
    QCOMPARE(make_page(recipe(along_both), runs).panels.at(0).curves.at(0).label, std::string("Transformer++"));
    const std::string fitted = R"({"chart": "setting", "value": "ood", "against": "architecture.heads", "fit": "power-law"})";
    QCOMPARE(make_page(recipe(fitted), runs).panels.at(0).curves.at(0).label, std::string("Transformer++"));  // of all of the architecture
  }

  /// A loss that rises has an exponent of the other sign.
  void the_sign_of_an_exponent_is_told() {
    std::vector<Run> written;
    for (const int64_t heads : {1, 2, 4, 8})
      written.push_back(write("h" + std::to_string(heads), {.heads = heads, .offset = 0.3 * static_cast<double>(heads)}));
    RunSet runs;
    for (const Run& run : written) runs.push_back(&run);
    const std::string panel = R"({"chart": "setting", "value": "ood", "against": "architecture.heads", "fit": "power-law"})";
    const std::string label = make_page(recipe(panel), runs).panels.at(0).curves.at(1).label;
    QVERIFY2(label.starts_with("x^−a, a −0.") && has(label, " (−0.") && !has(label, "-"), label.c_str());
  }

  /// A band has no width at a point: seeds that no line joins to others have bars.
  void points_by_themselves_have_bars() {
    const Run a = write("a", {.seed = 1}), b = write("b", {.seed = 2, .offset = 0.2}), c = write("c", {.seed = 1, .layers = 4});
    const auto curves = [&](const char* against) {
      const std::string panel = std::string("{\"chart\": \"setting\", \"value\": \"ood\", \"against\": \"") + against + "\"}";
      return make_page(recipe(panel), {&a, &b, &c}).panels.at(0).curves;
    };
    const std::vector<Curve> along = curves("validation");  // of two things that came out neither leads to the other
    QCOMPARE(along.size(), size_t{3});
    const auto bar = std::find_if(along.begin(), along.end(), [](const Curve& curve) { return !curve.in_legend; });
    QVERIFY(bar != along.end() && bar != along.begin() && bar->label.ends_with(", ± one standard deviation"));
    const Curve& point = *(bar - 1);
    QCOMPARE(bar->x, (std::vector<double>{point.x[0], point.x[0]}));
    QCOMPARE(bar->y, (std::vector<double>{point.low[0], point.high[0]}));
    QCOMPARE(curves("architecture.layers").size(), size_t{1});  // a line has a band
  }

  void mistakes_are_named_data() {
    QTest::addColumn<QString>("panel");
    QTest::addColumn<QString>("message");
    QTest::newRow("kind") << R"({"chart": "trajectory", "pretraining": "training"})"
                          << "/panels/0/pretraining is \"training\"; did you mean \"train\"?";
    QTest::newRow("chart") << R"({"chart": "loss", "pretraining": "train"})"
                           << "/panels/0/pretraining is of charts trajectory and table; the chart is loss";
    QTest::newRow("window") << R"({"chart": "table", "window": 1000})"
                            << "/panels/0/window goes with /panels/0/pretraining \"train\"";
    QTest::newRow("split") << R"({"chart": "setting", "value": "entropy", "split": "test"})"
                           << "/panels/0/split is of losses at the end";
    QTest::newRow("unknown split") << R"({"chart": "table", "split": "tests"})"
                                   << "did you mean \"test\"?";
  }
  void mistakes_are_named() {
    QFETCH(QString, panel);
    QFETCH(QString, message);
    const std::string told = refusal([&] { recipe(panel.toStdString()); });
    QVERIFY2(told.starts_with("recipe: ") && has(told, message.toStdString()), told.c_str());
  }

  /// A panel that was another chart before is written as what it is, so that it can be read again.
  void what_a_chart_does_not_take_is_not_written() {
    FigureRecipe changed = recipe(R"({"chart": "table", "pretraining": "train", "split": "test", "published": "2506.11305-table-6"})");
    changed.panels[0].chart = "loss";
    QCOMPARE(parse_recipe(to_json(changed).dump(), "again", "r").panels[0].chart, std::string("loss"));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RecipeLossesTest)
#include "recipe_losses_test.moc"
