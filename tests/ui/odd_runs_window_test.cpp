#include <QDir>
#include <QLabel>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "analysis/runs/files.h"
#include "tests/analysis/fixture.h"
#include "tests/support/odd_json.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/grouped_runs.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// The window on a folder of runs whose run.json holds what hardly anybody expects: all pages stay up, show the good ones, and the
/// list says why the others are not shown.
class OddRunsWindowTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const fs::path good = fs::path(folder_.path().toStdString()) / "good";
    FixtureOptions options;
    options.steps = 40;
    write_fixture(good, options);
    const std::string journal = read_text(good / "journal.jsonl");
    const std::vector<OddJson> versions = odd_versions(nlohmann::json::parse(read_text(good / "run.json")));
    for (size_t i = 0; i < versions.size(); i += 2) {
      const fs::path directory = good.parent_path() / ("odd-" + std::to_string(i));
      fs::create_directories(directory);
      std::ofstream(directory / "journal.jsonl") << journal;
      std::ofstream(directory / "run.json") << versions[i].object.dump();
    }
  }

  void every_page_stays_up() {
    ui::Session session(folder_.path());
    QVERIFY(!session.runs()->loading() || QSignalSpy(session.runs(), &ui::RunList::loaded).wait(60000));
    ui::RunList& runs = *session.runs();
    QVERIFY(runs.run(folder_.filePath("good")));
    int unreadable = 0;
    for (int row = 0; row < runs.rowCount(); ++row) {
      const QString problem = runs.index(row).data(ui::RunList::ProblemRole).toString();
      if (problem.isEmpty()) continue;
      ++unreadable;
      QVERIFY2(problem.contains("run.json") && !problem.contains('\n') && !problem.contains("json.exception"), qPrintable(problem));
    }
    QVERIFY2(unreadable > 50 && unreadable < runs.rowCount() - 1, qPrintable(QString::number(unreadable)));
    ui::GroupedRuns grouped(&runs);
    runs.setFilter("mixer:attention seed:1 data:x");
    QCoreApplication::processEvents();
    runs.setFilter({});
    QTRY_COMPARE(runs.shown()->runs().size(), runs.runs().size());  // all that can be read are, to the end
    for (const ui::Page& page : ui::pages()) {
      const std::unique_ptr<QWidget> widget(page.make(session, nullptr));
      widget->resize(1000, 700);
      widget->show();
      for (int row = 0; row < runs.rowCount(); row += 20) {
        session.setCurrentRun(runs.index(row).data(ui::RunList::DirectoryRole).toString());
        QCoreApplication::processEvents();
      }
      QVERIFY(!widget->grab().isNull());
    }
  }

  /// What a journal lost is told beside the run and where runs are compared.
  void a_hole_is_shown() {
    const QTemporaryDir folder;
    for (const int64_t seed : {1, 2}) {
      FixtureOptions options;
      options.seed = seed;
      write_fixture(folder.filePath(QString::number(seed)).toStdString(), options);
    }
    const fs::path file = folder.filePath("2").toStdString() + "/journal.jsonl";
    std::string journal = read_text(file);
    journal[journal.find("\"type\":\"step\",\"step\":101,") + 60] ^= 1;
    std::ofstream(file) << journal;
    ui::Session session(folder.path());
    QVERIFY(!session.runs()->loading() || QSignalSpy(session.runs(), &ui::RunList::loaded).wait());
    QTRY_COMPARE(session.runs()->shown()->runs().size(), size_t{2});
    session.setCurrentRun(folder.filePath("2"));
    const QString told = QStringLiteral("of the journal, 1 record behind step 100 and before step 102 is damaged or missing");
    QVERIFY(session.runs()->index(session.runs()->row(folder.filePath("2"))).data(Qt::ToolTipRole).toString().contains(told));
    for (const ui::Page& page : ui::pages()) {
      if (page.id != "runs" && page.id != "compare") continue;
      const std::unique_ptr<QWidget> widget(page.make(session, nullptr));
      widget->show();
      QCoreApplication::processEvents();
      const QList<QLabel*> labels = widget->findChildren<QLabel*>();
      QVERIFY2(std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(told); }),
               qPrintable(page.id));
    }
  }

 private:
  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::OddRunsWindowTest)
#include "odd_runs_window_test.moc"
