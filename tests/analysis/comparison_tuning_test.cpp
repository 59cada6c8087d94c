#include <QtTest>
#include <cmath>

#include "analysis/comparison/comparison.h"
#include "analysis/figures/loss_table.h"
#include "tests/analysis/compared_runs.h"

namespace saccade::test {

/// What comparisons, trajectories and tables say of how the runs were tuned.
class ComparisonTuningTest : public QObject {
  Q_OBJECT
  std::unique_ptr<ComparedRuns> runs_;
  std::vector<Run> write(const std::vector<FixtureOptions>& all) const { return runs_->write(all); }
  static std::vector<const Run*> pointers_to(const std::vector<Run>& runs) { return ComparedRuns::pointers_to(runs); }

 private Q_SLOTS:
  void init() { runs_ = std::make_unique<ComparedRuns>(); }

  /// Without a study only a run's own rate is known; unequal searches are told.
  void saysWhatIsTuned() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const Comparison alone = compare(pointers_to(runs));
    QCOMPARE(alone.rows[0].tuning.state, Tuning::State::untuned);
    QCOMPARE(alone.tuning, (std::vector<std::string>{"Transformer++, Top-1 Chunk exact: untuned: one rate only"}));
    QVERIFY(to_text(alone).find("untuned: one rate only\n") != std::string::npos);
    const auto by_study = [&](const Run& run) {
      return run.info().title == "Transformer++" ? judge_tuning("training.learning_rate", {{0.0005, 3}, {0.002, 4}, {0.001, 2}}) : Tuning{};
    };
    const Comparison one = compare(pointers_to(runs), {}, "", {}, {}, by_study);
    QCOMPARE(one.tuning.size(), size_t{3});
    QCOMPARE(one.tuning[0], std::string("Transformer++: tuned: 0.001 of 0.0005, 0.001, 0.002"));
    QCOMPARE(one.tuning[2], std::string("the search for the best rate was not as long for all (1 to 3 values)"));
    QCOMPARE(to_json(one)["rows"][0]["tuning"]["best"], 0.001);
  }

