#include <sys/stat.h>

#include <QtTest>

#include <bit>
#include <cmath>

#include "analysis/comparison/comparison.h"
#include "analysis/figures/derived.h"
#include "analysis/figures/figure.h"
#include "analysis/figures/reads.h"
#include "analysis/inspection/head_order.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/hdf5.h"
#include "analysis/runs/layers.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_lock.h"
#include "models/corpus/vocabulary.h"
#include "models/optimizers/registry.h"
#include "models/schedules/registry.h"
#include "models/training/plan.h"
#include "tests/analysis/trained_run.h"
#include "tests/support/message.h"

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
    for (int after : {4, 5, 7, 9}) QTest::addRow("top1_chunk after %d", after) << "top1_chunk" << after;
    QTest::newRow("top1_element after 7") << "top1_element" << 7;
    QTest::newRow("avey after 7") << "avey" << 7;
    QTest::newRow("hybrid after 7") << "hybrid" << 7;
    QTest::newRow("documents after 7") << "documents" << 7;
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

  /// From the second probe on, in every layer that chooses, also behind a stop: what was chosen before is in the checkpoint.
  void churn_is_recorded_data() {
    QTest::addColumn<QString>("series");
    QTest::newRow("top1_chunk") << "churn/layer1";
    QTest::newRow("top1_element") << "churn/layer1";
    QTest::newRow("avey") << "churn";
    QTest::newRow("attention") << QString();
  }
  void churn_is_recorded() {
    QFETCH(QString, series);
    const RunConfig config = tiny_config(QTest::currentDataTag());
    const fs::path directory = path("churn");
    QCOMPARE(work_on(directory, config, 5).state, RunState::stopped);
    QCOMPARE(read_checkpoint(step_file(directory, kCheckpoints, 5)).choices.empty(), series.isEmpty());
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    const Run run(directory);
    if (series.isEmpty()) {
      QVERIFY(!run.find("churn") && !run.find("churn/layer0"));
      return;
    }
    const Series* churn = run.find(series.toStdString());
    QVERIFY(churn);
    QCOMPARE(churn->step, (std::vector<double>{8, 12}));
    for (const double share : churn->value) QVERIFY2(share >= 0 && share <= 1, qPrintable(QString::number(share)));
  }

  /// What the run takes, whenever something was measured: the device's tensors, and the whole process.
  void memory_is_recorded() {
    const Run run(whole_);
    const Series *device = run.find("device_memory"), *process = run.find("process_memory");
    QVERIFY(device && process);
    QCOMPARE(device->step, (std::vector<double>{3, 4, 6, 8, 9, 12}));
    const Plan plan = make_plan(tiny_config(), vocabulary_of("bytes"));
    constexpr double kMebibyte = 1 << 20;
    QVERIFY(device->value.back() * kMebibyte >= static_cast<double>(plan.weight_bytes + plan.gradient_bytes + plan.optimizer_bytes));
    QCOMPARE(device->value.back() * kMebibyte, static_cast<double>(std::max(plan.peak_bytes, plan.probe_bytes)));
    QVERIFY(process->value.back() > device->value.back() && process->value.back() < 64 * 1024);
  }

  /// Every optimizer and schedule there is, with what it keeps, stopped in the middle of whatever it does.
  void resumesWithEveryOptimizerAndSchedule_data() {
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QStringList>("groups");
    const QStringList adamw{"first_moments", "second_moments"};
    for (const OptimizerEntry* entry : optimizers())
      QTest::addRow("optimizer %s", entry->id.c_str()) << QString::fromStdString(R"({"optimizer": ")" + entry->id + R"("})")
                                                       << (entry->id == "muon" ? adamw + QStringList{"momentum"} : adamw);
    for (const Schedule* entry : schedules())
      QTest::addRow("schedule %s", entry->id.c_str()) << QString::fromStdString(R"({"schedule": ")" + entry->id + R"("})") << adamw;
    QTest::newRow("growing batch") << R"({"gradient_accumulation": 2, "batch_warmup_tokens": 64, "batch_warmup_steps": 9})" << adamw;
    QTest::newRow("multiplier") << R"({"learning_rate_multipliers": ["layer*.query=0.5"], "optimizer": "muon"})"
                                << adamw + QStringList{"momentum"};
  }
  void resumesWithEveryOptimizerAndSchedule() {
    QFETCH(QString, setting);
    QFETCH(QStringList, groups);
    nlohmann::json object = to_json(tiny_config());
    for (const Setting& s : optimizer("adamw").settings) object["training"].erase(s.name);
    object["training"].update(nlohmann::json::parse(setting.toStdString()));
    const RunConfig config = resolve_config(object, "test");
    const fs::path uninterrupted = path("uninterrupted"), directory = path("resumed");
    work_on(uninterrupted, config);
    QCOMPARE(work_on(directory, config, 7).state, RunState::stopped);
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    QCOMPARE(difference(uninterrupted, directory), QString());
    QStringList stored;
    for (const TensorGroup& group : read_checkpoint(step_file(directory, kCheckpoints, 12)).state.optimizer)
      stored << QString::fromStdString(group.name);
    QCOMPARE(stored, groups);
    if (setting.contains("adamw") || setting.contains("cosine")) return;  // what a tiny run is anyway
    QVERIFY(!same(directory).isEmpty());
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

  /// Each layer of a hybrid stack by its own mixer: captures, statistics, figures, results.h5.
  void hybridsShowEveryLayer() {
    RunConfig config = tiny_config("hybrid");
    config.training.steps = 4;
    config.training.probe_every = 2;
    QCOMPARE(work_on(path("hybrid"), config).state, RunState::finished);
    const Run run(path("hybrid"));
    QCOMPARE(run.info().title, std::string("1 Based : 1 Top-1 Chunk exact : 1 Top-1 Chunk exact : 1 Top-1 Element : 1 Attention"));
    const std::vector<std::string> mixers{"Based", "Top-1 Chunk exact", "Top-1 Chunk exact", "Top-1 Element", "Attention"};
    QCOMPARE(layer_mixers(run.info()), mixers);

    const Capture capture = run.captures(4).at(0);
    QCOMPARE(capture.layer_mixers, mixers);
    QCOMPARE(layers_without_reads(capture), std::vector<int64_t>{0});
    QCOMPARE(reads_of(capture, 1, 0, 40).candidate_size, int64_t{8});
    QCOMPARE(reads_of(capture, 1, 0, 40).chosen_positions.size(), size_t{8});
    QCOMPARE(reads_of(capture, 2, 0, 40).candidate_size, int64_t{16});
    QCOMPARE(reads_of(capture, 3, 0, 40).chosen_positions.size(), size_t{1});
    QVERIFY(reads_of(capture, 4, 3, 40).chosen_positions.empty());
    QVERIFY(main_map(capture, 1) == MapKind::score && main_map(capture, 3) == MapKind::weights && main_map(capture, 4) == MapKind::weights);
    QCOMPARE(capture_figure(capture, MapKind::weights, 4, 3).title,
             std::string("Attention (or read) weights, layer 4 (Attention), head 3"));
    const QString missing = message_of<UsageError>([&] { capture_figure(capture, MapKind::weights, 0, 0); });
    QVERIFY2(missing.contains("layer 0 (Based)"), qPrintable(missing));
    const std::vector<HeadScores> scores = head_scores(capture);
    const Figure overview = head_scores_figure(scores, order_of_heads(scores, HeadMeasure::entropy, HeadOrder::place), HeadMeasure::entropy,
                                               HeadOrder::place, capture.layer_mixers);
    QCOMPARE(overview.map->rows, int64_t{5});
    QCOMPARE(overview.map->row_names, mixers);
    QVERIFY(std::isnan(overview.map->values[0]) && !std::isnan(overview.map->values.back()));

    const Figure heads = head_figure(*run.last_statistics(), "entropy", layer_mixers(run.info()));
    QCOMPARE(heads.map->rows, int64_t{5});
    QVERIFY(to_csv(heads).find(",Top-1 Element\n") != std::string::npos);
    QVERIFY(figure_from_json(to_json(heads)).map->row_names == mixers);
    const Figure entropy = layers_figure(each_run({&run}).front(), "entropy", XAxis::step);
    QCOMPARE(entropy.curves.size(), size_t{4});
    QCOMPARE(entropy.curves.front().label, std::string("layer 1 (Top-1 Chunk exact)"));
    QCOMPARE(layers_figure(each_run({&run}).front(), "captured_mass", XAxis::step).curves.size(), size_t{2});
    QCOMPARE(entropy_figure({&run}, XAxis::step, false).curves.size(), size_t{4});

    const h5::Reader results(path("hybrid") / "results.h5");
    const h5::Group statistic = results.root().open("run/statistics/entropy");
    QCOMPARE(statistic.read_texts("layer_mixers"), mixers);
    QCOMPARE(statistic.dims("value")[1], int64_t{5});
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

  /// Step 0 is recorded once, with a checkpoint of the initial weights, and changes nothing that follows.
  void evaluatesAtTheStart() {
    RunConfig config = tiny_config();
    config.training.evaluate_at_start = true;
    const fs::path directory = path("start");
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    const Run run(directory), usual(whole_);
    const Series *loss = run.find("validation/loss"), *without = usual.find("validation/loss");
    QCOMPARE(loss->step.front(), 0.0);
    QCOMPARE(loss->tokens.front(), 0.0);
    QCOMPARE(std::vector<double>(loss->value.begin() + 1, loss->value.end()), without->value);
    QVERIFY(std::abs(loss->value.front() - std::log(257.0)) < 0.2);  // knows nothing yet
    const std::vector<std::string> lines = comparable_journal(directory);
    QVERIFY(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      const Record record = Record::parse(line);
      return record.at("type") == "statistics" && record.at("step") == 0;
    }));
    QVERIFY(fs::exists(step_file(directory, kCaptures, 0)));
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

  void aDamagedJournalTailIsRecordedAgain() {
    const fs::path directory = crashed("tail"), journal = directory / "journal.jsonl";
    std::ofstream(journal, std::ios::app) << "not a record\n{\"n\":100}\n";
    QVERIFY(QString::fromStdString(Run(directory).damage()).contains("damaged at its end"));
    const Outcome outcome = work_on(directory, tiny_config());
    QVERIFY(outcome.said("damaged"));
    QVERIFY(read_text(journal).find("not a record\n") != std::string::npos);
    QCOMPARE(same(directory), QString());
    QVERIFY(Run(directory).damage().empty() && Run(directory).lost().empty());
  }

  /// Behind a checkpoint that is still there: back to it, and the run is as if nothing had been lost.
  void aHoleBehindACheckpointIsRecordedAgain_data() {
    QTest::addColumn<QString>("record");
    for (const char* record : {"\"type\":\"step\",\"step\":5,", "\"type\":\"step\",\"step\":6,", "\"type\":\"evaluation\",\"step\":6,"})
      QTest::newRow(record) << record;
  }
  void aHoleBehindACheckpointIsRecordedAgain() {
    QFETCH(QString, record);
    const fs::path directory = path("hole");
    fs::remove_all(directory);
    fs::copy(crashed("hole-source"), directory, fs::copy_options::recursive);
    damage_record(directory, record.toStdString());
    const Outcome outcome = work_on(directory, tiny_config());
    QVERIFY(outcome.said("goes back to the checkpoint of step 4"));
    QCOMPARE(same(directory), QString());
    QVERIFY(Run(directory).damage().empty() && Run(directory).lost().empty());
  }

  /// Before every checkpoint: the rest is kept, and the hole is told for ever.
  void aHoleBeforeEveryCheckpointStays() {
    const fs::path directory = crashed("old-hole");
    damage_record(directory, "\"type\":\"step\",\"step\":2,");
    const std::string told = "of the journal, 1 record behind step 1 and before step 3 is damaged or missing";
    QCOMPARE(Run(directory).lost(), told);
    const Outcome outcome = work_on(directory, tiny_config());
    QCOMPARE(outcome.state, RunState::finished);
    QVERIFY(!outcome.said("goes back"));
    QCOMPARE(checkpoint_difference(step_file(whole_, kCheckpoints, 12), step_file(directory, kCheckpoints, 12)), QString());
    std::vector<std::string> expected = comparable_journal(whole_);
    std::erase_if(expected, [](const std::string& line) { return line.find("\"type\":\"step\",\"step\":2,") != std::string::npos; });
    QVERIFY(comparable_journal(directory) == expected);
    const Run run(directory);
    QCOMPARE(run.lost(), told);
    QCOMPARE(run.find("train/loss")->value.size(), size_t{11});
    QVERIFY(("of the journal, " + h5::Reader(directory / "results.h5").root().open("run").read_text("journal_lost")) == told);
    const Run other(whole_);
    const auto warnings = compare({&other, &run}).warnings;
    QVERIFY(std::find(warnings.begin(), warnings.end(), "tiny: " + told) != warnings.end());
  }

  /// Lines cut off from the end of an unfinished run: as far as checkpoints reach they are recorded again, else the hole is told.
  void aShortenedJournalGoesOn_data() {
    QTest::addColumn<int>("kept");
    for (int kept : {0, 1, 3, 5, 7, 8, 9, 10}) QTest::addRow("%d lines", kept) << kept;
  }
  void aShortenedJournalGoesOn() {
    QFETCH(int, kept);
    const fs::path directory = crashed("short-journal");
    cut_journal(directory, kept);
    QVERIFY(!Run(directory).damage().empty());
    const Outcome outcome = work_on(directory, tiny_config());
    QCOMPARE(outcome.state, RunState::finished);
    const Run run(directory);
    QVERIFY(run.damage().empty());
    QCOMPARE(checkpoint_difference(step_file(whole_, kCheckpoints, 12), step_file(directory, kCheckpoints, 12)), QString());
    QCOMPARE(same(directory).isEmpty(), run.lost().empty());
    QCOMPARE(run.lost().empty(), outcome.said("goes back"));
  }

  void theLostEndOfAFinishedRunIsRecordedAgain() {
    const fs::path directory = path("lost-end");
    fs::copy(whole_, directory, fs::copy_options::recursive);
    const std::string journal = read_text(directory / "journal.jsonl");
    cut_journal(directory, static_cast<int>(std::count(journal.begin(), journal.end(), '\n')) - 3);  // state, statistics, evaluation
    QVERIFY(QString::fromStdString(Run(directory).damage()).contains("ends at step 12"));
    QCOMPARE(work_on(directory, tiny_config()).state, RunState::finished);
    QVERIFY(Run(directory).damage().empty() && Run(directory).lost().empty());
    QCOMPARE(same(directory), QString());
  }

  /// Its process ended between the last state and results.h5.
  void resultsOfAFinishedRunAreRenewed_data() {
    QTest::addColumn<QString>("stale");
    for (const char* stale : {"earlier", "missing", "damaged"}) QTest::newRow(stale) << stale;
  }
  void resultsOfAFinishedRunAreRenewed() {
    QFETCH(QString, stale);
    const fs::path directory = path("stale"), results = directory / "results.h5";
    fs::copy(whole_, directory, fs::copy_options::recursive);
    fs::remove(results);
    if (stale == "earlier") fs::copy(stopped_ / "results.h5", results);
    if (stale == "damaged") std::ofstream(results) << "no HDF5";
    const std::string journal = read_text(directory / "journal.jsonl");
    QVERIFY(!results_file_is_current(read_run_info(directory)));
    QVERIFY(work_on(directory, tiny_config()).said("was written again"));
    QVERIFY(results_file_is_current(read_run_info(directory)));
    const auto losses = read_results_series(results);
    const auto loss = std::find_if(losses.begin(), losses.end(), [](const Series& s) { return s.name == "train/loss"; });
    QVERIFY(loss != losses.end() && loss->value == Run(directory).find("train/loss")->value);
    const std::string renewed = read_text(results);
    QVERIFY(!work_on(directory, tiny_config()).said("was written again"));
    QVERIFY(read_text(results) == renewed && read_text(directory / "journal.jsonl") == journal);
  }

  /// Its process was killed behind the end.
  void theLeaseOfAFinishedRunGoes() {
    const fs::path directory = path("left"), lease = directory / "lease";
    fs::copy(whole_, directory, fs::copy_options::recursive);
    std::ofstream(lease).flush();
    struct stat state {};
    QVERIFY(::stat(lease.c_str(), &state) == 0);
    LeaseHolder gone = this_process();
    gone.inode = state.st_ino, gone.started -= 1;  // of an earlier process with this number
    std::ofstream(lease) << lease_text(gone);
    QVERIFY(!lock_holder(directory));
    work_on(directory, tiny_config());
    QVERIFY(!fs::exists(lease));
    QCOMPARE(read_run_info(directory).state, RunState::finished);
  }

  void refusesAChangedConfig_data() {
    QTest::addColumn<bool>("checkpoint");
    QTest::addColumn<bool>("hash");
    QTest::newRow("with checkpoints") << true << false;
    QTest::newRow("with checkpoints, the hash changed too") << true << true;
    QTest::newRow("before the first checkpoint") << false << false;
  }
  void refusesAChangedConfig() {
    QFETCH(bool, checkpoint);
    QFETCH(bool, hash);
    const fs::path directory = crashed("edited");
    if (!checkpoint) fs::remove_all(directory / kCheckpoints), fs::create_directory(directory / kCheckpoints);
    RunInfo info = read_run_info(directory);
    const nlohmann::json rate = info.config["training"]["learning_rate"];
    info.config["training"]["learning_rate"] = 0.009;
    info.config["training"]["seed"] = 7;
    if (hash) info.provenance["config_hash"] = config_hash(info.config);
    write_run_info(info);
    const std::string journal = read_text(directory / "journal.jsonl");
    const QString message = message_of([&] { work_on(directory, tiny_config()); });
    QVERIFY2(message.contains("run.json: the config was changed since the run began"), qPrintable(message));
    const QString words = QStringLiteral("/training/learning_rate is 0.009, was %1; /training/seed is 7, was 1").arg(rate.dump().c_str());
    QVERIFY2(message.contains(checkpoint ? words : QStringLiteral("SHA-256")), qPrintable(message));
    QCOMPARE(read_text(directory / "journal.jsonl"), journal);
    if (checkpoint) QVERIFY(message_of([&] { load_model(directory); }).contains(words));
    info.config["training"]["learning_rate"] = rate;
    info.config["training"]["seed"] = 1;
    info.provenance["config_hash"] = config_hash(info.config);
    write_run_info(info);
    QCOMPARE(work_on(directory, tiny_config()).state, RunState::finished);
    QCOMPARE(same(directory), QString());
  }

  /// Nobody is given another checkpoint than asked for.
  void loadsNoOtherCheckpointThanTheNewest() {
    const fs::path directory = path("newest");
    fs::copy(whole_, directory, fs::copy_options::recursive);
    std::ofstream(step_file(directory, kCheckpoints, 12)) << "junk";
    const QString message = message_of([&] { load_model(directory); });
    QVERIFY2(message.contains("the newest checkpoint is unusable") && message.contains("step-12.h5") &&
                 message.endsWith("name an earlier one with --checkpoint: 8"),
             qPrintable(message));
    QCOMPARE(load_model(directory, 8).step, int64_t{8});
  }

  /// What the comparison above is worth: each of these must make it fail.
  void noticesABrokenRestore_data() {
    QTest::addColumn<QString>("what");
    for (const char* what : {"data position", "weight", "first moment", "second moment", "step", "type", "random stream"})
      QTest::newRow(what) << what;
  }
  void noticesABrokenRestore() {
    QFETCH(QString, what);
    const fs::path directory = crashed("broken");
    const fs::path newest = step_file(directory, kCheckpoints, 6);
    Checkpoint checkpoint = read_checkpoint(newest);
    const auto nudge = [](std::vector<NamedTensor>& tensors) { tensors[1].tensor.data<float>()[3] *= 1.01F; };
    if (what == "data position") ++checkpoint.state.data_position;
    if (what == "weight") nudge(checkpoint.state.weights);
    if (what == "first moment") nudge(checkpoint.state.group("first_moments").tensors);
    if (what == "second moment") nudge(checkpoint.state.group("second_moments").tensors);
    if (what == "step") --checkpoint.state.record.step;
    if (what == "type") {  // as if a tensor had been kept in bf16
      const Tensor& weights = checkpoint.state.weights[0].tensor;
      for (int64_t i = 0; i < weights.size(); ++i)
        weights.data<float>()[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(weights.data<float>()[i]) & 0xFFFF0000U);
    }
    if (what == "random stream") {
      RunInfo info = read_run_info(directory);
      checkpoint.config["training"]["seed"] = info.config["training"]["seed"] = 2;
      info.provenance["config_hash"] = config_hash(info.config);
      write_run_info(info);
    }
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
    std::ofstream(directory / "lock") << "999999999 " << host_name() << "\n";  // no copy, of which nobody knows
    RunInfo info = read_run_info(directory);
    info.state = RunState::running;
    write_run_info(info);
    return directory;
  }
  /// Turns over a bit of the first record that holds `part`.
  static void damage_record(const fs::path& directory, const std::string& part) {
    std::string journal = read_text(directory / "journal.jsonl");
    const size_t at = journal.find(part);
    QVERIFY(at != std::string::npos);
    journal[at + part.size()] ^= 1;
    std::ofstream(directory / "journal.jsonl", std::ios::binary) << journal;
  }
  static void cut_journal(const fs::path& directory, int lines) {
    const std::string journal = read_text(directory / "journal.jsonl");
    size_t end = 0;
    for (int i = 0; i < lines; ++i) end = journal.find('\n', end) + 1;
    std::ofstream(directory / "journal.jsonl", std::ios::binary) << journal.substr(0, end);
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
