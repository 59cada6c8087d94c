#include <QtTest>

#include <cmath>

#include "analysis/figures/figure.h"
#include "analysis/figures/reads.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// A run that was interrupted, in whatever way, ends with the same journal and the same bytes of state as one that was not;
/// and the comparison notices when it must not.
class ResumeTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    corpus_ = std::make_unique<TinyCorpus>();
    whole_ = path("whole");
    QCOMPARE(work_on(whole_, tiny_config()).state, RunState::finished);
    stopped_ = path("stopped");
    QCOMPARE(work_on(stopped_, tiny_config(), 6).state, RunState::stopped);
    QCOMPARE(step_files(stopped_, kCheckpoints), (std::vector<int64_t>{4, 6}));
  }

  void sameConfigSameBytes() {
    work_on(path("again"), tiny_config());
    QVERIFY2(same(path("again")).isEmpty(), qPrintable(same(path("again"))));
  }

  void otherSeedDiffers() {
    RunConfig config = tiny_config();
    config.training.seed = 2;
    work_on(path("seed2"), config);
    QVERIFY(!same(path("seed2")).isEmpty());
  }

  void resumesAfterStop_data() {
    QTest::addColumn<QString>("mixer");
    QTest::addColumn<int>("after");
    for (int after : {1, 4, 11}) QTest::addRow("attention after %d", after) << "attention" << after;
    QTest::newRow("top1_chunk after 7") << "top1_chunk" << 7;
    QTest::newRow("top1_element after 7") << "top1_element" << 7;
    QTest::newRow("avey after 7") << "avey" << 7;
  }
  void resumesAfterStop() {
    QFETCH(QString, mixer);
    QFETCH(int, after);
    const RunConfig config = tiny_config(mixer.toStdString());
    const fs::path uninterrupted = path("uninterrupted"), directory = path("resumed");
    work_on(uninterrupted, config);
    QCOMPARE(work_on(directory, config, after).state, RunState::stopped);
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    QCOMPARE(difference(uninterrupted, directory), QString());
  }

  void capturesCanBeInspected_data() {
    QTest::addColumn<QStringList>("maps");
    QTest::newRow("attention") << QStringList{"weights"};
    QTest::newRow("top1_element") << QStringList{"weights", "soft_weights"};
    QTest::newRow("top1_chunk") << QStringList{"weights", "score", "captured_mass", "margin"};
    QTest::newRow("avey") << QStringList{"weights", "maxsim"};
  }
  void capturesCanBeInspected() {
    QFETCH(QStringList, maps);
    const QString mixer = QTest::currentDataTag();
    RunConfig config = tiny_config(mixer.toStdString());
    config.training.steps = 4;
    work_on(path("inspect"), config);
    const auto captures = Run(path("inspect")).captures(4);
    QCOMPARE(captures.size(), size_t{2});
    QCOMPARE(captures[1].domain, std::string("code"));
    QCOMPARE(captures[1].tokens.size(), size_t{48});
    for (const QString& map : maps) QVERIFY(capture_figure(captures[0], *parse_map_kind(map.toStdString()), 1, 0).map->rows > 0);
    const Reads r = reads_of(captures[0], 1, 0, 40);
    double sum = 0;
    for (const double w : r.weights) sum += w;
    QVERIFY2(std::abs(sum - 1) < 1e-5 || mixer == "avey", qPrintable(QString::number(sum)));
    QVERIFY(r.entropy >= 0 && r.entropy_normalized <= 1);
    const bool parts = mixer == "top1_chunk" || mixer == "avey";
    QCOMPARE(r.candidate_size, int64_t{parts ? 16 : 0});
    QCOMPARE(r.chosen_positions.size(), size_t{mixer == "top1_chunk" ? 16U : mixer == "avey" ? 32U : mixer == "top1_element" ? 1U : 0U});
  }

  void resumesAgainAndAgain() {
    const fs::path directory = path("often");
    for (int after : {2, 3, 5, 9}) QCOMPARE(work_on(directory, tiny_config(), after).state, RunState::stopped);
    work_on(directory, tiny_config());
    QCOMPARE(same(directory), QString());
  }

  void resumesAfterCrash() {
    const fs::path directory = crashed("crash");
    fs::remove(step_file(directory, kCheckpoints, 6));
    QCOMPARE(Run(directory).info().state, RunState::crashed);
    QCOMPARE(work_on(directory, tiny_config()).state, RunState::finished);
    QCOMPARE(same(directory), QString());
  }

  void startsAgainWhenItCrashedBeforeTheFirstCheckpoint() {
    const fs::path directory = crashed("early");
    for (int64_t step : step_files(directory, kCheckpoints)) fs::remove(step_file(directory, kCheckpoints, step));
    QCOMPARE(work_on(directory, tiny_config()).state, RunState::finished);
    QCOMPARE(same(directory), QString());
  }

  void fallsBackLoudly_data() {
    QTest::addColumn<double>("where");
    for (double where : {0.0, 0.3, 0.5, 0.7, 0.99}) QTest::addRow("byte at %g of the file", where) << where;
  }
  void fallsBackLoudly() {
    QFETCH(double, where);
    const fs::path directory = crashed("damaged");
    const fs::path newest = step_file(directory, kCheckpoints, 6);
    flip_byte(newest, where);
    bool readable = true;
    try {
      read_checkpoint(newest);
    } catch (const DataError&) {
      readable = false;
    }
    const Outcome outcome = work_on(directory, tiny_config());
    QCOMPARE(outcome.state, RunState::finished);
    QCOMPARE(outcome.said("checkpoint of step 6 is unusable"), !readable);
    QCOMPARE(same(directory), QString());
  }

  /// Killed between a checkpoint and what is measured at its step: resuming measures that first.
  void measuresWhatACheckpointCameBefore() {
    const fs::path directory = path("unmeasured");
    RunConfig config = tiny_config();
    work_on(directory, config, 8);  // a checkpoint, an evaluation, statistics and captures
    fs::remove(step_file(directory, kCaptures, 8));
    const std::string journal = read_text(directory / "journal.jsonl");
    size_t cut = journal.find("\"type\":\"step\",\"step\":8,");
    cut = journal.find('\n', cut) + 1;
    QVERIFY(journal.find("\"type\":\"statistics\"", cut) != std::string::npos);
    fs::resize_file(directory / "journal.jsonl", cut);
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    QCOMPARE(same(directory), QString());
    QCOMPARE(Run(directory).captures(8).size(), Run(whole_).captures(8).size());
  }

  void truncatedCheckpointFallsBack() {
    const fs::path directory = crashed("short");
    fs::resize_file(step_file(directory, kCheckpoints, 6), fs::file_size(step_file(directory, kCheckpoints, 6)) / 2);
    const Outcome outcome = work_on(directory, tiny_config());
    QVERIFY(outcome.said("checkpoint of step 6 is unusable"));
    QCOMPARE(same(directory), QString());
  }

  void refusesWhenEveryCheckpointIsDamaged() {
    const fs::path directory = crashed("hopeless");
    for (int64_t step : step_files(directory, kCheckpoints)) fs::resize_file(step_file(directory, kCheckpoints, step), 100);
    QVERIFY_THROWS_EXCEPTION(DataError, work_on(directory, tiny_config()));
    QCOMPARE(Run(directory).find("train/loss")->value.size(), size_t{6});
  }

  void tornJournalIsCut() {
    const fs::path directory = crashed("torn"), journal = directory / "journal.jsonl";
    std::ofstream(journal, std::ios::app) << "{\"n\":99,\"type\":\"st";
    const Outcome outcome = work_on(directory, tiny_config());
    QVERIFY(outcome.said("unfinished line"));
    QCOMPARE(same(directory), QString());
  }

  void damagedJournalTailIsKeptBeside() {
    const fs::path directory = crashed("tail"), journal = directory / "journal.jsonl";
    const auto size = static_cast<int64_t>(fs::file_size(journal));
    std::ofstream(journal, std::ios::app) << "not a record\n{\"n\":100}\n";
    const Outcome outcome = work_on(directory, tiny_config());
    QVERIFY(outcome.said("damaged"));
    QCOMPARE(read_text(journal.string() + ".damaged-" + std::to_string(size)), std::string("not a record\n{\"n\":100}\n"));
    QCOMPARE(same(directory), QString());
  }

  /// What the comparison above is worth: each of these must make it fail.
  void noticesABrokenRestore_data() {
    QTest::addColumn<QString>("what");
    for (const char* what : {"data position", "weight", "first moment", "second moment", "step"}) QTest::newRow(what) << what;
  }
  void noticesABrokenRestore() {
    QFETCH(QString, what);
    const fs::path directory = crashed("broken");
    const fs::path newest = step_file(directory, kCheckpoints, 6);
    Checkpoint checkpoint = read_checkpoint(newest);
    const auto nudge = [](std::vector<NamedTensor>& tensors) { tensors[1].tensor.data<float>()[3] *= 1.01F; };
    if (what == "data position") ++checkpoint.state.data_position;
    if (what == "weight") nudge(checkpoint.state.weights);
    if (what == "first moment") nudge(checkpoint.state.first_moments);
    if (what == "second moment") nudge(checkpoint.state.second_moments);
    if (what == "step") --checkpoint.state.record.step;
    write_checkpoint(newest, checkpoint);
    work_on(directory, tiny_config());
    QVERIFY(!same(directory).isEmpty());
  }

  void finishedRunsReturnAtOnce() {
    const std::string before = read_text(whole_ / "journal.jsonl");
    QCOMPARE(work_on(whole_, tiny_config()).state, RunState::finished);
    QCOMPARE(read_text(whole_ / "journal.jsonl"), before);
  }

  void refusesAChangedCorpus() {
    const fs::path directory = crashed("corpus");
    RunInfo info = read_run_info(directory);
    info.provenance["corpus_hash"] = "0000000000000000";
    write_run_info(info);
    QVERIFY_THROWS_EXCEPTION(DataError, work_on(directory, tiny_config()));
  }

  void nonFiniteLossEndsTheRun() {
    const fs::path directory = crashed("diverging");
    Checkpoint checkpoint = read_checkpoint(step_file(directory, kCheckpoints, 6));
    const Tensor& weights = checkpoint.state.weights[0].tensor;
    std::fill_n(weights.data<float>(), weights.size(), std::nanf(""));
    write_checkpoint(step_file(directory, kCheckpoints, 6), checkpoint);
    QCOMPARE(work_on(directory, tiny_config()).state, RunState::diverged);
    const Run run(directory);
    QCOMPARE(run.info().state, RunState::diverged);
    QCOMPARE(run.info().step, int64_t{7});
    QVERIFY(QString::fromStdString(run.info().message).contains("step 7"));
    QVERIFY(std::isnan(run.find("train/loss")->value.back()));
    QCOMPARE(step_files(directory, kCheckpoints), (std::vector<int64_t>{4, 6}));
    QCOMPARE(checkpoint_difference(step_file(directory, kCheckpoints, 4), step_file(stopped_, kCheckpoints, 4)), QString());
  }

  void loadsAModel() {
    const LoadedModel loaded = load_model(whole_);
    QCOMPARE(loaded.step, int64_t{12});
    QCOMPARE(loaded.corpus_hash, Corpus::open("tiny").hash());
    QCOMPARE(load_model(whole_, 8).step, int64_t{8});
    QVERIFY_THROWS_EXCEPTION(DataError, load_model(whole_, 5));
  }

  void evaluationBatchesDependOnTextAlone() {
    const Corpus corpus = Corpus::open("tiny");
    const auto tokenizer = make_byte_tokenizer();
    RunConfig other = tiny_config("top1_chunk");
    other.training.seed = 7;
    other.training.batch_tokens = 256;
    const auto a = evaluation_batches(tiny_config(), corpus, *tokenizer), b = evaluation_batches(other, corpus, *tokenizer);
    for (size_t i = 0; i < a.size(); ++i) QVERIFY(a[i].domain == b[i].domain && a[i].tokens == b[i].tokens && a[i].targets == b[i].targets);
  }

 private:
  fs::path path(const char* name) {
    const QString row = QString(QTest::currentDataTag()).replace(' ', '_');
    return folder_.filePath(name + row).toStdString();
  }
  /// A copy of the run that was stopped at step 6, as if its process had been killed there.
  fs::path crashed(const char* name) {
    const fs::path directory = path(name);
    fs::copy(stopped_, directory, fs::copy_options::recursive);
    RunInfo info = read_run_info(directory);
    info.state = RunState::running;
    write_run_info(info);
    return directory;
  }
  QString same(const fs::path& directory) { return difference(whole_, directory); }
  static QString difference(const fs::path& a, const fs::path& b) {
    if (comparable_journal(a) != comparable_journal(b)) return "journals differ";
    return checkpoint_difference(step_file(a, kCheckpoints, 12), step_file(b, kCheckpoints, 12));
  }

  QTemporaryDir folder_;
  std::unique_ptr<TinyCorpus> corpus_;
  fs::path whole_, stopped_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ResumeTest)
#include "resume_test.moc"