  /// A search over another setting than the rate names it, and the rate stays untuned.
  void aSearchOverAnotherSettingLeavesTheRateUntuned() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const auto over_width = [](const Run&) { return judge_tuning("architecture.width", {{32, 3}, {64, 2}, {128, 4}}); };
    const Comparison c = compare(pointers_to(runs), {}, "", {}, {}, over_width);
    const std::string words = "tuned in width: 64 of 32, 64, 128; one learning rate only (untuned)";
    QCOMPARE(c.tuning, std::vector<std::string>{"Transformer++, Top-1 Chunk exact: " + words});
    QCOMPARE(short_words(c.rows[0].tuning), std::string("tuned in width, one rate only"));
    QCOMPARE(to_json(c)["rows"][0]["tuning"]["words"], words);
    QCOMPARE(to_json(c)["rows"][0]["tuning"]["rate_untuned"], true);
    const Tuning edge = judge_tuning("architecture.width", {{32, 3}, {64, 2}}), off = of_value(over_width(runs[0]), 32);
    QCOMPARE(describe(edge), std::string("edge in width: 64 of 32, 64; extend with 128; one learning rate only (untuned)"));
    QCOMPARE(short_words(off), std::string("not at its best value in width, one rate only"));
    QCOMPARE(short_words(judge_tuning("training.learning_rate", {{1, 3}, {2, 2}, {3, 4}})), std::string("tuned"));
    QCOMPARE(short_words(compare(pointers_to(runs)).rows[0].tuning), std::string("one rate only"));
    const auto one_of_them = [&](const Run& run) { return run.info().title == "Transformer++" ? over_width(run) : Tuning{}; };
    QVERIFY(compare(pointers_to(runs), {}, "", {}, {}, one_of_them).tuning.back().starts_with("not the same setting was searched"));
  }

  /// Curves and files say which points are mid-schedule, and how the runs of each label were tuned.
  void trajectoriesSayWhatTheyAreOf() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const auto by_study = [&](const Run& run) {
      return run.info().title == "Transformer++" ? judge_tuning("training.learning_rate", {{0.0005, 3}, {0.002, 4}, {0.001, 2}}) : Tuning{};
    };
    const Figure figure = trajectory_figure(pointers_to(runs), "", {}, {}, {}, by_study);
    QCOMPARE(figure.curves[0].note, std::string("mid-schedule, tuned"));
    QCOMPARE(figure.curves[1].note, std::string("mid-schedule, one rate only"));
    QCOMPARE(figure.curves[1].label, std::string("Top-1 Chunk exact"));
    QCOMPARE(figure.notes.size(), size_t{2});
    QVERIFY(figure.notes[0].starts_with("No curve has ends of cooldown branches: all points but the last"));
    QCOMPARE(figure.notes[1], std::string("Tuned: Transformer++. One rate only: Top-1 Chunk exact."));
    QVERIFY(to_csv(figure).find(",note\n") != std::string::npos && to_csv(figure).find("\"mid-schedule, tuned\"\n") != std::string::npos);
    const Figure again = figure_from_json(to_json(figure));
    QVERIFY(again.notes == figure.notes && again.curves == figure.curves);
    const auto three = write({{.mixer = "avey", .seed = 1}, {.mixer = "avey", .seed = 2}, {.mixer = "avey", .seed = 3}});
    std::vector<const Run*> all = pointers_to(runs);
    for (const Run& run : three) all.push_back(&run);
    const std::string many = trajectory_figure(all, "", {}, {}, {}, by_study).notes[1];
    QVERIFY2(many.starts_with("Tuned: Transformer++") && many.ends_with(". One rate only: all others."), many.c_str());
    const Figure alike = trajectory_figure(pointers_to(runs), "", {}, {}, {}, [](const Run&) { return Tuning{}; });
    QCOMPARE(alike.notes[1], std::string("Learning rates, all: one rate only."));
    QCOMPARE(trajectory_figure(pointers_to(runs)).notes.size(), size_t{1});  // nobody was asked
  }

  /// As papers print it: p where seeds pair, what is mid-schedule, how the rows were tuned.
  void theTableForPapersHasTests() {
    const auto pairs = write(
        {{.seed = 1}, {.seed = 2}, {.mixer = "top1_chunk", .seed = 1, .offset = 0.1}, {.mixer = "top1_chunk", .seed = 2, .offset = 0.11}});
    const PageTable single = loss_table({&pairs[0], &pairs[2]});
    const auto equal_of = [](const PageTable& table) { return table.header.back(); };
    QCOMPARE(single.header.size(), size_t{7});
    QVERIFY2(equal_of(single).ends_with(" (mid-schedule)"), equal_of(single).c_str());
    QVERIFY(single.notes.empty());
    const PageTable table = loss_table(pointers_to(pairs), {.tuning = [](const Run&) { return Tuning{}; }});
    QCOMPARE(table.header.size(), size_t{10});
    QVERIFY(table.header[5] == "p" && table.header[7] == "p" && table.rows[0][7] == "–");
    QCOMPARE(table.rows[1][7], std::string("0.030"));  // of 0.10 and 0.11: t = 21 with one degree of freedom
    QVERIFY(table.notes[0].starts_with("p: paired t test"));
    QVERIFY2(table.notes[1].ends_with("untuned: one rate only"), table.notes[1].c_str());
  }

  /// Runs at another rate than their search chose are not tuned, even where all have the same wrong one.
  void aRunOffItsBestValueIsNotTuned() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const auto inside = [](const Run&) { return judge_tuning("training.learning_rate", {{0.001, 3}, {0.004, 2}, {0.016, 4}}); };
    const Comparison c = compare(pointers_to(runs), {}, "", {}, {}, inside);
    const std::string words = "not at its best value: 0.001, the search chose 0.004 of 0.001, 0.004, 0.016";
    QCOMPARE(c.rows[0].tuning.state, Tuning::State::off_best);
    QCOMPARE(c.tuning, std::vector<std::string>{"Transformer++, Top-1 Chunk exact: " + words});
    QCOMPARE(c.warnings.size(), size_t{1});
    QVERIFY2(c.warnings[0].starts_with("Transformer++, Top-1 Chunk exact: not trained at the best value"), c.warnings[0].c_str());
    QVERIFY(to_text(c).find(words) != std::string::npos && to_text(c).find(": tuned") == std::string::npos);
    const nlohmann::json json = to_json(c)["rows"][1]["tuning"];
    QCOMPARE(json["state"], "not at its best value");
    QCOMPARE(json["own"], 0.001);
    const auto edge = [](const Run&) { return judge_tuning("training.learning_rate", {{0.001, 3}, {0.004, 2}}); };
    const Comparison at_edge = compare(pointers_to(runs), {}, "", {}, {}, edge);
    QVERIFY2(at_edge.tuning[0].ends_with("the search chose 0.004 of 0.001, 0.004, at its edge; extend with 0.016"),
             at_edge.tuning[0].c_str());
  }

  void tellsHowFarTriedValuesLieApart() {
    QCOMPARE(spread_of(judge_tuning("training.learning_rate", {{0.001, 3}, {0.004, INFINITY}, {0.002, 2}})), 0.5);
    QVERIFY(std::isnan(spread_of(judge_tuning("training.learning_rate", {{0.001, 3}, {0.004, INFINITY}}))));
    QVERIFY(std::isnan(spread_of(Tuning{})));
  }

  /// Runs that each have their own best rate are not warned of for it; one that has not its best is.
  void bestRatesMayDiffer() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const Run other = ComparedRuns::rewritten(runs[1], "/config/training/learning_rate", "0.004");
    const auto warned = [&](double best_of_other) {
      const auto tuning = [&](const Run& run) {
        const double best = run.info().title == "Transformer++" ? 0.001 : best_of_other;
        return judge_tuning("training.learning_rate", {{best / 2, 3}, {best, 2}, {best * 2, 4}});
      };
      const Comparison c = compare({&runs[0], &other}, {}, "", {}, {}, tuning);
      return std::any_of(c.warnings.begin(), c.warnings.end(),
                         [](const std::string& warning) { return warning.find("learning_rate") != std::string::npos; });
    };
    QVERIFY(!warned(0.004));
    QVERIFY(warned(0.008));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ComparisonTuningTest)
#include "comparison_tuning_test.moc"
