#include <QtTest>
#include <cmath>
#include <fstream>

#include "analysis/comparison/comparison.h"
#include "analysis/comparison/sequence_losses.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_writer.h"
#include "tests/analysis/compared_runs.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Losses at the ends of runs, and what runs took.
class ComparisonEndsTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::unique_ptr<ComparedRuns> runs_;
  std::vector<Run> write(const std::vector<FixtureOptions>& all) const { return runs_->write(all); }
  static std::vector<const Run*> pointers_to(const std::vector<Run>& runs) { return ComparedRuns::pointers_to(runs); }
  /// An evaluation at step 200 of the OOD domain c.
  static void keep_end(const fs::path& run, const nlohmann::json& loss, const nlohmann::json& by_sequence) {
    fs::create_directories(run / "evaluations");
    const nlohmann::json domain{{"domain", "c"},
                                {"ood", true},
                                {"loss", loss},
                                {"by_sequence", by_sequence},
                                {"targets", std::vector<int64_t>(by_sequence.size(), 16)}};
    std::ofstream(run / "evaluations" / "step-200.validation.json")
        << nlohmann::json{{"step", 200},         {"split", "validation"}, {"corpus_hash", "c0ffee"}, {"tokenizer_hash", "bytes"},
                          {"packing", "packed"}, {"sequence_length", 16}, {"domains", {domain}}};
  }

 private Q_SLOTS:
  void init() { runs_ = std::make_unique<ComparedRuns>(); }

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

  /// A state that grew without bound on long text: JSON has null for its losses, which no mean takes in, and that is said.
  void anEndThatIsNotFiniteIsNamed() {
    const std::vector<FixtureOptions> seeds{{.seed = 1}, {.seed = 2}};
    std::vector<Run> runs;
    for (const FixtureOptions& o : seeds) {
      const fs::path directory = fs::path(folder_.path().toStdString()) / ("seed-" + std::to_string(o.seed));
      RunWriter writer = RunWriter::create(directory, fixture_info(o));
      EvaluationRecord record = fixture_evaluation(o, 200);
      if (o.seed == 2) record.losses[1].loss = NAN;
      writer.add(record);
      writer.set_state(RunState::finished, 200);
      const nlohmann::json loss = o.seed == 2 ? nlohmann::json() : nlohmann::json(3.0);
      keep_end(directory, loss, {loss, loss});
      runs.emplace_back(directory);
    }
    const Comparison c = compare(pointers_to(runs), {}, "c");
    QCOMPARE(c.warnings, (std::vector<std::string>{"attention-seed2, seed 2: the last loss of c is not finite, so no mean has it"}));
    QVERIFY(c.ends_kept);
    QCOMPARE(*c.rows.at(0).ood_at_end.mean, 3.0);
    QVERIFY(!c.rows[0].ood_at_end.text_error);
  }

  /// A run that stopped early was evaluated on fewer sequences, the first of the others': on these all are compared.
  void endsAreOfTheSequencesThatAllHave() {
    const auto runs = write({{.seed = 1}, {.seed = 2}, {.mixer = "top1_chunk", .seed = 1}});
    keep_end(runs[0].info().directory, 3, {1, 2, 6, 3});
    keep_end(runs[1].info().directory, 3, {1, 2, 6});
    keep_end(runs[2].info().directory, 4, {1.5, 2.5, 6.8, 4, 5.2});
    const Comparison c = compare(pointers_to(runs), {}, "c");
    QVERIFY(c.ends_kept && c.rows.at(0).losses && c.warnings.empty());
    QCOMPARE(c.rows[0].losses->domains.at("c").by_sequence, (std::vector<double>{1, 2, 6}));
    QCOMPARE(*c.rows[0].ood_at_end.mean, 3.0);
    QVERIFY(std::abs(*c.rows[1].ood_at_end.mean - 3.6) < 1e-12 && std::abs(c.rows[1].ood_paired.value().loss - 0.6) < 1e-12);
    QVERIFY(std::abs(c.rows[1].ood_paired->error - 0.1) < 1e-12);  // 0.5, 0.5, 0.8
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

  /// In the terminal columns stand under each other.
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
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ComparisonEndsTest)
#include "comparison_ends_test.moc"
