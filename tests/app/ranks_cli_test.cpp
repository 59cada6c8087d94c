#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "analysis/runs/checkpoint_file.h"
#include "kernels/engine/device.h"
#include "program.h"
#include "tests/analysis/trained_run.h"
#include "tests/support/instrumented.h"

namespace saccade::test {

/// Several processes that train one model, through the real program on the CPU.
class RanksCliTest : public QObject {
  Q_OBJECT

  Program program_;

  /// Everything that a run computed: its journal but for times, memory, when it was stopped and what was computed again, and the last
  /// checkpoint's tensors.
  QByteArray computed(const QString& directory, int step = 12) const {
    QByteArray all;
    for (const std::string& line : comparable_journal(program_.path(directory).toStdString()))
      all += QByteArray::fromStdString(line) + "\n";
    const std::string file = QString("%1/checkpoints/step-%2.h5").arg(program_.path(directory)).arg(step).toStdString();
    const Checkpoint checkpoint = read_checkpoint(file);
    const auto add = [&](const std::string& kind, const std::vector<NamedTensor>& tensors) {
      for (const NamedTensor& t : tensors) {
        all += QByteArray::fromStdString(kind + " " + t.name + "\n");
        all.append(static_cast<const char*>(t.tensor.raw()), t.tensor.bytes());
      }
    };
    add("weights", checkpoint.state.weights);
    for (const TensorGroup& group : checkpoint.state.optimizer) add(group.name, group.tensors);
    return all + QByteArray::number(static_cast<qulonglong>(checkpoint.state.data_position));
  }

  QStringList train(const QString& directory, int ranks, const QStringList& settings) const {
    QStringList arguments{
        "-q", "train", program_.path("config.json"), "--out", program_.path(directory), "--ranks", QString::number(ranks)};
    for (const QString& s : settings) arguments << "--set" << s;
    return arguments;
  }
  static QList<pid_t> children(const QProcess& process) {
    const auto pid = QString::number(process.processId());
    QFile file("/proc/" + pid + "/task/" + pid + "/children");
    QList<pid_t> list;
    if (file.open(QIODevice::ReadOnly))
      for (const QByteArray& child : file.readAll().simplified().split(' ')) list << child.toInt();
    return list;
  }
  /// A run of several ranks at work, of steps that last.
  std::unique_ptr<QProcess> at_work(const QString& directory, int ranks, const QStringList& more = {}) const {
    auto process = program_.start(
        train(directory, ranks, {"training.gradient_accumulation=4", "training.batch_tokens=512", "training.steps=100000"}) + more);
    if (!program_.wait_for_records(directory, 30)) qFatal("%s", process->readAllStandardError().constData());
    return process;
  }
  QString log(const QString& directory) const {
    QFile file(program_.path(directory) + "/log.txt");
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
  }
  qint64 records_size(const QString& directory) const { return QFileInfo(program_.path(directory) + "/journal.jsonl").size(); }
  static bool gone(const QList<pid_t>& processes) {
    return std::all_of(processes.begin(), processes.end(), [](pid_t p) { return ::kill(p, 0) != 0; });
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
  }

