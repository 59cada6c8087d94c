#include "analysis/comparison/comparison.h"

#include <QtTest>
#include <cmath>

#include "analysis/comparison/groups.h"
#include "analysis/figures/figure.h"
#include "kernels/engine/error.h"
#include "tests/analysis/compared_runs.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// What is compared at equal loss: which loss that is, which runs are a row, and how seeds pair.
class ComparisonTest : public QObject {
  Q_OBJECT
  std::unique_ptr<ComparedRuns> runs_;
  fs::path path(const std::string& name) const { return runs_->path(name); }
  std::vector<Run> write(const std::vector<FixtureOptions>& all) const { return runs_->write(all); }
  static std::vector<const Run*> pointers_to(const std::vector<Run>& runs) { return ComparedRuns::pointers_to(runs); }

 private Q_SLOTS:
  void init() { runs_ = std::make_unique<ComparedRuns>(); }

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
      const std::string folder = path(mixer + std::to_string(seed));
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
    for (size_t i = 0; i < 3; ++i)
      runs[i] = ComparedRuns::rewritten(runs[i], "/provenance/parent", R"({"path": "/runs/first", "step": 4})");
    const Comparison c = compare(pointers_to(runs));
    const ComparisonRow& forks = c.rows[0];
    QVERIFY(!forks.independent && forks.ood_at_equal.mean && !forks.ood_at_equal.deviation && !forks.ood_at_equal.half_95);
    QVERIFY(forks.ood_at_end.mean && !forks.ood_at_end.deviation && !c.rows[1].ood_at_end.test);
    QVERIFY(!c.rows[1].ood_at_equal.test && c.rows[1].ood_at_equal.half_95 && c.rows[1].ood_at_equal.against_first);
    QVERIFY(!best_row(c, ComparedAt::equal_loss) && !best_row(c, ComparedAt::end));
    QCOMPARE(c.warnings,
             (std::vector<std::string>{"attention-seed1, attention-seed2, attention-seed3: went on from one run, so they are no "
                                       "independent repetitions: no interval, no test"}));
    runs[1] = ComparedRuns::rewritten(runs[1], "/provenance/parent", R"({"path": "/runs/second", "step": 4})");
    runs[2] = ComparedRuns::rewritten(runs[2], "/provenance/parent", R"({"path": "/runs/third", "step": 4})");
    QVERIFY(compare(pointers_to(runs)).rows[0].independent);  // each has a parent of its own
    runs[1] = ComparedRuns::rewritten(runs[1], "/provenance/parent",
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
    const auto runs = write({ComparedRuns::small(1, 0), ComparedRuns::small(2, 0.2), ComparedRuns::small(3, 0.4)});
    const Run changed = ComparedRuns::rewritten(runs[2], pointer, value);
    const Comparison c = compare({&runs[0], &runs[1], &changed}, 2.5);
    QCOMPARE(c.rows.size(), static_cast<size_t>(rows));
    QCOMPARE(c.rows[0].runs.size(), static_cast<size_t>(4 - rows));
    QVERIFY(std::abs(c.rows[0].ood_at_equal.mean.value() - (1.25 * 2.5 + (rows == 1 ? 0.2 : 0.1))) < 1e-9);
    QVERIFY(std::abs(c.rows[0].ood_at_equal.deviation.value() - (rows == 1 ? 0.2 : 0.2 / std::sqrt(2.0))) < 1e-9);
  }

  void aLossNotReachedByEverySeedIsNotAveraged() {
    const auto runs = write({{.seed = 1, .steps = 200}, {.seed = 2, .steps = 200}});
    QVERIFY(!compare(pointers_to(runs), 0.5).rows[0].ood_at_equal.mean);
    QVERIFY(!compare(pointers_to(runs), 9.0).rows[0].ood_at_equal.mean);
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
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ComparisonTest)
#include "comparison_test.moc"
