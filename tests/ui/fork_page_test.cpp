// Runs and forks started from the page that configures them, over the real program.
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QTextEdit>
#include <QToolButton>

#include "tests/app/program.h"
#include "tests/ui/configure_page_fixture.h"
#include "ui/configure/fork_bar.h"
#include "ui/configure/setting_editor.h"
#include "ui/configure/settings_form.h"
#include "ui/page.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

class ForkPageTest : public QObject {
  Q_OBJECT

  Program program_;

  struct Shown : ShownConfigure {
    explicit Shown(const QString& folder, QSettings* settings = nullptr) : ShownConfigure(folder, settings) {
      if (!QTest::qWaitFor([&] { return !session.currentRun().isEmpty(); }, 10000)) qFatal("no runs in %s", qPrintable(folder));
    }
    void type(const std::string& pointer, const QString& text) {
      ShownConfigure::type(page->form()->editor(pointer)->findChild<QLineEdit*>(), text);
    }
    QPushButton* start() { return child<QPushButton>("Start run"); }
  };

  static Json read(const QString& file) {
    QFile content(file);
    return content.open(QIODevice::ReadOnly) ? Json::parse(content.readAll().toStdString(), nullptr, false) : Json();
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    program_.train("runs/first", {"training.steps=8", "training.checkpoint_every=4"});
  }

  void only_what_differs_is_assigned() {
    const Json parent{{"name", "a"}, {"training", {{"steps", 8}, {"seed", 1}}}, {"data", {{"ood", {"c"}}}}};
    Json draft = parent;
    QCOMPARE(fork_assignments(parent, draft), QStringList());
    draft["training"]["steps"] = 12;
    draft["data"]["ood"] = {"c", "d"};
    QCOMPARE(fork_assignments(parent, draft), (QStringList{"data.ood=[\"c\",\"d\"]", "training.steps=12"}));
  }

  /// From the menu of runs: a step, a changed setting, and the run that comes of it names its parent and the step.
  void a_run_is_forked() {
    Shown shown(program_.path("runs"));
    const RunActions actions(shown.session);
    QVERIFY(actions.fork->isEnabled());
    actions.fork->trigger();
    QVERIFY(shown.says("Fork of"));
    QVERIFY(!shown.page->form()->editor("/architecture/width"));                             // the model stays
    QVERIFY(shown.says("/training/steps") || shown.says("expected more than the 8 steps"));  // nothing is left to do at the newest
    QVERIFY(!shown.start()->isEnabled());
    auto* steps = shown.child<QComboBox>("Checkpoint to fork from");
    QCOMPARE(steps->count(), 2);
    steps->setFocus();
    QTest::keyClick(steps, Qt::Key_Up);
    QCOMPARE(steps->currentText(), QString("step 4"));
    shown.type("/training/steps", "10");
    QTRY_VERIFY(shown.start()->isEnabled());
    QCOMPARE(shown.start()->text(), QString("Start fork"));
    QSignalSpy began(&shown.session, &Session::runBegan), went(&shown.session, &Session::pageRequested);
    QTest::mouseClick(shown.start(), Qt::LeftButton);
    QVERIFY(!shown.start()->isEnabled());  // one click, one run
    QTRY_COMPARE_WITH_TIMEOUT(began.size(), 1, 60000);
    QCOMPARE(went.last().first().toString(), QString("live"));
    const QString run = began.first().first().toString();
    QTRY_COMPARE_WITH_TIMEOUT(QString::fromStdString(read(run + "/run.json").value("state", "")), QString("finished"), 60000);
    const Json record = read(run + "/run.json");
    QCOMPARE(record.at("provenance").at("parent").at("step").get<int>(), 4);
    QCOMPARE(QString::fromStdString(record.at("provenance").at("parent").at("path")), program_.path("runs/first"));
    QCOMPARE(record.at("config").at("training").at("steps").get<int>(), 10);

    const Page* entry = nullptr;
    for (const Page& each : ui::pages()) entry = each.id == "runs" ? &each : entry;
    const std::unique_ptr<QWidget> runs(entry->make(shown.session, nullptr));
    runs->show();
    QTRY_VERIFY_WITH_TIMEOUT(shown.session.runs()->run(run) != nullptr, 10000);
    shown.session.setCurrentRun(run);
    const auto told = [&] {
      for (const QLabel* label : runs->findChildren<QLabel*>())
        if (label->text().contains("Fork of") && label->text().contains("at step 4")) return true;
      return false;
    };
    QTRY_VERIFY(told());
  }