  void any_number_of_ranks_gives_the_same_bytes_data() {
    QTest::addColumn<QStringList>("settings");
    const auto row = [](const char* name, const QStringList& settings) {
      for (const char* optimizer : {"adamw", "muon"})
        QTest::addRow("%s %s", name, optimizer) << settings + QStringList{QString("training.optimizer=%1").arg(optimizer)};
    };
    row("attention", {"architecture.width=64"});  // embedding of more than one piece
    row("top1_chunk", {"architecture.mixer=top1_chunk", "architecture.chunk=8"});
    row("mamba2", {"architecture.mixer=mamba2"});
    row("avey", {"architecture={\"block\": \"avey\", \"width\": 16, \"layers\": 2, \"split\": 16, \"top_k\": 2}"});
    row("rwkv7", {"architecture={\"block\": \"rwkv\", \"mixer\": \"rwkv7\", \"width\": 32, \"layers\": 2, \"heads\": 2}"});
    QTest::newRow("documents") << QStringList{"data.packing=document"};
    QTest::newRow("growing batch") << QStringList{"training.batch_tokens=1536", "training.gradient_accumulation=24",
                                                  "training.batch_warmup_steps=9", "training.batch_warmup_tokens=256"};
    QTest::newRow("no clipping") << QStringList{"training.max_grad_norm=0"};
    QTest::newRow("double") << QStringList{"precision=f64"};
  }
  void any_number_of_ranks_gives_the_same_bytes() {
    QFETCH(QStringList, settings);
    const QStringList all =
        QStringList{"training.batch_tokens=512", "training.gradient_accumulation=8", "training.max_grad_norm=0.5"} + settings;
    const QString name = QString(QTest::currentDataTag()).replace(' ', '-');
    QByteArray one;
    for (const int ranks : {1, 2, 4}) {
      const QString run = QString("%1-%2").arg(name).arg(ranks);
      const auto result = program_.run(train(run, ranks, all));
      QVERIFY2(result.code == 0, qPrintable(result.err));
      const QByteArray own = computed(run);
      if (ranks == 1) one = own;
      QVERIFY2(own.size() > 10000 && own == one, qPrintable(run));
    }
  }

  /// Micro-batches that are not a power of two for each rank take several exchanges.
  void odd_numbers_of_micro_batches() {
    const QStringList settings{"training.batch_tokens=768", "training.gradient_accumulation=12"};
    QByteArray one;
    for (const int ranks : {1, 2, 3, 4, 6, 12}) {
      const QString run = QString("odd-%1").arg(ranks);
      const auto result = program_.run(train(run, ranks, settings));
      QVERIFY2(result.code == 0, qPrintable(result.err));
      if (ranks == 1) one = computed(run);
      QVERIFY2(computed(run) == one, qPrintable(run));
    }
    const auto refused = program_.run(train("odd-5", 5, settings));
    QVERIFY2(refused.code == 2 && is_one_error(refused) && refused.err.contains("expected a multiple of the 5 ranks"),
             qPrintable(refused.err));
  }

  /// SIGTERM, to the parent or to one rank alone, ends all at a checkpoint; other numbers of ranks go on.
  void stopped_and_resumed_on_other_numbers_of_ranks() {
    const QStringList settings{"training.gradient_accumulation=4", "training.batch_tokens=512", "training.steps=600",
                               "training.evaluate_every=100",      "training.probe_every=100",  "training.checkpoint_every=100"};
    QVERIFY(program_.run(train("whole", 1, settings)).code == 0);
    auto process = program_.start(train("changed", 2, settings));
    for (const int ranks : {4, 1}) {
      QVERIFY(program_.wait_for_records("changed", ranks == 4 ? 40 : 250));
      const QList<pid_t> ranks_now = children(*process);
      QVERIFY(ranks_now.size() >= 2);
      ::kill(ranks == 4 ? static_cast<pid_t>(process->processId()) : ranks_now.last(), SIGTERM);
      const auto stopped = Program::finish(*process);
      QVERIFY2(stopped.code == 130, qPrintable(stopped.err));
      process = program_.start({"-q", "resume", program_.path("changed"), "--ranks", QString::number(ranks)});
    }
    const auto result = Program::finish(*process);
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QVERIFY(computed("changed", 600) == computed("whole", 600));
  }

