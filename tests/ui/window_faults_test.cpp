#include <unistd.h>

#include <QApplication>
#include <QDir>
#include <QProcess>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "tests/analysis/fixture.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::test {

namespace fs = std::filesystem;

constexpr const char* kTrains = "--train";  // this program as a trainer: --train RUN STEPS

int train_and_wait(const fs::path& run, int steps) {
  RunWriter writer = RunWriter::create(run, fixture_info({}));
  writer.set_state(RunState::running, 0);
  for (int64_t step = 1; step <= steps; ++step) writer.add(fixture_step({}, step));
  std::puts("ready");
  std::fflush(stdout);
  return ::pause();
}

/// What may happen to runs while the window shows them: their trainer dies, their folder is deleted, moved away, put in another's place,
/// truncated or damaged, or the clock goes back. All pages are open, stay up, and the list says what there is.
class WindowFaultsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    QVERIFY(QDir(folder_->path()).mkpath("runs"));
    write_fixture(path("good"), {.steps = 40});
  }
  void cleanup() {
    for (QWidget* page : std::exchange(pages_, {})) delete page;
    session_.reset();
  }

  void its_trainer_dies() {
    const auto trainer = train("live", 25);
    open();
    show("live");
    QTRY_COMPARE_WITH_TIMEOUT(state("live"), static_cast<int>(RunState::running), kLong);
    trainer->kill();
    QVERIFY(trainer->waitForFinished(kLong));
    QTRY_COMPARE_WITH_TIMEOUT(state("live"), static_cast<int>(RunState::crashed), kLong);
    paint();
    QCOMPARE(steps("live"), size_t{25});
  }

  /// As the trainer of a run on a GPU records it.
  void its_gpu_disappears() {
    {
      RunWriter writer = RunWriter::create(path("gpu"), fixture_info({}));
      writer.set_state(RunState::running, 0);
      for (int64_t step = 1; step <= 5; ++step) writer.add(fixture_step({}, step));
      open();
      show("gpu");
      QTRY_COMPARE_WITH_TIMEOUT(state("gpu"), static_cast<int>(RunState::running), kLong);
      writer.record_failure(5, "cuda:0 is lost: the GPU has fallen off the bus");
    }
    QTRY_COMPARE_WITH_TIMEOUT(state("gpu"), static_cast<int>(RunState::failed), kLong);
    paint();
    QVERIFY2(tip("gpu").contains("fallen off the bus"), qPrintable(tip("gpu")));
  }

  void its_folder_is_deleted() {
    write_fixture(path("gone"), {.seed = 2, .steps = 40});
    open();
    show("gone");
    fs::remove_all(path("gone"));
    QTRY_COMPARE_WITH_TIMEOUT(session_->runs()->rowCount(), 1, kLong);
    paint();
    QVERIFY(session_->runs()->run(name("good")));
  }
  void its_folder_is_deleted_while_it_trains() {
    const auto trainer = train("live", 10);
    open();
    show("live");
    fs::remove_all(path("live"));
    QTRY_COMPARE_WITH_TIMEOUT(session_->runs()->rowCount(), 1, kLong);
    paint();
    trainer->kill();
    QVERIFY(trainer->waitForFinished(kLong));
  }

  void all_folders_are_unmounted_and_come_back() {
    open();
    show("good");
    const fs::path runs = path("").parent_path(), away = runs.parent_path() / "away";
    fs::rename(runs, away);
    QTRY_COMPARE_WITH_TIMEOUT(session_->runs()->rowCount(), 0, kLong);
    paint();
    fs::rename(away, runs);
    QTRY_COMPARE_WITH_TIMEOUT(session_->runs()->rowCount(), 1, kLong);
    QTRY_VERIFY_WITH_TIMEOUT(session_->runs()->run(name("good")), kLong);
    paint();
  }

  void another_run_takes_its_place() {
    write_fixture(path("other"), {.mixer = "avey", .seed = 7, .steps = 20});
    fs::rename(path("other"), fs::path(folder_->path().toStdString()) / "other");
    write_fixture(path("place"), {.seed = 3, .steps = 60});
    open();
    show("place");
    QTRY_COMPARE_WITH_TIMEOUT(steps("place"), size_t{60}, kLong);
    fs::remove_all(path("place"));
    fs::rename(fs::path(folder_->path().toStdString()) / "other", path("place"));
    QTRY_VERIFY_WITH_TIMEOUT(session_->runs()->run(name("place")) && session_->runs()->run(name("place"))->info().seed == 7, kLong);
    QTRY_COMPARE_WITH_TIMEOUT(steps("place"), size_t{20}, kLong);
    paint();
  }

  void its_journal_is_truncated() {
    write_fixture(path("cut"), {.seed = 2, .steps = 40});
    open();
    show("cut");
    QTRY_COMPARE_WITH_TIMEOUT(steps("cut"), size_t{40}, kLong);
    fs::resize_file(path("cut") / "journal.jsonl", fs::file_size(path("cut") / "journal.jsonl") / 2);
    QTRY_VERIFY_WITH_TIMEOUT(session_->runs()->run(name("cut")) && !session_->runs()->run(name("cut"))->damage().empty(), kLong);
    paint();
    QVERIFY2(tip("cut").contains("run.json knows of"), qPrintable(tip("cut")));
    QVERIFY(steps("cut") > 10 && steps("cut") < 30);
    fs::resize_file(path("cut") / "run.json", 0);
    QTRY_VERIFY_WITH_TIMEOUT(!problem("cut").isEmpty(), kLong);
    paint();
  }

  void two_hundred_are_damaged_at_once() {
    for (int i = 0; i < 200; ++i) {
      fs::copy(path("good"), path(damaged(i)), fs::copy_options::recursive);
      std::ofstream(path(damaged(i)) / "lock") << "999999999 " << host_name() << "\n";  // as runs of this machine, no copies
    }
    open();
    QCOMPARE(session_->runs()->rowCount(), 201);
    show(damaged(0));
    for (int i = 0; i < 200; ++i) damage(path(damaged(i)), i);
    const auto untold = [&] {
      QStringList names;
      for (int i = 0; i < 200; ++i)
        if (problem(damaged(i)).isEmpty() && !tip(damaged(i)).contains("journal") && !tip(damaged(i)).contains("run.json"))
          names << damaged(i) + " " + tip(damaged(i));
      return names.join(", ");
    };
    QTRY_VERIFY2_WITH_TIMEOUT(untold().isEmpty(), qPrintable(untold()), kLong);
    QVERIFY(problem("good").isEmpty() && session_->runs()->run(name("good"))->damage().empty());
    for (int i = 0; i < 200; i += 40) show(damaged(i));
  }

  void the_clock_goes_back() {
    RunWriter writer = RunWriter::create(path("live"), fixture_info({}));
    writer.set_state(RunState::running, 0);
    writer.add(fixture_step({}, 1));
    open();
    show("live");
    QTRY_COMPARE_WITH_TIMEOUT(steps("live"), size_t{1}, kLong);
    for (int64_t step = 2; step <= 4; ++step) {
      writer.add(fixture_step({}, step));
      if (step == 3) writer.set_step(step);
      const auto before = fs::file_time_type::clock::now() - std::chrono::hours(24 * step);
      for (const char* file : {"run.json", "journal.jsonl", "lease"}) fs::last_write_time(path("live") / file, before);
      QTRY_COMPARE_WITH_TIMEOUT(steps("live"), static_cast<size_t>(step), kLong);
      QCOMPARE(state("live"), static_cast<int>(RunState::running));
    }
    paint();
    writer.set_state(RunState::finished, 4);
    fs::last_write_time(path("live") / "run.json", fs::file_time_type::clock::now() - std::chrono::hours(1000));
    QTRY_COMPARE_WITH_TIMEOUT(state("live"), static_cast<int>(RunState::finished), kLong);
    paint();
  }

  /// Star, tags and notes cannot be kept; the window says why and stays up.
  void nothing_can_be_written() {
    open();
    show("good");
    fs::create_directory(path("good") / "notes.json");
    RunNotes notes;
    notes.starred = true;
    QString why;
    try {
      session_->runs()->setNotes(name("good"), notes);
    } catch (const std::exception& error) {
      why = QString::fromUtf8(error.what());
    }
    QVERIFY2(why.contains("notes.json"), qPrintable(why));
    paint();
  }

 private:
  static constexpr int kLong = 120000;

  fs::path path(const QString& run) const { return name(run).toStdString(); }
  QString name(const QString& run) const { return folder_->filePath("runs/" + run); }
  static QString damaged(int i) { return QString("damaged-%1").arg(i); }

  /// A process that records so many steps and then waits. A program of its own: a fork of this one, which has threads, may find a lock
  /// taken for ever.
  std::unique_ptr<QProcess> train(const QString& run, int steps) {
    auto trainer = std::make_unique<QProcess>();
    trainer->setProcessChannelMode(QProcess::ForwardedErrorChannel);
    trainer->start(QCoreApplication::applicationFilePath(), {kTrains, name(run), QString::number(steps)});
    if (!trainer->waitForReadyRead(kLong)) qWarning("the trainer of %s has not come so far", qPrintable(run));
    return trainer;
  }

  void open() {
    session_ = std::make_unique<ui::Session>(folder_->filePath("runs"));
    QVERIFY(!session_->runs()->loading() || QSignalSpy(session_->runs(), &ui::RunList::loaded).wait(kLong));
    for (const ui::Page& page : ui::pages()) {
      pages_.push_back(page.make(*session_, nullptr));
      pages_.back()->resize(1000, 700);
      pages_.back()->show();
    }
  }
  void show(const QString& run) {
    session_->setCurrentRun(name(run));
    paint();
  }
  void paint() {
    QCoreApplication::processEvents();
    for (QWidget* page : pages_) QVERIFY(!page->grab().isNull());
  }
  QVariant look(const QString& run, int role) const {
    const int row = session_->runs()->row(name(run));
    return row < 0 ? QVariant() : session_->runs()->index(row).data(role);
  }
  int state(const QString& run) const {
    const QVariant state = look(run, ui::RunList::StateRole);
    return state.isValid() ? state.toInt() : -1;
  }
  QString problem(const QString& run) const { return look(run, ui::RunList::ProblemRole).toString(); }
  QString tip(const QString& run) const { return look(run, Qt::ToolTipRole).toString(); }
  size_t steps(const QString& run) const {
    const auto shown = session_->runs()->run(name(run));
    const Series* losses = shown ? shown->find("train/loss") : nullptr;
    return losses ? losses->value.size() : 0;
  }

  static void damage(const fs::path& run, int kind) {
    switch (kind % 5) {
      case 0: fs::resize_file(run / "run.json", 20); break;
      case 1: fs::resize_file(run / "journal.jsonl", 0); break;
      case 2: fs::remove(run / "journal.jsonl"); break;
      case 3: std::ofstream(run / "run.json") << std::string(1000, '['); break;
      default: {
        std::string journal = read_text(run / "journal.jsonl");
        journal[journal.find("\"type\":\"step\",\"step\":21,") + 60] ^= 1;
        std::ofstream(run / "aside") << journal;
        fs::rename(run / "aside", run / "journal.jsonl");
      }
    }
  }

  std::unique_ptr<QTemporaryDir> folder_;
  std::unique_ptr<ui::Session> session_;
  std::vector<QWidget*> pages_;
};

}  // namespace saccade::test

int main(int argc, char** argv) {
  using namespace saccade::test;
  if (argc == 4 && std::string_view(argv[1]) == kTrains) return train_and_wait(argv[2], std::stoi(argv[3]));
  QApplication app(argc, argv);
  WindowFaultsTest test;
  QTEST_SET_MAIN_SOURCE_PATH
  return QTest::qExec(&test, argc, argv);
}
#include "window_faults_test.moc"
