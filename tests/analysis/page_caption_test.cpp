#include "analysis/figures/page_caption.h"

#include <QTemporaryDir>
#include <QtTest>
#include <map>

#include "analysis/figures/figure_notes.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// What captions say of runs, their branches and their seeds.
class PageCaptionTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

  std::string write(const std::string& name, const FixtureOptions& options) const {
    const fs::path directory = fs::path(folder_.path().toStdString()) / name;
    if (!fs::exists(directory)) write_fixture(directory, options);
    return directory;
  }
  /// `count` settings with a run and a branch each, and a second seed of the first.
  std::vector<Run> settings(int64_t count) const {
    std::vector<Run> runs;
    const auto add = [&](int64_t layers, int64_t seed) {
      FixtureOptions options{.seed = seed, .steps = 60, .layers = layers, .heads = 1, .length = 16};
      const std::string name = "layers" + std::to_string(layers) + "-" + std::to_string(seed);
      runs.emplace_back(write(name, options));
      options.steps = 40;
      runs.emplace_back(write(name + "/branches/step-20", options));
    };
    for (int64_t layers = 1; layers <= count; ++layers) add(layers, 1);
    add(1, 2);
    return runs;
  }
  static RunSet pointers_to(const std::vector<Run>& runs) {
    RunSet list;
    for (const Run& run : runs) list.push_back(&run);
    return list;
  }
  static FigurePage page_of(const std::string& panels, const RunSet& runs, const TuningOfRun& tuning = {}) {
    return make_page(parse_recipe(R"({"title": "Losses", "panels": [)" + panels + "]}", "recipe", "r"), runs, {}, tuning);
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

 private Q_SLOTS:
  /// A branch is told with its run, never as a run of its own.
  void few_groups_are_named() {
    const std::vector<Run> runs = settings(2);
    const std::string caption = page_of(R"({"chart": "loss"})", pointers_to(runs)).caption;
    QVERIFY2(caption.starts_with("Losses. Transformer++, layers 1 (seeds 1, 2; 61.4 k tokens; cooldown branches of 41 k tokens), "
                                 "Transformer++, layers 2 (seed 1; 61.4 k tokens; cooldown branch of 41 k tokens). Means over seeds; "
                                 "bands are one standard deviation. Saccade "),
             caption.c_str());
  }

  void tokens_of_a_task_are_those_asked_for() {
    std::vector<Run> runs;
    runs.emplace_back(write("task", {.steps = 60, .layers = 1, .heads = 1, .length = 16, .answers = true}));
    const std::string caption = page_of(R"({"chart": "loss"})", pointers_to(runs)).caption;
    QVERIFY2(has(caption, "Transformer++ (seed 1; 61.4 k tokens asked for)."), caption.c_str());
  }

  void many_groups_are_counted() {
    const std::vector<Run> runs = settings(21);
    const auto tuning = [](const Run& run) {
      Tuning known;
      known.state = run.info().seed == 2 ? Tuning::State::tuned : Tuning::State::edge, known.setting = "training.learning_rate";
      if (run.info().config["architecture"]["layers"] < 4) known.state = Tuning::State::tuned;
      return known;
    };
    const std::string caption = page_of(R"({"chart": "trajectory"})", pointers_to(runs), tuning).caption;
    QVERIFY2(has(caption, "Losses. 22 runs of 21 settings (seeds 1, 2; 61.4 k tokens) and 22 cooldown branches (41 k tokens). Means"),
             caption.c_str());
    QVERIFY2(has(caption, "Tuned: 3 of 21.") && has(caption, "Edge: 18 of 21.") && !has(caption, "layers 7"), caption.c_str());
    QVERIFY(caption.size() < 400);
    std::vector<Curve> curves(21);
    for (size_t i = 0; i < curves.size(); ++i) curves[i].label = "curve " + std::to_string(i), curves[i].note = kMidSchedule;
    curves.push_back({.label = "ends", .x = {}, .y = {}, .colour = {}, .note = kBranchEnds});
    QVERIFY2(has(schedule_note(curves), "ends of cooldown branches, 21 curves: all points"), schedule_note(curves).c_str());
  }

  /// In the colours of their runs, dotted, and no names of their own.
  void branches_are_parts_of_their_runs() {
    const std::vector<Run> runs = settings(2);
    const Figure figure = page_of(R"({"chart": "loss"})", pointers_to(runs)).panels.at(0);
    std::vector<std::string> names;
    for (const Curve& curve : figure.curves)
      if (curve.in_legend) names.push_back(curve.label);
    QCOMPARE(names, (std::vector<std::string>{"Transformer++, layers 1, mean of 2", "Transformer++, layers 2", "validation", "OOD",
                                              "training", "cooldown branches"}));
    Colour own{}, of_branch{1, 2, 3};
    for (const Curve& curve : figure.curves) {
      if (curve.label == "Transformer++, layers 2") own = curve.colour;
      if (curve.label != "Transformer++, layers 2, cooldown from step 20") continue;
      of_branch = curve.colour;
      QCOMPARE(curve.dash, Dash::dot);
    }
    QCOMPARE(of_branch, own);
    RunSet alone;
    for (const Run& run : runs)
      if (run.info().directory.filename() == "step-20") alone.push_back(&run);
    const Figure of_branches = page_of(R"({"chart": "loss"})", alone).panels.at(0);
    QVERIFY(of_branches.curves.back().label != "cooldown branches");
  }

  void an_empty_panel_beside_others_is_told() {
    const std::vector<Run> runs = settings(1);
    const std::string two = R"({"chart": "loss"}, {"chart": "setting", "against": "architecture.window"})";
    const std::string caption = page_of(two, pointers_to(runs)).caption;
    QVERIFY2(has(caption, "(b) is empty: no run has recorded what it shows."), caption.c_str());
    QVERIFY(!has(page_of(R"({"chart": "loss"}, {"chart": "gap"})", pointers_to(runs)).caption, "empty"));
  }

  /// One legend may stand for all panels: a panel of fewer runs calls them as the others do.
  void a_run_has_one_name_on_a_page() {
    const std::vector<Run> runs = settings(3);
    const FigurePage page = page_of(R"({"chart": "loss"}, {"chart": "loss", "runs": "layers=2"})", pointers_to(runs));
    std::map<std::string, Colour> colours;
    for (const Curve& curve : page.panels.at(0).curves) colours[curve.label] = curve.colour;
    QVERIFY(!page.panels.at(1).curves.empty() && page.panels[1].curves.size() < page.panels[0].curves.size());
    for (const Curve& curve : page.panels[1].curves) {
      QVERIFY2(colours.contains(curve.label), curve.label.c_str());
      QCOMPARE(colours[curve.label], curve.colour);
    }
  }

  /// What a band is depends on the chart; trajectories have none, and what stands behind ± of a table of scores the table says.
  void bands_are_those_of_the_panels() {
    const auto note = [](const std::string& panels) { return seeds_note(parse_recipe(R"({"panels": [)" + panels + "]}", "recipe", "r")); };
    QCOMPARE(note(R"({"chart": "trajectory"})"), std::string("Means over seeds."));
    QCOMPARE(note(R"({"chart": "loss", "spread": "error"})"), std::string("Means over seeds; bands are one standard error."));
    QCOMPARE(
        note(R"({"chart": "table"}, {"chart": "loss", "spread": "interval"}, {"chart": "setting", "spread": "interval"})"),
        std::string(
            "Means over seeds; bands and bars are the 95 % interval in (a), one standard deviation in (b); ± in the table is one sample "
            "standard deviation."));
    QCOMPARE(note(R"({"chart": "answers", "against": "length"})"), std::string("Means over seeds; bars are the 95 % interval."));
    QCOMPARE(note(R"({"chart": "table"})"), std::string("Means over seeds, ± one sample standard deviation."));
    QCOMPARE(note(R"({"chart": "scores"})"), std::string("Means over seeds."));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::PageCaptionTest)
#include "page_caption_test.moc"