  void a_rank_that_is_lost_ends_all_data() {
    QTest::addColumn<int>("signal");
    QTest::addColumn<int>("rank");
    for (int rank = 0; rank < 3; ++rank) {
      QTest::addRow("kill rank %d", rank) << SIGKILL << rank;
      QTest::addRow("stop rank %d", rank) << SIGSTOP << rank;
    }
  }
  void a_rank_that_is_lost_ends_all() {
    QFETCH(int, signal);
    QFETCH(int, rank);
    const QString run = QString("lost-%1-%2").arg(signal).arg(rank);
    auto process = at_work(run, 4, rank == 0 ? QStringList() : QStringList{"--rank-timeout", "4"});  // once as it is by default
    const QList<pid_t> ranks = children(*process);
    QCOMPARE(ranks.size(), 4);
    QElapsedTimer time;
    time.start();
    ::kill(ranks[rank], signal);
    QVERIFY2(process->waitForFinished(30000), "still there after 30 s");
    QVERIFY(gone(ranks));
    QVERIFY(process->exitStatus() == QProcess::NormalExit && process->exitCode() != 0 && process->exitCode() != 130);
    const QString error = QString::fromUtf8(process->readAllStandardError());
    const QString name = QString("rank %1 (process %2 on %3)").arg(rank).arg(ranks[rank]).arg(QSysInfo::machineHostName());
    QVERIFY2(error.contains(name), qPrintable(error));
    QVERIFY2(log(run).contains(name), qPrintable(log(run)));
    if (signal == SIGKILL) QVERIFY2(time.elapsed() < 12000, qPrintable(QString::number(time.elapsed())));
    // It goes on from its last checkpoint.
    qint64 records = records_size(run);
    auto resumed = program_.start({"-q", "resume", program_.path(run), "--ranks", "2"});
    bool goes_on = false;  // its records are cut back to the checkpoint first
    const auto went_on = [&] {
      const qint64 before = std::exchange(records, records_size(run));
      return goes_on = goes_on || records > before || resumed->state() != QProcess::Running;
    };
    QTRY_VERIFY_WITH_TIMEOUT(went_on(), 30000 * kSlower);
    resumed->terminate();
    const auto result = Program::finish(*resumed);
    QVERIFY2(result.code == 130, qPrintable(QString::number(result.code) + ": " + result.err));
  }

  /// The computing thread of one rank hangs, at work or in a call, and its process lives.
  void a_rank_that_hangs_ends_all_data() {
    QTest::addColumn<int>("rank");
    QTest::addColumn<QByteArray>("where");
    QTest::newRow("rank 1 at work") << 1 << QByteArray("anywhere");
    QTest::newRow("rank 2 at work") << 2 << QByteArray("anywhere");
    QTest::newRow("rank 0 in a call") << 0 << QByteArray("poll");
    QTest::newRow("rank 3 in a call") << 3 << QByteArray("poll");
  }
  void a_rank_that_hangs_ends_all() {
    QFETCH(int, rank);
    QFETCH(QByteArray, where);
    QVERIFY2(qEnvironmentVariableIsSet("SACCADE_HANG_LIBRARY"), "ctest says where the library is");
    const QStringList settings{"training.gradient_accumulation=4", "training.batch_tokens=512", "training.steps=1500",
                               "training.evaluate_every=100",      "training.probe_every=100",  "training.checkpoint_every=50"};
    if (!QFile::exists(program_.path("undisturbed"))) QVERIFY(program_.run(train("undisturbed", 1, settings)).code == 0);
    const QString run = QString("hung-%1").arg(rank);
    qputenv("LD_PRELOAD", qgetenv("SACCADE_HANG_LIBRARY"));
    qputenv("HANG_AT", where);
    auto process = program_.start(train(run, 4, settings) + (rank == 1 ? QStringList() : QStringList{"--rank-timeout", "4"}));
    qunsetenv("LD_PRELOAD");
    QVERIFY(program_.wait_for_records(run, 150));
    const QList<pid_t> ranks = children(*process);
    QCOMPARE(ranks.size(), 4);
    QElapsedTimer time;
    time.start();
    ::syscall(SYS_tgkill, ranks[rank], ranks[rank], SIGUSR1);  // its first thread alone
    QVERIFY2(process->waitForFinished(30000), "still there after 30 s");
    QVERIFY(gone(ranks));
    QVERIFY(process->exitStatus() == QProcess::NormalExit && process->exitCode() != 0 && process->exitCode() != 130);
    const QString error = QString::fromUtf8(process->readAllStandardError());
    const QString line = QString("rank %1 (process %2 on %3) hangs").arg(rank).arg(ranks[rank]).arg(QSysInfo::machineHostName());
    QVERIFY2(error.contains(line), qPrintable(error));
    QVERIFY2(log(run).contains(line), qPrintable(log(run)));
    const auto resumed = program_.run({"-q", "resume", program_.path(run), "--ranks", "2"});
    QVERIFY2(resumed.code == 0, qPrintable(resumed.err));
    QVERIFY(computed(run, 1500) == computed("undisturbed", 1500));
  }

