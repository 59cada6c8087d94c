#include "analysis/comparison/comparison.h"

#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <fstream>

#include "analysis/comparison/groups.h"
#include "analysis/comparison/sequence_losses.h"
#include "analysis/figures/figure.h"
#include "analysis/figures/loss_table.h"
#include "analysis/runs/run_info.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;

class ComparisonTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void interpolatesAlongTheEnvelope_data() {
    QTest::addColumn<double>("loss");
    QTest::addColumn<double>("expected");
    QTest::newRow("at the first point") << 5.0 << 6.0;
    QTest::newRow("between") << 4.5 << 5.5;
    QTest::newRow("at a point") << 4.0 << 5.0;
    QTest::newRow("over a bump") << 3.5 << 4.75;  // the way from (4, 5) to (3, 4.5); (4.2, 9) is no part of it
    QTest::newRow("at the last point") << 3.0 << 4.5;
    QTest::newRow("above the first") << 5.1 << std::nan("");
    QTest::newRow("below the last") << 2.9 << std::nan("");
  }
  void interpolatesAlongTheEnvelope() {
    QFETCH(double, loss);
    QFETCH(double, expected);
    const Trajectory t{{5, 4, 4.2, 3}, {6, 5, 9, 4.5}, {1, 2, 3, 4}};
    const auto ood = ood_at(t, loss);
    QCOMPARE(ood.has_value(), !std::isnan(expected));
    if (ood) QVERIFY(std::abs(*ood - expected) < 1e-12);
  }

  /// By hand: differences of the seeds that both have; the third row lacks the first's seed 1 and has one of its own.
  void seedsArePairedAtTheEqualLoss() {
    std::vector<std::unique_ptr<Run>> runs;
    std::vector<const Run*> all;
    const auto add = [&](const char* mixer, int64_t seed, double offset) {
      const std::string folder = (folder_->path() + "/" + mixer + QString::number(seed)).toStdString();
      write_fixture(folder, {.mixer = mixer, .seed = seed, .offset = offset});
      runs.push_back(std::make_unique<Run>(folder));
      all.push_back(runs.back().get());
    };
    for (const int64_t seed : {1, 2, 3}) add("attention", seed, 0), add("top1_element", seed, 0.1 + 0.01 * static_cast<double>(seed));
    for (const int64_t seed : {2, 4}) add("top1_chunk", seed, 0.3);
    const Comparison comparison = compare(all);
    QCOMPARE(comparison.rows.size(), size_t{3});
    QVERIFY(!comparison.rows[0].ood_at_equal.test && comparison.rows[0].ood_at_equal.half_95);
    const PairedTest& element = comparison.rows[1].ood_at_equal.test.value();
    QCOMPARE(element.difference.count, int64_t{3});
    QVERIFY(std::abs(element.difference.mean - 0.12) < 1e-9 && std::abs(*element.difference.deviation - 0.01) < 1e-9);
    QVERIFY(*element.p < 0.003 && *element.p_holm == *element.p && element.more == 0);  // t = 20.8; one other test alone has no p
    QCOMPARE(comparison.rows[2].ood_at_equal.test->difference.count, int64_t{1});
    QVERIFY(!comparison.rows[2].ood_at_equal.test->p && !comparison.rows[2].ood_at_equal.test->more);
    const nlohmann::json json = to_json(comparison);
    QCOMPARE(json["rows"][1]["paired_test"]["pairs"], 3);
    QVERIFY(std::abs(*comparison.rows[2].ood_at_equal.against_first - 0.3) < 1e-9);  // of seed 2, which both have
    QVERIFY(std::abs(json["rows"][1]["paired_test"]["interval_95"].get<double>() - 4.302653 * 0.01 / std::sqrt(3.0)) < 1e-6);
    QVERIFY(to_text(comparison).find("0.0248") != std::string::npos);
    QCOMPARE(json["rows"][1]["read_from"], "mid-schedule");
    QVERIFY(to_text(comparison).find("mid-schedule") != std::string::npos);
    QVERIFY(json["rows"][0]["paired_test"].is_null());
    // the same at the end, with the errors of the text: 0.02 and 0.03 of two domains, and a hundredth of the loss of the only one
    const ComparedLoss& end = comparison.rows[1].ood_at_end;
    QVERIFY(end.test && end.test->difference.count == 3 && std::abs(end.test->difference.mean - 0.12) < 1e-9);
    QVERIFY(*end.test->p_holm < 0.003 && std::abs(*end.test->difference.half_95 - 4.302653 * 0.01 / std::sqrt(3.0)) < 1e-6);
    QVERIFY(std::abs(*end.against_first - 0.12) < 1e-9 && end.half_95 && *end.deviation > 0);
    QVERIFY(std::abs(*end.text_error - std::hypot(0.02, 0.03) / 2) < 1e-12);
    const ComparedLoss& inside = comparison.rows[0].id_at_end;
    QVERIFY(std::abs(*inside.text_error - 0.01 * *inside.mean) < 1e-12 &&
            std::abs(*inside.half_95 - 4.302653 * 0.01 / std::sqrt(3.0)) < 1e-6);
    QVERIFY(std::abs(comparison.rows[1].id_at_end.test->difference.mean) < 1e-12);
    for (const char* loss : {"id", "ood"}) QCOMPARE(json["rows"][1]["at_end"][loss]["paired_test"]["pairs"], 3);
    QCOMPARE(json["rows"][1]["at_equal"]["ood"]["paired_test"], json["rows"][1]["paired_test"]);
    QCOMPARE(json["ends"], "journals");
    const std::string text = to_text(comparison);
    QVERIFY(text.find("\nOOD at the end") != text.npos && text.find("\nID at the end") != text.npos && text.find("0.0180") != text.npos);
    QVERIFY(to_text(comparison).find("needs a second seed") != std::string::npos);
  }

  /// Three forks of one run share its beginning, and a copy is no second repetition.
  void forksAndCopiesAreNoRepetitions() {
    auto runs = write({{.seed = 1},
                       {.seed = 2, .offset = 0.1},
                       {.seed = 3, .offset = 0.2},
                       {.mixer = "top1_chunk", .seed = 1, .offset = 1},
                       {.mixer = "top1_chunk", .seed = 2, .offset = 1.1},
                       {.mixer = "top1_chunk", .seed = 3, .offset = 1.3}});
    QVERIFY(compare(pointers_to(runs)).rows[0].independent && best_row(compare(pointers_to(runs)), ComparedAt::equal_loss) == size_t{0});
    for (size_t i = 0; i < 3; ++i) runs[i] = rewritten(runs[i], "/provenance/parent", R"({"path": "/runs/first", "step": 4})");
    const Comparison c = compare(pointers_to(runs));
    const ComparisonRow& forks = c.rows[0];
    QVERIFY(!forks.independent && forks.ood_at_equal.mean && !forks.ood_at_equal.deviation && !forks.ood_at_equal.half_95);
    QVERIFY(forks.ood_at_end.mean && !forks.ood_at_end.deviation && !c.rows[1].ood_at_end.test);
    QVERIFY(!c.rows[1].ood_at_equal.test && c.rows[1].ood_at_equal.half_95 && c.rows[1].ood_at_equal.against_first);
    QVERIFY(!best_row(c, ComparedAt::equal_loss) && !best_row(c, ComparedAt::end));
    QCOMPARE(c.warnings,
             (std::vector<std::string>{"attention-seed1, attention-seed2, attention-seed3: went on from one run, so they are no "
                                       "independent repetitions: no interval, no test"}));
    runs[1] = rewritten(runs[1], "/provenance/parent", R"({"path": "/runs/second", "step": 4})");
    runs[2] = rewritten(runs[2], "/provenance/parent", R"({"path": "/runs/third", "step": 4})");
    QVERIFY(compare(pointers_to(runs)).rows[0].independent);  // each has a parent of its own
    runs[1] = rewritten(runs[1], "/provenance/parent",
                        "{\"path\": \"" + QString::fromStdString(runs[2].info().directory.string()) + "\", \"step\": 4}");
    QVERIFY(!compare(pointers_to(runs)).rows[0].independent);  // a run and its fork
    fs::copy(runs[3].info().directory, path("copy"), fs::copy_options::recursive);
    const Run copy(path("copy"));
    const Comparison twice = compare({&runs[3], &copy});
    QCOMPARE(twice.rows[0].seeds, std::vector<int64_t>{1});
    QVERIFY(twice.rows[0].runs.size() == 2 && !twice.rows[0].ood_at_equal.deviation && !twice.rows[0].ood_at_end.half_95);
    QCOMPARE(twice.warnings.size(), size_t{1});
    QVERIFY2(twice.warnings[0].ends_with(": have the same seed (1), so they count as one"), twice.warnings[0].c_str());
  }

  void nothingFromNothing() {
    QVERIFY(!ood_at({}, 3));
    QVERIFY(!common_loss({}));
    QVERIFY(compare({}).rows.empty());
    QCOMPARE(ood_at({{3}, {4}, {1}}, 3).value(), 4.0);
  }

  void pairsStepsThatAreBothKnown() {
    RunWriter writer = RunWriter::create(path("gaps"), fixture_info({}));
    for (const auto& [step, inside, outside] :
         std::vector<std::tuple<int64_t, double, double>>{{1, 5, 6}, {2, std::nan(""), 5}, {3, 4, INFINITY}, {4, 3, 4}})
      writer.add(EvaluationRecord{fixture_position(step), {{"prose", false, inside}, {"c", true, outside}}});
    const Trajectory t = trajectory(Run(path("gaps")));
    QCOMPARE(t.step, (std::vector<double>{1, 4}));
    QCOMPARE(t.pretraining, (std::vector<double>{5, 3}));
    QCOMPARE(t.ood, (std::vector<double>{6, 4}));
    QVERIFY(trajectory(Run(path("gaps")), "none").step.empty());
  }

  void leavesOutGroupsThatMeetNoOther() {
    const auto falls = [](double from, double to) { return Trajectory{{from, to}, {from + 1, to + 1}, {1, 2}}; };
    const std::vector<Trajectory> first{falls(3.5, 3.1), falls(3.4, 3.0)}, ahead{falls(3.2, 2.9)}, behind{falls(4.0, 3.3)}, never{{}};
    QCOMPARE(widest_common_loss({first, ahead}).value(), 3.1);
    QCOMPARE(widest_common_loss({first, behind}).value(), 3.3);
    QVERIFY(!lowest_common_loss({first[0], first[1], ahead[0], behind[0]}));
    QCOMPARE(widest_common_loss({first, ahead, behind}).value(), 3.1);  // one each: the lower one
    QCOMPARE(widest_common_loss({first, ahead, behind, never, {falls(4.0, 3.35)}}).value(), 3.35);
    QVERIFY(!widest_common_loss({first, {falls(5, 4)}}));
    QVERIFY(!widest_common_loss({ahead, behind}));
    QVERIFY(!widest_common_loss({never, behind}));
  }

  void comparesAtTheLowestLossAllHaveReached() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1, .steps = 100, .offset = 0.25}});
    const auto pointers = pointers_to(runs);
    const double expected = runs[1].find("validation/loss")->value.back();
    QCOMPARE(common_loss(pointers).value(), expected);
    const Comparison c = compare(pointers);
    QCOMPARE(c.equal_loss.value(), expected);
    QCOMPARE(c.rows.size(), size_t{2});
    QCOMPARE(c.rows[0].title, std::string("Transformer++"));
    QCOMPARE(c.rows[0].ood_at_equal.against_first.value(), 0.0);
    QVERIFY(std::abs(c.rows[1].ood_at_equal.against_first.value() - 0.25) < 1e-9);  // OOD is 1.25 times the loss, plus the offset
    QVERIFY(std::abs(c.rows[0].ood_at_equal.mean.value() - 1.25 * expected) < 1e-9);
    QVERIFY(!c.rows[0].ood_at_equal.deviation);
    QCOMPARE(c.rows[0].domains.size(), size_t{2});
    QVERIFY(std::abs(compare(pointers, 3.0, "c").rows[0].ood_at_equal.mean.value() - 3.6) < 1e-9);
  }

  void runsThatDivergedOrHaveNoLossYetDoNotCount() {
    const auto runs = write({{.seed = 1}, {.seed = 2, .end = RunState::diverged}, {.seed = 3, .steps = 5}});
    QVERIFY(!runs[2].find("validation/loss"));
    QCOMPARE(common_loss(pointers_to(runs)).value(), runs[0].find("validation/loss")->value.back());
    QVERIFY(!common_loss({&runs[1], &runs[2]}));
  }

  /// The rule of studies' reports: the first row and the most others, each with all of its seeds; and the reason is told.
  void comparesWhereTheFirstAndTheMostOthersHaveBeen() {
    const auto ends = [](const Run& run) { return run.find("validation/loss")->value.back(); };
    const auto runs = write({{.seed = 1},
                             {.seed = 2, .steps = 120},
                             {.mixer = "top1_chunk", .seed = 1, .steps = 100},
                             {.mixer = "avey", .seed = 1, .steps = 60},
                             {.mixer = "top1_element", .seed = 1, .steps = 40, .end = RunState::stopped}});
    const auto pointers = pointers_to(runs);
    QCOMPARE(common_loss(pointers).value(), ends(runs[3]));  // the one that is not finished does not count
    Comparison c = compare(pointers);
    QCOMPARE(c.equal_loss.value(), ends(runs[3]));
    QVERIFY2(c.equal_reason.ends_with("is the lowest pre-training loss that Transformer++ and 2 of 3 others have passed."),
             c.equal_reason.c_str());
    QVERIFY(to_text(c).find(c.equal_reason) != std::string::npos);
    QCOMPARE(to_json(c)["equal_loss_reason"], c.equal_reason);
    QVERIFY(compare(pointers, 3.0).equal_reason == "3.000 nats was chosen.");
    QCOMPARE(common_loss({pointers[0], pointers[1]}).value(), std::max(ends(runs[0]), ends(runs[1])));  // all seeds of the first
    QCOMPARE(common_loss({pointers[4]}).value(), ends(runs[4]));
    const auto alone = write({{.seed = 9, .steps = 20}, {.mixer = "avey", .seed = 9, .steps = 400}});
    c = compare({&alone[0], &alone[1]});
    QCOMPARE(c.equal_loss.value(), ends(alone[0]));
  }

  void tellsTheMostMemoryOfARow() {
    auto runs = write({{.seed = 1, .health = true}, {.seed = 2, .health = true}, {.mixer = "avey", .seed = 1}});
    const auto pointers = pointers_to(runs);
    Comparison c = compare(pointers);  // on the CPU: of the process, 400 MiB and the last step
    QCOMPARE(c.rows[0].memory_bytes, 600.0 * (1 << 20));
    QVERIFY(c.rows[0].memory_of_process && std::isnan(c.rows[1].memory_bytes));
    QVERIFY(to_text(c).find("600 MiB (process)") != std::string::npos);
    QCOMPARE(to_json(c)["rows"][0]["peak_memory_bytes"], 600 << 20);
    QCOMPARE(to_json(c)["rows"][0]["peak_memory_of"], "process");
    QVERIFY(to_json(c)["rows"][1]["peak_memory_bytes"].is_null() && to_json(c)["rows"][1]["peak_memory_of"].is_null());
  }

  void gathersSeeds() {
    const auto runs =
        write({{.seed = 1, .offset = 0.0}, {.seed = 2, .offset = 0.2}, {.seed = 3, .offset = 0.4}, {.mixer = "avey", .seed = 1}});
    const Comparison c = compare(pointers_to(runs), 2.5);
    QCOMPARE(c.rows.size(), size_t{2});
    QCOMPARE(c.rows[0].runs, (std::vector<std::string>{"attention-seed1", "attention-seed2", "attention-seed3"}));
    QVERIFY(std::abs(c.rows[0].ood_at_equal.mean.value() - (1.25 * 2.5 + 0.2)) < 1e-9);
    QVERIFY(std::abs(c.rows[0].ood_at_equal.deviation.value() - 0.2) < 1e-9);  // sample deviation of 0, 0.2, 0.4
    QVERIFY(!c.rows[1].ood_at_equal.deviation);
    QCOMPARE(c.warnings.size(), size_t{1});  // of the published Avey, whose ranker sees the whole split, beside causal models
    QVERIFY2(c.warnings[0].starts_with("avey-seed1: look ahead, so their losses are no causal model's"), c.warnings[0].c_str());
    QVERIFY(compare({&runs[3]}).warnings.empty());
  }

  /// A cooldown branch is a point of its run: equal losses lie between the ends, and it is no row of its own.
  void branchesBelongToTheirRuns() {
    const FixtureOptions trunk{.seed = 1}, first{.seed = 1, .steps = 60, .offset = 0.1}, second{.seed = 1, .steps = 120, .offset = 0.1};
    auto runs = write({trunk, {.mixer = "avey", .seed = 1}});
    for (const FixtureOptions& branch : {first, second}) {
      const fs::path directory = runs[0].info().directory / "branches" / ("step-" + std::to_string(branch.steps));
      write_fixture(directory, branch);
      runs.emplace_back(directory);
    }
    const std::vector<const Run*> all = pointers_to(runs);
    const Comparison c = compare(all, 3.0);
    QCOMPARE(c.rows.size(), size_t{2});
    QVERIFY(c.rows[0].branch_ends && !c.rows[1].branch_ends);
    QCOMPARE(read_from(c.rows[0]), std::string("branch ends"));
    QCOMPARE(read_from(c.rows[1]), std::string("mid-schedule"));
    const double at_60 = fixture_loss(first, 60), at_120 = fixture_loss(second, 120);
    QVERIFY(at_60 > 3.0 && at_120 < 3.0);
    const double along = (at_60 - 3.0) / (at_60 - at_120), ood_60 = 1.25 * at_60 + 0.1, ood_120 = 1.25 * at_120 + 0.1;
    QVERIFY(std::abs(*c.rows[0].ood_at_equal.mean - (ood_60 + along * (ood_120 - ood_60))) < 1e-9);
    QVERIFY(std::abs(*c.rows[1].ood_at_equal.mean - 1.25 * 3.0) < 1e-9);
    const std::vector<const Run*> alone{all[2]};  // without its run it stands for itself
    QCOMPARE(compare(alone, 3.4).rows.size(), size_t{1});
    std::vector<std::string> names;
    for (const RunGroup& group : group_runs(all)) names.push_back(group.label);
    QCOMPARE(names, (std::vector<std::string>{"Transformer++", "Avey", "Transformer++, cooldown from step 60",
                                              "Transformer++, cooldown from step 120"}));
    const Figure figure = trajectory_figure(all);
    QCOMPARE(figure.curves.size(), size_t{4});  // two runs, the ends of one, and a word on what these are
    QVERIFY(figure.curves[1].label.ends_with(", branch ends"));
    QCOMPARE(figure.curves[1].y.size(), size_t{3});
    QCOMPARE(figure.curves[1].note, std::string("branch ends"));
    QVERIFY(figure.curves[0].note.empty() && figure.curves[2].note == "mid-schedule");
    QCOMPARE(figure.notes.size(), size_t{1});
    QVERIFY2(figure.notes[0].starts_with("Without ends of cooldown branches, Avey: "), figure.notes[0].c_str());
  }

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

  /// A standard error falls with the root of the number of tokens, which are doubled as often as that asks for, at least once.
  void moreTokensForASmallerError() {
    QCOMPARE(tokens_for_error(1000, 0.02, 0.005), 16'000);
    QCOMPARE(tokens_for_error(1000, 0.0101, 0.005), 8000);
    QCOMPARE(tokens_for_error(1000, 0.0051, 0.005), 2000);
    QCOMPARE(tokens_for_error(1000, 100, 0.005), 64'000);
    QCOMPARE(tokens_for_error(1000, INFINITY, 0.005), 2000);
  }

  /// Fewer sequences than were asked for are all there are.
  void aWholeSplitIsSeenAtOnce() {
    SequenceLosses losses{.step = 1, .length = 100, .text = "text", .split = "test", .domains = {}};
    losses.domains["a"].by_sequence = {1, 1, 1}, losses.domains["b"].by_sequence = {1, 1};
    QVERIFY(!is_whole_split(losses, 300));
    QVERIFY(!is_whole_split(losses, 399));
    QVERIFY(is_whole_split(losses, 400));
  }

  /// Runs that each have their own best rate are not warned of for it; one that has not its best is.
  void bestRatesMayDiffer() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const Run other = rewritten(runs[1], "/config/training/learning_rate", "0.004");
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

  /// The same run on three axes: domains the same, by their tokens in training, and the training loss of the last tokens.
  void pretrainingLossCanBeChosen() {
    RunInfo info = fixture_info({});
    info.config["data"]["train"] = {"prose", "web"};
    info.provenance["domain_tokens"] = {{"prose", 1000}, {"web", 3000}};
    RunWriter writer = RunWriter::create(path("axes"), info);
    for (int64_t step = 1; step <= 40; ++step) {
      const Position at = fixture_position(step);
      writer.add(StepRecord{step, at.tokens, at.flops, at.seconds, static_cast<double>(step), 1e-3, 1, 1000});
      if (step % 20 == 0) writer.add(EvaluationRecord{at, {{"prose", false, 4, 0.1}, {"web", false, 2, 0.1}, {"c", true, 5, 0.1}}});
    }
    const Run run(path("axes"));
    using Kind = PretrainingLoss::Kind;
    QCOMPARE(trajectory(run).pretraining, (std::vector<double>{3, 3}));
    QCOMPARE(trajectory(run, "", {Kind::weighted}).pretraining, (std::vector<double>{2.5, 2.5}));
    QCOMPARE(trajectory(run, "", {Kind::train, 4 * 1024}).pretraining, (std::vector<double>{18.5, 38.5}));  // 17 … 20, 37 … 40
    QCOMPARE(trajectory(run, "", {Kind::train, 1}).pretraining, (std::vector<double>{20, 40}));
    QCOMPARE(trajectory(run, "", {Kind::train, 1e9}).pretraining, (std::vector<double>{10.5, 20.5}));
    QCOMPARE(compare({&run}, {}, "", {}, {Kind::weighted}).rows[0].id_at_end.mean, std::optional(2.5));
    QCOMPARE(common_loss({&run}, {Kind::weighted}).value(), 2.5);
    QVERIFY(to_text(compare({&run}, {}, "", {}, {Kind::train, 2e6})).find("training loss, mean over the last 2e+06 tokens") !=
            std::string::npos);
    QVERIFY(to_text(compare({&run})).find("each domain counting the same") != std::string::npos);
    require_recorded({&run}, {Kind::weighted});
    const auto old = write({{.seed = 9}});  // records no tokens
    QVERIFY_THROWS_EXCEPTION(DataError, require_recorded({&old[0]}, {Kind::weighted}));
    require_recorded({&old[0]}, {Kind::train});
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_pretraining_loss("loss"));
  }

  void whatRepeatsAnExperimentIsOneRow_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<int>("rows");
    const auto row = [](const char* pointer, const char* value, int rows) { QTest::newRow(pointer) << pointer << value << rows; };
    row("/config/training/seed", "7", 1);
    row("/config/name", "\"again\"", 1);
    row("/config/threads", "3", 1);
    row("/config/device", "\"cuda:1\"", 1);
    row("/config/training/checkpoint_every", "17", 1);
    row("/config/training/evaluate_every", "17", 1);
    row("/config/training/probe_every", "17", 1);
    row("/config/training/capture_every", "17", 1);
    row("/config/training/weight_decay", "0.1", 1);  // the default, which the other run's config does not name
    row("/config/precision", "\"f64\"", 2);
    row("/provenance/precision", "\"bf16\"", 2);
    row("/config/training/learning_rate", "0.01", 2);
    row("/config/training/weight_decay", "0.2", 2);
    row("/config/training/schedule", "\"linear\"", 2);
    row("/config/training/steps", "201", 2);
    row("/config/data/train", "[\"code\"]", 2);
    row("/config/data/ood", "[\"c\"]", 2);
    row("/config/architecture/window", "64", 2);
    row("/config/a_setting_of_another_version", "1", 2);
  }
  void whatRepeatsAnExperimentIsOneRow() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(int, rows);
    const auto runs = write({small(1, 0), small(2, 0.2), small(3, 0.4)});
    const Run changed = rewritten(runs[2], pointer, value);
    const Comparison c = compare({&runs[0], &runs[1], &changed}, 2.5);
    QCOMPARE(c.rows.size(), static_cast<size_t>(rows));
    QCOMPARE(c.rows[0].runs.size(), static_cast<size_t>(4 - rows));
    QVERIFY(std::abs(c.rows[0].ood_at_equal.mean.value() - (1.25 * 2.5 + (rows == 1 ? 0.2 : 0.1))) < 1e-9);
    QVERIFY(std::abs(c.rows[0].ood_at_equal.deviation.value() - (rows == 1 ? 0.2 : 0.2 / std::sqrt(2.0))) < 1e-9);
  }

  void namesDifferencesOfTraining_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("warning");
    const auto row = [](const char* pointer, const char* value, const char* warning) {
      QTest::newRow(pointer) << pointer << value << (QStringLiteral("attention-seed2: ") + warning);
    };
    row("/provenance/precision", "\"f64\"", "compute in another precision (f64) than attention-seed1 (f32)");
    row("/config/training/schedule", "\"linear\"", "are trained with another schedule (linear) than attention-seed1 (cosine)");
    row("/config/training/max_grad_norm", "0", "are trained with another max_grad_norm (0) than attention-seed1 (1.0)");
    row("/config/training/weight_decay", "0.2", "are trained with another weight_decay (0.2) than attention-seed1 (0.1)");
    row("/config/training/learning_rate", "0.01", "are trained with another learning_rate (0.01) than attention-seed1 (0.001)");
    row("/config/training/probe_every", "3", "");
    row("/config/device", "\"cuda:3\"", "");
  }
  void namesDifferencesOfTraining() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, warning);
    const auto runs = write({small(1, 0), small(2, 0)});
    const Run first = rewritten(runs[0], "/provenance/precision", "\"f32\""), same = rewritten(runs[1], "/provenance/precision", "\"f32\"");
    QVERIFY(compare({&first, &same}).warnings.empty());
    const Run changed = rewritten(runs[1], pointer, value);
    const Comparison c = compare({&first, &changed});
    const bool named = !warning.endsWith(": ");
    QCOMPARE(c.warnings, named ? std::vector<std::string>{warning.toStdString()} : std::vector<std::string>{});
  }

  void aLossNotReachedByEverySeedIsNotAveraged() {
    const auto runs = write({{.seed = 1, .steps = 200}, {.seed = 2, .steps = 200}});
    QVERIFY(!compare(pointers_to(runs), 0.5).rows[0].ood_at_equal.mean);
    QVERIFY(!compare(pointers_to(runs), 9.0).rows[0].ood_at_equal.mean);
  }

  void warnsOfRunsThatCannotBeCompared_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QByteArray>("value");
    QTest::addColumn<QString>("warning");
    const auto row = [](const char* name, const char* pointer, const char* value, const char* warning) {
      QTest::newRow(name) << QString::fromUtf8(pointer) << QByteArray(value) << QString::fromUtf8(warning);
    };
    row("corpus", "/provenance/corpus_hash", "", "another corpus");
    row("tokenizer", "/provenance/tokenizer_hash", "", "another tokenizer");
    row("length", "/config/data/sequence_length", "64", "another sequence length");
    row("evaluation", "/config/training/evaluation_tokens", "4096", "another number of tokens");
    row("domains", "/config/data/train", "[\"changed\"]", "other domains");
    row("parameters", "parameters", "", "more than 1 %");
    row("unfinished", "state", "", "not finished (stopped)");
  }
  void warnsOfRunsThatCannotBeCompared() {
    QFETCH(QString, pointer);
    QFETCH(QByteArray, value);
    QFETCH(QString, warning);
    const auto good = write({{.seed = 1}, {.seed = 2}});
    QVERIFY(compare(pointers_to(good)).warnings.empty());
    RunInfo info = read_run_info(good[1].info().directory);
    if (pointer == "parameters")
      info.parameters = 1'010'001;
    else if (pointer == "state")
      info.state = RunState::stopped;
    else if (pointer.startsWith("/config"))
      info.config[nlohmann::json::json_pointer(pointer.mid(7).toStdString())] = nlohmann::json::parse(value.toStdString());
    else
      info.provenance[pointer.section('/', -1).toStdString()] = "changed";
    write_run_info(info);
    const Run first(good[0].info().directory), changed(info.directory);
    const Comparison c = compare({&first, &changed});
    QCOMPARE(c.warnings.size(), size_t{1});
    const QString line = QString::fromStdString(c.warnings[0]);
    QVERIFY2(line.contains(warning) && line.contains("attention-seed2"), qPrintable(line));
    QVERIFY(QString::fromStdString(to_text(c)).contains("warning: "));
    if (pointer != "state") QVERIFY(compare({&first, &changed, &changed}).warnings == c.warnings);  // a name stands once
  }

  void settingsThatReadAlikeAreToldApart() {
    const auto runs = write({{.seed = 1}, {.seed = 2}, {.seed = 1, .layers = 5}, {.seed = 1, .layers = 7}});
    const auto labels = [&](const std::vector<const Run*>& some, const std::vector<const Run*>& among = {}) {
      std::vector<std::string> list;
      for (const RunGroup& group : group_runs(some, among)) list.push_back(group.label);
      return list;
    };
    QCOMPARE(labels(pointers_to(runs)),
             (std::vector<std::string>{"Transformer++, layers 3", "Transformer++, layers 5", "Transformer++, layers 7"}));
    QCOMPARE(labels({&runs[0], &runs[1]}), std::vector<std::string>{"Transformer++"});
    QCOMPARE(labels({&runs[2]}, pointers_to(runs)), std::vector<std::string>{"Transformer++, layers 5"});
    QCOMPARE(compare({&runs[2]}, {}, "", pointers_to(runs)).rows.at(0).title, std::string("Transformer++, layers 5"));
  }

  /// One run that is still young takes nothing from the others.
  void aYoungRunIsLeftOutAndNamed() {
    const auto runs =
        write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}, {.mixer = "avey", .seed = 1, .steps = 40, .end = RunState::stopped}});
    const Comparison whole = compare({&runs[0], &runs[1]}), with_young = compare(pointers_to(runs));
    QVERIFY(whole.equal_loss && with_young.equal_loss);
    QCOMPARE(*with_young.equal_loss, *whole.equal_loss);
    QVERIFY(with_young.rows[0].ood_at_equal.mean && with_young.rows[1].ood_at_equal.mean && !with_young.rows[2].ood_at_equal.mean);
    QCOMPARE(with_young.left_out.size(), size_t{1});
    QVERIFY(with_young.left_out[0].starts_with("avey-seed1, seed 1: has not come down to"));
    QVERIFY(whole.left_out.empty());
  }

  /// Twenty runs that diverged are told in one line.
  void unfinishedRunsAreOneWarning() {
    std::vector<FixtureOptions> options{{.seed = 1}, {.mixer = "avey", .seed = 1, .end = RunState::stopped}};
    for (int64_t seed = 1; seed <= 5; ++seed) options.push_back({.mixer = "top1_chunk", .seed = seed, .end = RunState::diverged});
    const auto runs = write(options);
    const std::vector<std::string> warnings = compare(pointers_to(runs)).warnings;
    const auto told = [&](const std::string& line) { return std::count(warnings.begin(), warnings.end(), line); };
    QCOMPARE(told("avey-seed1: is not finished (stopped)"), std::ptrdiff_t{1});
    QCOMPARE(told("top1_chunk-seed1, top1_chunk-seed2, top1_chunk-seed3 and 2 more: are not finished (diverged)"), std::ptrdiff_t{1});
  }

  /// What is left of a journal that lost its end is no end.
  void aDamagedRunHasNoEnd() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const auto journal = runs[1].info().directory / "journal.jsonl";
    std::string text = read_text(journal);
    text.resize(text.size() / 2);
    replace_text(journal, text);
    const Run damaged(runs[1].info().directory);
    QVERIFY(!damaged.damage().empty());
    const Comparison c = compare({&runs[0], &damaged});
    QVERIFY(!c.rows[1].ood_at_end.mean && !c.rows[1].id_at_end.mean);
    QVERIFY(c.rows[0].ood_at_end.mean);
    QCOMPARE(c.left_out.size(), size_t{1});
    QVERIFY(c.left_out[0].find("ends at step") != std::string::npos);
  }

  /// Ends after other numbers of tokens are no contest, and that is said.
  void endsAreEqualAfterAsManyTokens() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}, {.mixer = "avey", .seed = 1, .steps = 400}});
    const auto said = [](const Comparison& c) {
      return std::count_if(c.warnings.begin(), c.warnings.end(), [](const std::string& w) {
        return w.find("have been trained on another number of tokens") != std::string::npos && w.starts_with("avey-seed1");
      });
    };
    const Comparison equal = compare({&runs[0], &runs[1]}), longer = compare(pointers_to(runs));
    QVERIFY(equal.equal_ends && said(equal) == 0);
    QVERIFY(!longer.equal_ends && said(longer) == 1);
    QVERIFY(equal.rows[1].ood_at_end.test && !longer.rows[1].ood_at_end.test && !longer.rows[1].ood_at_end.against_first);
    QVERIFY(to_text(longer).find("their ends are not held against each other") != std::string::npos);
  }

  void onePercentOfParametersIsNear() {
    const auto runs = write({{.seed = 1}, {.seed = 2}});
    RunInfo info = read_run_info(runs[1].info().directory);
    info.parameters = 1'010'000;
    write_run_info(info);
    const Run changed(info.directory);
    QVERIFY(compare({&runs[0], &changed}).warnings.empty());
  }

  /// Two seeds each, evaluated on three sequences of two OOD domains and one trained on.
  void endsArePairedOnTheSameText() {
    const auto runs = write({{.seed = 1}, {.seed = 2}, {.mixer = "top1_chunk", .seed = 1}, {.mixer = "top1_chunk", .seed = 2}});
    const auto evaluate = [](const Run& run, double above, const std::string& corpus) {
      const auto domain = [&](const char* name, bool ood, std::vector<double> losses) {
        for (double& loss : losses) loss += above;
        const double mean = (losses[0] + losses[1] + losses[2]) / 3;
        return nlohmann::json{{"domain", name}, {"ood", ood}, {"loss", mean}, {"by_sequence", losses}, {"targets", {16, 16, 16}}};
      };
      const bool second = run.info().seed == 2, chunk = run.info().name.starts_with("top1");
      fs::create_directories(run.info().directory / "evaluations");
      std::ofstream(run.info().directory / "evaluations" / ("step-" + std::to_string(run.info().step) + ".validation.json"))
          << nlohmann::json{
                 {"step", run.info().step},
                 {"split", "validation"},
                 {"corpus_hash", corpus},
                 {"tokenizer_hash", "bytes"},
                 {"packing", "packed"},
                 {"sequence_length", 16},
                 {"domains",
                  {domain("prose", false, {1, 2, 3}), domain("c", true, {3, 4, 5}),
                   domain("d", true, chunk ? std::vector<double>{4.0, 5.2, second ? 6.1 : 6.3} : std::vector<double>{4, 5, 6})}}};
    };
    for (const Run& run : runs) evaluate(run, run.info().name.starts_with("top1") ? 0.5 : 0, "c0ffee");
    const Comparison c = compare(pointers_to(runs));
    QVERIFY(!c.rows[0].ood_paired && c.rows[0].losses);
    const LossAndError found = c.rows[1].ood_paired.value();
    // c: 0.5 everywhere; d, mean of seeds: 0.5, 0.7, 0.7, whose mean has the error 0.2 / 3
    QVERIFY(std::abs(found.loss - (0.5 + 1.9 / 3) / 2) < 1e-12);
    QVERIFY(std::abs(found.error - 0.2 / 3 / 2) < 1e-12);
    const QString text = QString::fromStdString(to_text(c));
    QVERIFY2(text.contains("+0.5667") && text.contains("0.0333") && text.contains("not of seeds"), qPrintable(text));
    QVERIFY(std::abs(to_json(c).at("rows")[1].at("ood_paired").at("standard_error").get<double>() - 0.1 / 3) < 1e-12);
    // ends are those of that evaluation: c 4, d 5, and above these
    QVERIFY(c.ends_kept && std::abs(*c.rows[0].ood_at_end.mean - 4.5) < 1e-12 &&
            std::abs(*c.rows[1].ood_at_end.mean - 4.5 - found.loss) < 1e-12);
    QVERIFY(std::abs(*c.rows[1].id_at_end.mean - 2.5) < 1e-12 && c.rows[1].id_at_end.test->difference.count == 2);
    QVERIFY(std::abs(*c.rows[0].id_at_end.text_error - 1 / std::sqrt(3.0)) < 1e-12);  // 1, 2, 3
    QVERIFY(std::abs(*c.rows[1].ood_paired_p - std::erfc(found.loss / found.error / std::sqrt(2.0))) < 1e-12);
    QVERIFY(text.contains("when they had ended") && to_json(c).at("ends") == "final evaluations");
    const Comparison of_one = compare(pointers_to(runs), {}, "c");
    QVERIFY(std::abs(of_one.rows[1].ood_paired->loss - 0.5) < 1e-12 && of_one.rows[1].ood_paired->error < 1e-12);
    QVERIFY(std::abs(*of_one.rows[0].ood_at_end.mean - 4) < 1e-12);
    evaluate(runs[3], 0, "other");  // seeds on other text: said, and nothing is compared
    const Comparison apart = compare(pointers_to(runs));
    QVERIFY(!apart.ends_kept && *apart.rows[0].ood_at_end.mean != 4.5);
    QVERIFY(!apart.rows[1].ood_paired && QString::fromStdString(apart.warnings.back()).contains("not evaluated on the same sequences"));
    std::ofstream(runs[3].info().directory / "evaluations" / ("step-" + std::to_string(runs[3].info().step) + ".validation.json")) << "{";
    QVERIFY(!compare(pointers_to(runs)).rows[1].ood_paired);
  }

  /// Two runs of ten steps, one twice as slow: each is read where the one that took least ended, between two evaluations.
  void tableIsAligned() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}});
    const QString text = QString::fromStdString(to_text(compare(pointers_to(runs))));
    const QStringList lines = text.split('\n');
    QCOMPARE(lines[0].size(), lines[1].size());
    QCOMPARE(lines[1].size(), lines[2].size());
    QVERIFY(lines[2].startsWith("Top-1 Chunk exact"));
    const auto json = to_json(compare(pointers_to(runs)));
    QCOMPARE(json.at("rows").size(), size_t{2});
    QVERIFY(json.at("rows")[0].at("spread").is_null());
    QVERIFY(json.at("rows")[0].at("ood_at_equal").is_number());
  }

 private:
  fs::path path(const std::string& name) const { return fs::path(folder_->path().toStdString()) / name; }
  std::vector<Run> write(const std::vector<FixtureOptions>& all) const {
    std::vector<Run> runs;
    for (const FixtureOptions& options : all) {
      const fs::path directory = path(options.mixer + std::to_string(options.seed) + "-" + std::to_string(options.layers));
      write_fixture(directory, options);
      RunInfo info = read_run_info(directory);
      info.config["training"]["steps"] = 200;
      write_run_info(info);
      runs.emplace_back(directory);
    }
    return runs;
  }
  static FixtureOptions small(int64_t seed, double offset) {
    return {.seed = seed, .layers = 1, .heads = 1, .length = 16, .offset = offset};
  }
  /// The run with one value of its run.json, "/config/…" or "/provenance/…", replaced.
  static Run rewritten(const Run& run, const QString& pointer, const QString& value) {
    RunInfo info = read_run_info(run.info().directory);
    nlohmann::json both{{"config", info.config}, {"provenance", info.provenance}};
    both[nlohmann::json::json_pointer(pointer.toStdString())] = nlohmann::json::parse(value.toStdString());
    info.config = both.at("config"), info.provenance = both.at("provenance");
    write_run_info(info);
    return Run(info.directory);
  }
  static std::vector<const Run*> pointers_to(const std::vector<Run>& runs) {
    std::vector<const Run*> list;
    for (const Run& run : runs) list.push_back(&run);
    return list;
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ComparisonTest)
#include "comparison_test.moc"
