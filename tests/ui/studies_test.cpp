// The page of studies and the queue, over the real program: what it shows is what saccade study and saccade queue say.
#include <QAbstractItemModelTester>
#include <QAction>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QToolButton>
#include <QToolTip>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "analysis/runs/run.h"
#include "analysis/studies/study_folder.h"
#include "tests/app/program.h"
#include "tests/ui/longest_event.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/studies/job_script.h"
#include "ui/studies/lines_table.h"
#include "ui/studies/studies_page.h"
#include "ui/studies/studies_state.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

class StudiesTest : public QObject {
  Q_OBJECT

  Program program_;

  static Json small_study() {
    return {{"question", "Which width?"},
            {"base", Program::config()},
            {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
            {"seeds", {1, 2}},
            {"branches", {0.5}},
            {"tuning", {{"setting", "training.learning_rate"}, {"values", {0.0001, 0.003, 0.01}}}}};
  }

  /// The page on a folder of runs, as the window has it.
  struct Shown {
    explicit Shown(const QString& folder) : session(folder), page(session, nullptr) {
      page.resize(1100, 720);
      page.show();
      QTest::qWait(50);
    }
    template <class T>
    T* child(const QString& name) {
      for (T* each : page.findChildren<T*>())
        if (each->accessibleName() == name) return each;
      return nullptr;
    }
    LinesTable* table(const QString& name) { return child<LinesTable>(name); }
    QString cell(const QString& name, int row, int column) { return table(name)->model()->index(row, column).data().toString(); }
    /// Whether a cell of a table has the text.
    bool shows(const QString& name, const QString& text) {
      const QAbstractItemModel* model = table(name)->model();
      for (int row = 0; row < model->rowCount(); ++row)
        for (int column = 0; column < model->columnCount(); ++column)
          if (model->index(row, column).data().toString() == text) return true;
      return false;
    }
    QToolButton* button(const QString& name) { return child<QToolButton>(name); }
    QPushButton* push(const QString& text) {
      for (QPushButton* each : page.findChildren<QPushButton*>())
        if (each->text() == text) return each;
      return nullptr;
    }
    QString takes() { return child<QLabel>(QStringLiteral("What the study takes"))->text(); }
    Session session;
    StudiesPage page;
  };

  void choose(Shown& shown, const QString& study) const {
    auto* line = shown.child<QComboBox>(QStringLiteral("Study to begin"))->lineEdit();
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, study);
  }

  Json status(const QString& study) const { return program_.run({"--json", "study", "status", program_.path(study)}).json(); }
  Json queue() const {
    const Json all = program_.run({"--json", "queue", "list"}).json();
    return all.empty() ? Json{{"worker", nullptr}, {"entries", Json::array()}, {"paused", false}} : all[0];
  }