  void a_parent_that_is_killed_stops_its_ranks() {
    auto process = at_work("orphans", 2);
    const QList<pid_t> ranks = children(*process);
    process->kill();
    QVERIFY(process->waitForFinished(5000));
    QVERIFY(QTest::qWaitFor([&] { return gone(ranks); }, 20000));
    QVERIFY2(log("orphans").contains("stopped at step"), qPrintable(log("orphans")));
  }

  /// Processes that Slurm or Open MPI started meet through a file of the run directory, whatever a killed run left there.
  void a_launcher_starts_the_ranks_data() {
    QTest::addColumn<QString>("launcher");
    QTest::addColumn<QString>("left");
    QTest::newRow("slurm") << "slurm"
                           << "";
    QTest::newRow("openmpi") << "openmpi"
                             << "";
    const QString there =
        "{'job':'slurm %1.0.','token':'00112233445566778899aabbccddeeff','ranks':2,'host':'HOST','addresses':[],'port':9}";
    QTest::newRow("left by another job") << "slurm" << there.arg(6);
    QTest::newRow("left by this job") << "slurm" << there.arg(7);
    QTest::newRow("damaged") << "slurm" << there.left(20);
  }
  void a_launcher_starts_the_ranks() {
    QFETCH(QString, launcher);
    QFETCH(QString, left);
    const QString run = "launched-" + QString(QTest::currentDataTag()).replace(' ', '-');
    QDir().mkpath(program_.path(run));
    if (!left.isEmpty()) program_.write(run + "/ranks", left.replace("HOST", QSysInfo::machineHostName()).replace('\'', '"').toUtf8());
    std::vector<std::unique_ptr<QProcess>> ranks(2);
    for (const int rank : {1, 0}) {
      auto environment = QProcessEnvironment::systemEnvironment();
      const QString r = QString::number(rank);
      if (launcher == "slurm")
        for (const auto& [name, value] : {std::pair("SLURM_JOB_ID", "7"), std::pair("SLURM_STEP_ID", "0"), std::pair("SLURM_NTASKS", "2")})
          environment.insert(name, value);
      environment.insert(launcher == "slurm" ? "SLURM_PROCID" : "OMPI_COMM_WORLD_RANK", r);
      environment.insert(launcher == "slurm" ? "SLURM_LOCALID" : "OMPI_COMM_WORLD_LOCAL_RANK", r);
      if (launcher == "openmpi") environment.insert("OMPI_COMM_WORLD_SIZE", "2");
      ranks[static_cast<size_t>(rank)] = std::make_unique<QProcess>();
      QProcess& process = *ranks[static_cast<size_t>(rank)];
      process.setProcessEnvironment(environment);
      process.start(qEnvironmentVariable("SACCADE_BINARY"), train(run, 2, {"training.gradient_accumulation=2"}));
      if (rank == 1) QTest::qSleep(400);  // which finds what is left
    }
    for (auto& rank : ranks) {
      const auto result = Program::finish(*rank);
      QVERIFY2(result.code == 0, qPrintable(result.err));
    }
    QVERIFY(!QFile::exists(program_.path(run) + "/ranks"));
    if (!QFile::exists(program_.path("alone"))) program_.train("alone", {"training.gradient_accumulation=2"});
    QVERIFY(computed(run) == computed("alone"));
  }