  void a_fork_is_given_up_and_survives_a_restart() {
    const QTemporaryDir state;
    const QString file = state.filePath("workbench.ini");
    {
      QSettings settings(file, QSettings::IniFormat);
      Shown shown(program_.path("runs"), &settings);
      shown.session.forkRun(program_.path("runs/first"));
      shown.child<QComboBox>("Checkpoint to fork from")->setCurrentIndex(0);
      shown.type("/training/steps", "20");
    }
    QSettings settings(file, QSettings::IniFormat);
    Shown shown(program_.path("runs"), &settings);
    QVERIFY(shown.says("Fork of"));
    QCOMPARE(shown.child<QComboBox>("Checkpoint to fork from")->currentText(), QString("step 4"));
    QVERIFY(shown.start()->isEnabled());
    QTest::mouseClick(shown.child<QToolButton>("No fork: a run from the beginning"), Qt::LeftButton);
    QVERIFY(!shown.says("Fork of") && shown.page->form()->editor("/architecture/width"));
    QCOMPARE(shown.start()->text(), QString("Start run"));
    QCOMPARE(shown.page->draft().json().at("training").at("steps").get<int>(), 20);
  }

  /// By the actions of the menu: a checkpoint, and on from it.
  void a_run_is_stopped_and_resumed() {
    Shown shown(program_.path("runs"));
    Json config = Program::config();
    config["training"]["steps"] = 1'000'000;
    QSignalSpy began(&shown.session, &Session::runBegan), failed(&shown.session, &Session::failed);
    shown.session.startRun(QByteArray::fromStdString(config.dump()));
    QTRY_COMPARE_WITH_TIMEOUT(began.size(), 1, 60000);
    const QString run = began.first().first().toString();
    const auto state = [&] { return QString::fromStdString(read(run + "/run.json").value("state", "")); };
    QTRY_COMPARE_WITH_TIMEOUT(shown.session.currentRun(), run, 20000);
    const RunActions actions(shown.session);
    for (int i = 0; i < 2; ++i) {
      QTRY_COMPARE_WITH_TIMEOUT(state(), QString("running"), 60000);
      QTRY_VERIFY_WITH_TIMEOUT(actions.stop->isEnabled() && !actions.resume->isEnabled(), 20000);
      actions.stop->trigger();
      QTRY_COMPARE_WITH_TIMEOUT(state(), QString("stopped"), 60000);
      QTRY_VERIFY_WITH_TIMEOUT(actions.resume->isEnabled() && !actions.stop->isEnabled(), 20000);
      if (i == 0) actions.resume->trigger();
    }
    QVERIFY2(failed.isEmpty(), qPrintable(failed.value(0).value(0).toString()));
  }

  /// The text that the model would read first, decoded, with the ends of documents.
  void the_first_sequence_is_shown() {
    Shown shown(program_.path("runs"));
    shown.page->findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(Program::config().dump()));
    auto* text = shown.child<QTextEdit>("First training sequence");
    QTRY_VERIFY_WITH_TIMEOUT(text->isVisible() && text->toPlainText().size() >= 60, 20000);
    const QString prose = "Rain fell on the hills for 7 days, and the old road to the sea was washed away again. ";
    const QString words = text->toPlainText().section("(end)", 0, 0);
    QVERIFY2(words.contains("old road") || words.contains("the hills") || words.contains("washed away") || prose.contains(words.trimmed()),
             qPrintable(words));
  }

  /// Where a config has no domain out of distribution, the others of its corpus are a click away.
  void other_domains_are_proposed() {
    Shown shown(program_.path("runs"));
    Json config = Program::config();
    config["data"].erase("ood");
    shown.page->findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(config.dump()));
    const auto offer = [&]() -> QPushButton* {
      for (QPushButton* each : shown.page->findChildren<QPushButton*>())
        if (each->text() == "Evaluate on code, too" && each->isVisible()) return each;
      return nullptr;
    };
    QTRY_VERIFY_WITH_TIMEOUT(offer(), 20000);
    QTRY_VERIFY(shown.says("No domain is out of distribution"));
    QTest::mouseClick(offer(), Qt::LeftButton);
    QVERIFY(shown.page->draft().json().at("data").at("ood") == Json({"code"}));
    QVERIFY(!offer());
    QTRY_VERIFY(!shown.says("No domain is out of distribution"));
  }

  /// What only the started program finds out is said here, where it can be mended.
  void a_run_that_does_not_begin_says_why_here() {
    Shown shown(program_.path("runs"));
    Json config = Program::config();
    config["data"]["corpus"] = "nowhere";
    shown.page->findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(config.dump()));
    QSignalSpy went(&shown.session, &Session::pageRequested), failed(&shown.session, &Session::startFailed);
    QTest::mouseClick(shown.start(), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(failed.size(), 1, 60000);
    QVERIFY2(shown.says(failed.first().last().toString()), qPrintable(failed.first().last().toString()));
    QVERIFY(failed.first().last().toString().contains("nowhere"));
    QCOMPARE(went.size(), 0);
    QVERIFY(shown.start()->isEnabled());
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::ForkPageTest)
#include "fork_page_test.moc"