  /// A scheduler that takes everything and begins nothing (tests/slurm/fake_slurm.sh), and a profile for it.
  void set_up_cluster() const {
    QDir().mkpath(program_.path("fake/bin"));
    QDir().mkpath(program_.path("config/clusters"));
    for (const char* name : {"sbatch", "squeue", "sacct", "scancel", "scontrol"})
      QFile::link(qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/tests/slurm/fake_slurm.sh", program_.path("fake/bin/") + name);
    program_.write("config/clusters/lab.json", R"({"partition": "gpu", "time": "01:00:00", "next_round": "by-hand"})");
    qputenv("PATH", (program_.path("fake/bin") + ":/usr/bin:/bin").toUtf8());
    qputenv("FAKE", program_.path("fake").toUtf8());
    qputenv("SACCADE_CONFIG", program_.path("config").toUtf8());
  }

  bool at_rest() const {
    return QTest::qWaitFor([&] { return queue()["worker"].is_null() && (queue()["entries"].empty() || queue()["paused"] == true); },
                           120000);
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    program_.write("widths.json", QByteArray::fromStdString(small_study().dump()));
  }

  void cleanup() { QVERIFY(at_rest()); }

  void says_why_a_study_left_the_queue() {
    program_.write("left.json", QByteArray::fromStdString(small_study().dump()));
    const std::filesystem::path folder = program_.path("elsewhere/left").toStdString();
    create_study_folder(folder, load_study(program_.path("left.json").toStdString()));
    const auto problem = [&] { return read_studies({program_.path("elsewhere")}).studies.at(0).problem; };
    QCOMPARE(problem(), QString());
    edit_study_state(folder, [](StudyState& state) { state.left_queue = "left the queue of cpu, logs: Not a directory"; });
    QCOMPARE(problem(), QString("left the queue of cpu, logs: Not a directory"));
  }

  void an_empty_folder_says_what_to_do() {
    Shown shown(program_.path("runs"));
    QTRY_VERIFY(shown.page.findChildren<QLabel*>().size() > 0);
    const auto says = [&](const QString& text) {
      for (const QLabel* label : shown.page.findChildren<QLabel*>())
        if (label->isVisible() && label->text().contains(text)) return true;
      return false;
    };
    QTRY_VERIFY(says("No study stands in"));
    QTRY_VERIFY(says("Nothing has been queued") || says("at rest"));
    QVERIFY(!shown.button("Stop")->isEnabled() && !shown.button("Go on")->isEnabled());
  }

  /// Counts and disk come by themselves, time when asked for, mistakes in the study's own words.
  void tells_what_a_study_takes_before_it_is_queued() {
    Shown shown(program_.path("runs"));
    choose(shown, program_.path("widths.json"));
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().startsWith("8 runs"), 20000);
    QVERIFY2(shown.takes().contains("time not measured yet"), qPrintable(shown.takes()));
    QTest::mouseClick(shown.push("Time its steps"), Qt::LeftButton);
    QVERIFY(shown.push("Cancel the timing"));
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().contains("one run after the other"), 60000);
    auto* set = shown.child<QLineEdit>("Settings of all runs");
    set->setFocus();
    QTest::keyClicks(set, "training.stepz=4");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().contains("stepz"), 20000);
    QVERIFY(!shown.push("Queue it")->isEnabled());
    set->clear();
    choose(shown, "tuned-tny");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().contains("tuned-tiny"), 20000);  // the nearest name
  }

  /// Columns are as wide as what they hold: the arrow of sorting has room where it is alone, so that losses are seen in a small window.
  void columns_keep_no_room_for_an_arrow() {
    LinesTable table(QStringLiteral("Runs"), {QStringLiteral("Cell"), QStringLiteral("Seed"), QStringLiteral("OOD"), QStringLiteral("Why")},
                     {1, 2}, true);
    table.resize(600, 200);
    table.show();
    table.setLines({{QStringLiteral("a"), {{QStringLiteral("full")}, {QStringLiteral("1")}, {QStringLiteral("3.1")}, {}}}});
    const int whole = table.header()->sectionSizeHint(1), without = table.header()->sectionSize(1);
    QVERIFY2(without + 12 < whole, qPrintable(QStringLiteral("%1 of %2").arg(without).arg(whole)));
    QVERIFY(without > table.header()->fontMetrics().horizontalAdvance(QStringLiteral("Seed")));
    table.sortByColumn(1, Qt::AscendingOrder);
    QCOMPARE(table.header()->sectionSize(1), whole);
    table.sortByColumn(2, Qt::AscendingOrder);
    QCOMPARE(table.header()->sectionSize(1), without);

    LinesTable places(QStringLiteral("Queue"), {QString(), QStringLiteral("Name"), QStringLiteral("Device")}, {}, false);
    places.resize(400, 200);
    places.show();
    places.setLines({{QStringLiteral("a"), {{QStringLiteral("1")}, {QStringLiteral("tour")}, {QStringLiteral("cpu")}}}});
    QCOMPARE(places.horizontalScrollBar()->maximum(), 0);  // Qt makes no column narrower than it likes
  }

  /// A study of a thousand runs is shown anew twice a second: what has not changed costs nothing, and one run at work little.
  void many_lines_are_quick() {
    LinesTable table(QStringLiteral("Runs"), {QStringLiteral("Cell"), QStringLiteral("Seed"), QStringLiteral("OOD"), QStringLiteral("Why")},
                     {1, 2}, true);
    table.resize(500, 400);
    table.show();
    const auto lines = [](int step) {
      std::vector<LinesModel::Line> all;
      for (int i = 0; i < 1000; ++i)
        all.push_back({QString::number(i),
                       {{QStringLiteral("cell-%1").arg(i)},
                        {QString::number(i == 500 ? step : i)},
                        {QString::number(3 + 0.001 * i), 3 + 0.001 * i},
                        {QStringLiteral("why")}}});
      return all;
    };
    table.setLines(lines(0));
    table.setCurrentKey(QStringLiteral("700"));
    QTest::qWait(100);
    const auto takes = [&](int step) {
      std::vector<LinesModel::Line> next = lines(step);
      QElapsedTimer clock;
      clock.start();
      const double waited = waited_for_processor();
      table.setLines(std::move(next));
      return 1e-6 * static_cast<double>(clock.nsecsElapsed()) - (waited_for_processor() - waited);
    };
    const double same = takes(0), one = takes(1);
    qInfo("1 000 lines: %.2f ms where nothing changed, %.2f ms where one did", same, one);
    QVERIFY2(same < 4 && one < 8, qPrintable(QStringLiteral("%1 and %2 ms").arg(same).arg(one)));
    QCOMPARE(table.currentKey(), QStringLiteral("700"));
    QCOMPARE(table.model()->index(500, 1).data().toString(), QStringLiteral("1"));
    takes(123456789);  // a wider one makes its column wider
    QVERIFY(table.columnWidth(1) > table.fontMetrics().horizontalAdvance(QStringLiteral("123456789")));
  }

  /// A name that is cut is told whole, and only then; numbers keep away from the words beside them.
  void what_is_cut_is_told_by_a_tip() {
    LinesTable table("Lines", {"Name", "Loss", "State"}, {1}, false);
    const QString name = QStringLiteral("a-name-that-is-longer-than-its-column-is-wide");
    table.setLines({{"a", {{name}, {"3.1415"}, {"finished"}}}});
    table.resize(260, 100);
    table.show();
    const auto tip_at = [&](int column) {
      const QPoint at = table.visualRect(table.model()->index(0, column)).center();
      QHelpEvent help(QEvent::ToolTip, at, table.viewport()->mapToGlobal(at));
      QCoreApplication::sendEvent(table.viewport(), &help);
      const QString text = QToolTip::isVisible() ? QToolTip::text() : QString();
      QToolTip::hideText();
      return text;
    };
    QCOMPARE(tip_at(0), name);
    QTRY_VERIFY(!QToolTip::isVisible());
    QVERIFY(tip_at(1).isEmpty());
    const int wide = table.fontMetrics().horizontalAdvance("3.1415");
    QVERIFY(table.columnWidth(1) >= wide + 10 && table.columnWidth(2) >= table.fontMetrics().horizontalAdvance("finished") + 10);
  }

  /// Queued from the window, it trains without it: the page is closed at once and another one finds the study complete.
  void a_study_goes_on_without_the_window() {
    {
      Shown shown(program_.path("runs"));
      choose(shown, program_.path("widths.json"));
      QTRY_VERIFY_WITH_TIMEOUT(shown.push("Queue it") && shown.push("Queue it")->isEnabled(), 20000);
      QTest::mouseClick(shown.push("Queue it"), Qt::LeftButton);
    }
    QTRY_VERIFY_WITH_TIMEOUT(status("runs/widths").value("complete", false), 120000);
    Shown shown(program_.path("runs"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell("Studies", 0, 1), QString("complete"), 20000);
    QCOMPARE(shown.cell("Studies", 0, 2), QString("8 of 8"));
    const Json now = status("runs/widths");
    int tuned = 0;
    for (const Json& cell : now["cells"]) tuned += cell["tuning"]["state"] == "tuned";
    QVERIFY2(shown.cell("Studies", 0, 5).startsWith(QString("%1 tuned").arg(tuned)), qPrintable(shown.cell("Studies", 0, 5)));
    QCOMPARE(shown.table("Runs of the study")->model()->rowCount(), 8);
    QCOMPARE(shown.table("Runs of the study")->model()->headerData(1, Qt::Horizontal).toString(), QString("Learning rate"));
    auto* tuning = shown.child<QListWidget>("Tuning of the cells");
    QCOMPARE(tuning->count(), 2);
    QVERIFY(tuning->item(0)->text().contains(now["cells"][0]["tuning"]["state"].get<std::string>().c_str()));
    QVERIFY(!shown.button("Go on")->isEnabled() && shown.button("Report")->isEnabled());
    for (LinesTable* table : shown.page.findChildren<LinesTable*>())
      new QAbstractItemModelTester(table->lines(), QAbstractItemModelTester::FailureReportingMode::QtTest, table);
    QSignalSpy folder(&shown.session, &Session::folderRequested);
    QTest::keyClick(&shown.page, Qt::Key_Return, Qt::ControlModifier);
    QCOMPARE(folder.size(), 1);
    QCOMPARE(folder[0][0].toString(), program_.path("runs/widths/runs"));

    QSignalSpy page(&shown.session, &Session::pageRequested);
    QTest::mouseClick(shown.button("Compare"), Qt::LeftButton);
    QCOMPARE(page.size(), 1);
    QCOMPARE(page[0][0].toString(), QString("compare"));
    const std::filesystem::path runs = program_.path("runs/widths/runs").toStdString();
    std::set<std::string> hidden, not_best;
    for (const QString& run : shown.session.runs()->hidden())
      hidden.insert(std::filesystem::path(run.toStdString()).lexically_relative(runs).string());
    std::map<std::string, std::string> best;
    for (const Json& cell : now["cells"]) {
      std::ostringstream value;
      value << cell["tuning"]["best"].get<double>();
      best[cell["name"]] = "_learning_rate-" + value.str() + "_";
    }
    for (const Json& run : now["runs"])
      if (const std::string name = run["name"]; name.find(best.at(run["cell"])) == std::string::npos) {
        not_best.insert(name);
        for (const auto& branch : std::filesystem::directory_iterator(runs / name / "branches"))
          not_best.insert(branch.path().lexically_relative(runs).string());
      }
    QCOMPARE(not_best.size(), size_t{8});  // four runs, a branch of each
    QVERIFY(hidden == not_best);
    QVERIFY(!hidden.contains(QFileInfo(shown.session.runs()->selection().baseline()).fileName().toStdString()));
  }

  /// From the folder of its runs, a study is still the one of the page.
  void a_study_whose_runs_are_open_stays() {
    Shown shown(program_.path("runs/widths/runs"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell("Studies", 0, 0), QString("widths"), 20000);
  }

  /// The best value so far is no tuned value: what is in bold are runs at the best of a search that has ended.
  void values_are_bold_when_their_search_has_ended() {
    const QString runs = program_.path("runs/widths/runs/"), kept = program_.path("kept");
    const auto bold = [&](Shown& shown) {
      const QAbstractItemModel* model = shown.table("Runs of the study")->model();
      std::map<std::string, int> count;  // by cell
      for (int row = 0; row < model->rowCount(); ++row)
        count[model->index(row, 0).data().toString().toStdString()] += model->index(row, 1).data(Qt::FontRole).value<QFont>().bold();
      return count;
    };
    const Json now = status("runs/widths");
    const std::string first = now["cells"][0]["name"], second = now["cells"][1]["name"];
    Shown shown(program_.path("runs"));
    QTRY_VERIFY_WITH_TIMEOUT(bold(shown)[first] == 2 && bold(shown)[second] == 2, 20000);  // two seeds each
    std::string of_search;
    for (const Json& run : now["runs"]) {
      std::ostringstream best;
      best << "_learning_rate-" << now["cells"][0]["tuning"]["best"].get<double>() << "_";
      const std::string name = run["name"];
      if (run["cell"] == first && name.find(best.str()) == std::string::npos) of_search = name;
    }
    QVERIFY(QDir().rename(runs + QString::fromStdString(of_search), kept));
    QTRY_VERIFY_WITH_TIMEOUT(bold(shown)[first] == 0 && bold(shown)[second] == 2, 20000);
    QVERIFY(QDir().rename(kept, runs + QString::fromStdString(of_search)));
  }

  /// Order, pause, taking out and going on are those of the queue.
  void the_queue_is_ordered_paused_and_worked_off() {
    Json slow = small_study();
    slow["set"] = {{"training.steps", 1'000'000}};  // they end by what is done to them alone
    slow.erase("tuning");
    program_.write("slow.json", QByteArray::fromStdString(slow.dump()));
    slow["seeds"] = {3};
    program_.write("later.json", QByteArray::fromStdString(slow.dump()));
    QCOMPARE(program_.run({"queue", "pause", "--device", "cpu"}).code, 0);
    for (const char* name : {"slow", "later"})
      QCOMPARE(
          program_
              .run({"study", "start", program_.path(QString("%1.json").arg(name)), "--out", program_.path(QString("runs/%1").arg(name))})
              .code,
          0);
    Shown shown(program_.path("runs"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.table("Queue")->model()->rowCount(), 2, 20000);
    QCOMPARE(shown.cell("Queue", 0, 1), QString("slow"));
    QCOMPARE(shown.cell("Queue", 0, 3), QString("paused"));
    QVERIFY(shown.child<QLabel>("State of the queue")->text().contains("paused"));
    shown.table("Queue")->setCurrentKey("cpu " + QString::number(queue()["entries"][1]["id"].get<int>()));
    QTest::keyClick(&shown.page, Qt::Key_Up, Qt::AltModifier);
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell("Queue", 0, 1), QString("later"), 20000);
    QVERIFY(!shown.button("Pause")->isEnabled());
    QTest::mouseClick(shown.button("Go on with the queue"), Qt::LeftButton);
    const auto state_of = [&](const QString& study) {
      for (int row = 0; row < shown.table("Studies")->model()->rowCount(); ++row)
        if (shown.cell("Studies", row, 0) == study) return shown.cell("Studies", row, 1);
      return QString();
    };
    QTRY_COMPARE_WITH_TIMEOUT(state_of("later"), QString("running"), 60000);
    QTRY_VERIFY_WITH_TIMEOUT(shown.child<QLabel>("State of the queue")->text().contains("left"), 60000);
    shown.table("Studies")->setCurrentKey(program_.path("runs/later"));
    QTRY_VERIFY(shown.button("Stop")->isEnabled());
    QTest::mouseClick(shown.button("Stop"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(state_of("later"), QString("stopped"), 60000);
    QTRY_COMPARE_WITH_TIMEOUT(state_of("slow"), QString("running"), 60000);
    QTest::mouseClick(shown.button("Pause now"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(state_of("slow"), QString("paused"), 60000);
    QTRY_COMPARE_WITH_TIMEOUT(shown.table("Queue")->model()->rowCount(), 1, 20000);
    shown.table("Queue")->setCurrentKey("cpu " + QString::number(queue()["entries"][0]["id"].get<int>()));
    Offer undo;
    connect(&shown.session, &Session::offered, &shown.page, [&](const QString&, const Offer& offer) { undo = offer; });
    QTest::mouseClick(shown.button("Take out"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(shown.table("Queue")->model()->rowCount(), 0, 20000);
    QVERIFY(undo.act);
    undo.act();
    QTRY_COMPARE_WITH_TIMEOUT(shown.table("Queue")->model()->rowCount(), 1, 20000);
    undo.act();  // it is there already
    QCOMPARE(queue()["entries"].size(), size_t{1});
    shown.table("Queue")->setCurrentKey("cpu " + QString::number(queue()["entries"][0]["id"].get<int>()));
    QTest::mouseClick(shown.button("Take out"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(shown.table("Queue")->model()->rowCount(), 0, 20000);
    QCOMPARE(program_.run({"queue", "go-on", "--device", "cpu"}).code, 0);
  }

  /// A run that cannot train is told with its reason, and tried again by Go on.
  void failed_runs_say_why() {
    Json bad = small_study();
    bad.erase("tuning");
    bad["axes"] = Json::array();
    bad["seeds"] = {7};
    bad["set"] = {{"training.steps", 8}};
    program_.write("bad.json", QByteArray::fromStdString(bad.dump()));
    QDir().mkpath(program_.path("runs/bad"));
    const auto started = program_.run({"study", "start", program_.path("bad.json"), "--out", program_.path("runs/bad"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    const Json run = status("runs/bad")["runs"][0];
    QVERIFY(at_rest());  // else the worker tells what it saw last behind our back
    // As a worker leaves it whose run was stopped by hand.
    QDir(program_.path("runs/bad/runs/" + QString::fromStdString(run["name"]))).removeRecursively();
    program_.write(
        "runs/bad/state.json",
        QByteArray::fromStdString(
            Json{{"format_version", 1}, {"name", "bad"}, {"stopped", false}, {"gave_up", {{run["name"], "no room on the disk"}}}}.dump()));
    Shown shown(program_.path("runs"));
    QTRY_VERIFY_WITH_TIMEOUT(shown.table("Studies")->model()->rowCount() > 0, 20000);
    shown.table("Studies")->setCurrentKey(program_.path("runs/bad"));
    QTRY_COMPARE(shown.cell("Runs of the study", 0, 5), QString("given up"));
    QCOMPARE(shown.cell("Runs of the study", 0, 7), QString("no room on the disk"));
    QVERIFY(shown.child<QLabel>("The selected study")->text().contains("1 run was given up"));
    QTest::mouseClick(shown.button("Go on"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell("Runs of the study", 0, 5), QString("finished"), 60000);
  }

  /// A study folder that is damaged holds nobody up.
  void a_damaged_study_is_told() {
    QDir().mkpath(program_.path("runs/broken"));
    program_.write("runs/broken/study.json", "{\"question\": ");
    Shown shown(program_.path("runs"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell("Studies", 1, 1), QString("cannot be read"), 20000);
    QVERIFY(shown.table("Studies")->model()->rowCount() >= 4);
    QDir(program_.path("runs/broken")).removeRecursively();
  }

  /// Reading a study of 200 runs holds no event up.
  void reading_is_done_beside_the_event_loop() {
    Json file = small_study();
    Json seeds = Json::array();
    for (int i = 1; i <= 100; ++i) seeds.push_back(i);
    file["seeds"] = seeds;
    file.erase("tuning");
    program_.write("many.json", QByteArray::fromStdString(file.dump()));
    QDir().mkpath(program_.path("runs/many"));
    QFile::copy(program_.path("many.json"), program_.path("runs/many/study.json"));
    Shown shown(program_.path("runs"));
    shown.table("Studies")->setCurrentKey(program_.path("runs/many"));
    shown.session.place().set("studies/selected", program_.path("runs/many"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.table("Runs of the study")->model()->rowCount(), 200, 20000);
    const double longest = longest_event(2500);
    QVERIFY2(longest < 100, qPrintable(QString::number(longest)));  // the benchmark measures
  }

  /// Where a cluster is set up a study can go there: its script is shown and edited before, and what the scheduler says stands beside its
  /// runs.
  void a_study_goes_to_a_cluster() {
    set_up_cluster();
    Shown shown(program_.path("runs"));
    program_.write("away.json", QByteArray::fromStdString(small_study().dump()));
    choose(shown, program_.path("away.json"));
    auto* on = shown.child<QComboBox>(QStringLiteral("Where its runs go"));
    QCOMPARE(on->itemText(1), QStringLiteral("on lab"));
    on->setCurrentIndex(1);
    QCOMPARE(shown.child<QSpinBox>(QStringLiteral("Runs at a time"))->value(), 8);
    QTRY_VERIFY_WITH_TIMEOUT(shown.push("Show its script") && shown.push("Show its script")->isEnabled(), 20000);
    QTest::mouseClick(shown.push("Show its script"), Qt::LeftButton);
    JobScript* dialog = nullptr;
    QTRY_VERIFY_WITH_TIMEOUT((dialog = shown.page.window()->findChild<JobScript*>()) != nullptr, 20000);
    auto* text = dialog->findChild<QPlainTextEdit*>();
    QVERIFY(text->toPlainText().contains("#SBATCH --partition=gpu"));
    text->setPlainText(text->toPlainText().replace("set -u", "set -u  # mine"));
    dialog->accept();
    QFile kept(program_.path("runs/away/slurm/script.sh"));
    QTRY_VERIFY_WITH_TIMEOUT(kept.exists() && QFile::exists(program_.path("fake/accepted")), 20000);
    QVERIFY(kept.open(QIODevice::ReadOnly) && kept.readAll().contains("# mine"));
    QTRY_VERIFY_WITH_TIMEOUT(shown.shows("Studies", "on lab"), 20000);
    QTRY_VERIFY_WITH_TIMEOUT(shown.shows("Runs of the study", "to do (PENDING)"), 20000);  // it is the selected one
    QVERIFY(shown.shows("Runs of the study", "101_0 PENDING (Priority)"));
    QVERIFY(shown.button("Stop")->isEnabled());
    QTest::mouseClick(shown.button("Stop"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(program_.path("fake/cancelled")), 20000);
    QTRY_VERIFY_WITH_TIMEOUT(shown.shows("Studies", "stopped"), 20000);
  }

  /// On Compare: another seed of a row is queued by a click, runs, and is counted in the row.
  void more_seeds_of_a_row_are_queued_from_compare() {
    for (const char* rate : {"0.001", "0.004"})
      program_.train(QString("compared/rate-%1-seed1").arg(rate), {QString("training.learning_rate=%1").arg(rate)});
    Session session(program_.path("compared"));
    QSignalSpy told(&session, &Session::offered);
    QSignalSpy failed(&session, &Session::failed);
    std::unique_ptr<QWidget> page;
    for (const Page& each : pages())
      if (each.id == "compare") page.reset(each.make(session, nullptr));
    page->resize(1100, 720);
    page->show();
    QTableView* table = nullptr;
    for (auto* each : page->findChildren<QTableView*>())
      if (each->accessibleName() == "OOD loss at equal pre-training loss") table = each;
    QToolButton* more = nullptr;
    for (auto* each : page->findChildren<QToolButton*>())
      if (each->text() == "More seeds") more = each;
    QVERIFY(table && more);
    const QAbstractItemModel& rows = *table->model();
    QTRY_COMPARE_WITH_TIMEOUT(rows.rowCount(), 2, 20000);
    const auto cell = [&](int row, const QString& column) {
      for (int c = 0; c < rows.columnCount(); ++c)
        if (rows.headerData(c, Qt::Horizontal).toString() == column) return rows.index(row, c).data().toString();
      return QString();
    };
    QVERIFY(!more->isEnabled());
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(rows.index(1, 0)).center());
    QTRY_VERIFY(more->isEnabled());
    const QString title = cell(1, "architecture");
    QTest::mouseClick(more, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!told.empty() || !failed.empty(), 60000);
    QVERIFY2(failed.empty(), qPrintable(failed.empty() ? QString() : failed.first().first().toString()));
    QCOMPARE(told.first().first().toString(), QString("One more seed of %1 is queued").arg(title));
    QVERIFY(at_rest());
    QStringList seconds;
    for (const QString& name : QDir(program_.path("compared")).entryList({"*seed2"}, QDir::Dirs)) seconds << name;
    QCOMPARE(seconds.size(), 1);
    const Run second(std::filesystem::path(program_.path("compared/" + seconds.first()).toStdString()));
    const Run first(std::filesystem::path(program_.path("compared/" + QString(seconds.first()).replace("seed2", "seed1")).toStdString()));
    QVERIFY(second.info().state == RunState::finished && second.info().seed == 2 && second.setting() == first.setting());
    const auto seeds_of = [&](const QString& wanted) {
      for (int row = 0; row < rows.rowCount(); ++row)
        if (cell(row, "architecture") == wanted) return cell(row, "seeds");
      return QString();
    };
    QTRY_COMPARE_WITH_TIMEOUT(seeds_of(title), QString("2"), 30000);
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::StudiesTest)
#include "studies_test.moc"