  void what_cannot_be_is_refused_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("message");
    QTest::newRow("one micro-batch") << QStringList{"--ranks", "2"} << "/training/gradient_accumulation cuts a step into 1 micro-batches";
    QTest::newRow("GPUs on the CPU") << QStringList{"--gpus", "2"} << "--gpus 2 and /device \"cpu\"; expected --ranks";
    QTest::newRow("two numbers") << QStringList{"--gpus", "2", "--ranks", "3", "--set", "device=auto"}
                                 << "--ranks 3 and --gpus 2 are different";
    QTest::newRow("other GPUs") << QStringList{"--ranks", "2", "--set", "device=cuda:0-3", "--set", "training.gradient_accumulation=2"}
                                << "/device is \"cuda:0-3\", 4 GPUs, for 2 ranks";
  }
  void what_cannot_be_is_refused() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, message);
    const auto result =
        program_.run(QStringList{"-q", "train", program_.path("config.json"), "--out", program_.path("refused")} + arguments);
    QVERIFY2(result.code == 2 && is_one_error(result) && result.err.contains(message), qPrintable(result.err));
    QVERIFY(!QFile::exists(program_.path("refused")));
  }

  /// --gpus never falls back to the CPU.
  void gpus_are_gpus() {
    if (!gpus().empty()) QSKIP("this machine has a GPU");
    for (const char* count : {"1", "2"}) {
      const auto result = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("no-gpu"), "--gpus", count,
                                        "--set", "device=auto", "--set", "training.gradient_accumulation=2"});
      QVERIFY2(result.code == 4 && result.out.isEmpty() && result.err.contains("device \"cuda\""), qPrintable(result.err));
    }
    const auto plan = program_.run({"--json", "plan", program_.path("config.json"), "--gpus", "2", "--set", "device=auto", "--set",
                                    "training.gradient_accumulation=2"});
    QVERIFY2(plan.json().value("device", "") == "cuda" && plan.json().value("ranks", 0) == 2, qPrintable(plan.out + plan.err));
  }

  /// Forks, cooldown branches and a divergence are rank 0's affair; the others follow.
  void branches_and_forks() {
    const QStringList settings{"training.gradient_accumulation=4", "training.batch_tokens=512", "training.schedule=wsd",
                               "training.cooldown_steps=4", "training.cooldown_at=[6]"};
    for (const int ranks : {1, 2}) {
      const QString run = QString("trunk-%1").arg(ranks), fork = QString("fork-%1").arg(ranks);
      auto result = program_.run(train(run, ranks, settings));
      QVERIFY2(result.code == 0, qPrintable(result.err));
      result = program_.run({"-q", "fork", program_.path(run), "--step", "8", "--out", program_.path(fork), "--set", "training.steps=14",
                             "--ranks", QString::number(ranks)});
      QVERIFY2(result.code == 0, qPrintable(result.err));
    }
    QVERIFY(computed("trunk-1") == computed("trunk-2"));
    QVERIFY(computed("trunk-1/branches/step-6", 10) == computed("trunk-2/branches/step-6", 10));
    QVERIFY(computed("fork-1", 14) == computed("fork-2", 14));
  }

  void a_divergence_is_told_as_with_one_rank() {
    QByteArray one;
    for (const int ranks : {1, 2}) {
      const QString run = QString("diverged-%1").arg(ranks);
      const auto result = program_.run(train(run, ranks,
                                             {"training.gradient_accumulation=2", "training.learning_rate=100", "training.warmup_steps=0",
                                              "training.max_grad_norm=0", "training.steps=200", "training.schedule=constant"}));
      QVERIFY2(result.code == 1 && result.err.contains("diverged"), qPrintable(result.err));
      const QStringList files = QDir(program_.path(run)).entryList({"diverged-step-*.json"});
      QCOMPARE(files.size(), 1);
      QFile file(program_.path(run) + "/" + files.first());
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QByteArray content = file.readAll();
      if (ranks == 1) one = content;
      QVERIFY2(content == one, content.left(300).constData());
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RanksCliTest)
#include "ranks_cli_test.moc"
