// A study is made of the configuration being written, counted, queued and trained by the real program.
#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QToolButton>

#include "analysis/studies/study.h"
#include "tests/app/program.h"
#include "tests/ui/configure_page_fixture.h"
#include "ui/configure/sweep.h"
#include "ui/configure/sweep_view.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/studies/lines_table.h"
#include "ui/studies/own_studies.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

class SweepViewTest : public QObject {
  Q_OBJECT

  Program program_;

  struct Shown : ShownConfigure {
    using ShownConfigure::ShownConfigure;
    void type(const QString& field, const QString& text) { ShownConfigure::type(child<QLineEdit>(field), text); }
    /// Types a setting's whole name into an axis.
    void vary(const QString& axis, const QString& setting) {
      ShownConfigure::type(child<QComboBox>(axis + ", setting")->lineEdit(), setting);
    }
    void open() { QTest::mouseClick(child<QToolButton>("Many runs: axes, seeds and tuning over this config"), Qt::LeftButton); }
    void add() { QTest::mouseClick(push("+ Add axis"), Qt::LeftButton); }
    QPushButton* push(const QString& text) {
      for (QPushButton* each : page->findChildren<QPushButton*>())
        if (each->text() == text) return each;
      return nullptr;
    }
    QString takes() { return child<QLabel>("What the study takes")->text(); }
  };

  static std::vector<FormField> fields() { return ConfigDraft().fields(); }

 private Q_SLOTS:
  void initTestCase() { program_.share_folders(); }

  void ranges_become_values() {
    Json sweep = empty_sweep();
    sweep["axes"] = {{{"setting", "architecture.width"}, {"kind", "log"}, {"from", "8"}, {"to", "64"}, {"count", 4}},
                     {{"setting", "training.learning_rate"}, {"kind", "log"}, {"from", "0.001"}, {"to", "0.1"}, {"count", 3}},
                     {{"setting", "training.weight_decay"}, {"kind", "range"}, {"from", "0"}, {"to", "0.2"}, {"count", 3}},
                     {{"setting", "architecture.layers"}, {"kind", "values"}, {"values", "4; 3 gated_deltanet, 1 attention"}}};
    const Json file = study_file(sweep, Json::object(), fields());
    QVERIFY2(file["axes"][0]["values"] == Json({8, 16, 32, 64}), file["axes"][0].dump().c_str());  // whole numbers
    QVERIFY2(file["axes"][1].contains("log_range"), file["axes"][1].dump().c_str());
    QVERIFY2(file["axes"][2]["values"] == Json({0.0, 0.1, 0.2}), file["axes"][2].dump().c_str());
    QVERIFY2(file["axes"][3]["values"] == Json::array({4, "3 gated_deltanet, 1 attention"}), file["axes"][3].dump().c_str());
    const Study study = parse_study(file.dump(), "test", "sweep");
    QCOMPARE(study.axes[1].values.size(), size_t{3});
    sweep["axes"][0]["from"] = "eight";
    QVERIFY_THROWS_EXCEPTION(UsageError, study_file(sweep, Json::object(), fields()));
  }

  void equal_and_branches_go_into_the_file() {
    Json sweep = empty_sweep();
    sweep["axes"] = {{{"setting", "architecture.layers"}, {"kind", "values"}, {"values", "1, 2"}}};
    QVERIFY(!study_file(sweep, Json::object(), fields()).contains("equal") &&
            !study_file(sweep, Json::object(), fields()).contains("branches"));
    sweep.update(
        {{"equal", "parameters"}, {"equal_by", "architecture.width, architecture.heads"}, {"branches", "0.5, 8, 4096 tokens, 3.4 nats"}});
    Study study = parse_study(study_file(sweep, Json::object(), fields()).dump(), "test", "sweep");
    QVERIFY(study.equal && study.equal->what == StudyEqual::What::parameters);
    QCOMPARE(study.equal->by, (std::vector<std::string>{"architecture.width", "architecture.heads"}));
    using At = StudyBranch::At;
    QVERIFY((study.branches == std::vector<StudyBranch>{{At::step, 0.5}, {At::step, 8}, {At::tokens, 4096}, {At::loss, 3.4}}));
    sweep["equal"] = "tokens";  // by steps: the settings of before are not asked
    study = parse_study(study_file(sweep, Json::object(), fields()).dump(), "test", "sweep");
    QVERIFY(study.equal && study.equal->what == StudyEqual::What::tokens);
  }

  /// Added, altered and taken out, and all of it taken back with Ctrl+Z, also from within a line of text.
  void changes_are_undone_and_redone() {
    Shown shown(program_.path("runs"));
    shown.page->findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(Program::config().dump()));
    shown.open();
    shown.page->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(shown.page.get()));
    const auto sweep = [&] { return shown.page->sweep()->sweep(); };
    const Json empty = sweep();
    shown.add();
    shown.vary("Axis 1", "architecture.width");
    const Json proposed = sweep();
    shown.type("Axis 1, values", "8, 16");
    const Json typed = sweep();
    QVERIFY(typed != proposed);
    auto* equal = shown.child<QComboBox>("What all runs have equal");
    equal->setFocus();
    QTest::keyClicks(equal, "p");
    QTRY_COMPARE(sweep()["equal"].get<std::string>(), std::string("parameters"));
    QTest::mouseClick(shown.child<QToolButton>("Remove Axis 1"), Qt::LeftButton);
    QVERIFY(sweep()["axes"].empty());
    const auto key = [&](int which) { QTest::keyClick(QApplication::focusWidget(), static_cast<Qt::Key>(which), Qt::ControlModifier); };
    key(Qt::Key_Z);
    QCOMPARE(sweep()["axes"].size(), size_t{1});
    key(Qt::Key_Z);
    QVERIFY(sweep() == typed);
    shown.page->sweep()->findChild<QLineEdit*>()->setFocus();
    key(Qt::Key_Z);
    QVERIFY2(sweep() == proposed, sweep().dump().c_str());
    for (int i = 0; i < 5; ++i) key(Qt::Key_Z);
    QVERIFY2(sweep() == empty, sweep().dump().c_str());
    for (int i = 0; i < 9; ++i) key(Qt::Key_Y);
    QVERIFY(sweep()["axes"].empty());
    QCOMPARE(sweep()["equal"].get<std::string>(), std::string("parameters"));
  }

  void settings_propose_values_around_their_own() {
    for (const FormField& field : fields()) {
      Json sweep = empty_sweep();
      const Json axis = proposed_axis(field, field.setting.default_value);
      sweep["axes"] = Json::array({axis});
      if (dotted_name(field).find('.') == std::string::npos || field.setting.name == "seed" || axis.value("values", "") == "") continue;
      const Study study = parse_study(study_file(sweep, Json::object(), fields()).dump(), "test", "sweep");
      QVERIFY2(!study.axes.front().values.empty(), dotted_name(field).c_str());
    }
    for (const FormField& field : fields())
      if (field.pointer == "/training/learning_rate") QCOMPARE(proposed_axis(field, 0.004)["kind"].get<std::string>(), std::string("log"));
  }

  /// Typed as a person does, told what it takes, mistakes at their axis.
  void a_sweep_is_counted_before_it_is_queued() {
    Shown shown(program_.path("runs"));
    shown.page->findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(Program::config().dump()));
    shown.open();
    shown.add();
    shown.vary("Axis 1", "architecture.width");
    QCOMPARE(shown.child<QLineEdit>("Axis 1, values")->text(), QString("8, 16, 32"));
    shown.type("Axis 1, values", "8, 16");
    shown.type("Seeds", "1, 2, 3");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().startsWith("6 runs"), 20000);
    QVERIFY2(shown.takes().contains("of checkpoints"), qPrintable(shown.takes()));
    const auto click = [&](const QString& text) {
      for (QCheckBox* box : shown.page->findChildren<QCheckBox*>())
        if (box->text().startsWith(text)) QTest::mouseClick(box, Qt::LeftButton, {}, {5, box->height() / 2});
    };
    click("Tune a setting");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().startsWith("12 runs"), 20000);  // four rates and two more seeds, twice
    click("with every seed");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().startsWith("24 runs"), 20000);  // four rates with three seeds, twice
    click("with every seed");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().startsWith("12 runs"), 20000);
    shown.type("Axis 1, values", "");
    QTest::keyClick(shown.child<QLineEdit>("Axis 1, values"), Qt::Key_Backspace);
    QVERIFY(shown.says("expected at least one value"));
    QVERIFY(!shown.push("Queue it")->isEnabled() && !shown.push("Save study file")->isEnabled());
    shown.type("Axis 1, values", "8, eight");
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().contains("eight"), 20000);  // the program's own words
    QVERIFY(!shown.push("Queue it")->isEnabled());
    QTest::mouseClick(shown.child<QToolButton>("Remove Axis 1"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.takes().startsWith("6 runs"), 20000);
  }

  void it_is_kept_queued_and_seen_on_the_page_of_studies() {
    Shown shown(program_.path("runs"));
    shown.page->findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(Program::config().dump()));
    shown.open();
    shown.type("Name of the study", "two widths");
    shown.type("Question of the study", "Which width?");
    shown.add();
    shown.vary("Axis 1", "architecture.width");
    shown.type("Axis 1, values", "8, 16");
    QTRY_VERIFY_WITH_TIMEOUT(shown.push("Queue it") && shown.push("Queue it")->isEnabled(), 20000);
    QSignalSpy shown_pages(&shown.session, &Session::pageRequested);
    QTest::mouseClick(shown.push("Queue it"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(shown_pages.size(), 1, 20000);
    QCOMPARE(shown_pages.first().first().toString(), QString("studies"));
    QVERIFY(own_studies().join(' ').contains("two-widths.json"));
    const auto status = [&] { return program_.run({"--json", "study", "status", program_.path("runs/two-widths")}).json(); };
    QTRY_VERIFY_WITH_TIMEOUT(status().value("complete", false), 120000);
    QCOMPARE(static_cast<int>(status().at("runs").size()), 2);
    const Page* entry = nullptr;
    for (const Page& each : ui::pages()) entry = each.id == "studies" ? &each : entry;
    const std::unique_ptr<QWidget> studies(entry->make(shown.session, nullptr));
    studies->resize(1000, 700);
    studies->show();
    LinesTable* table = nullptr;
    for (LinesTable* each : studies->findChildren<LinesTable*>())
      if (each->accessibleName() == "Studies") table = each;
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->index(0, 0).data().toString(), QString("two-widths"), 20000);
    QCOMPARE(table->model()->index(0, 2).data().toString(), QString("2 of 2"));
    QTRY_VERIFY_WITH_TIMEOUT(program_.run({"--json", "queue", "list"}).json()[0]["worker"].is_null(), 60000);
  }

  void the_sweep_survives_a_restart() {
    const QTemporaryDir state;
    const QString file = state.filePath("workbench.ini");
    {
      QSettings settings(file, QSettings::IniFormat);
      Shown shown(program_.path("runs"), &settings);
      shown.open();
      shown.type("Name of the study", "kept");
      shown.add();
      shown.vary("Axis 1", "training.learning_rate");
    }
    QSettings settings(file, QSettings::IniFormat);
    Shown shown(program_.path("runs"), &settings);
    QVERIFY(shown.page->sweep()->isVisible());
    const Json sweep = shown.page->sweep()->sweep();
    QCOMPARE(sweep["name"].get<std::string>(), std::string("kept"));
    QCOMPARE(sweep["axes"][0]["setting"].get<std::string>(), std::string("training.learning_rate"));
    QCOMPARE(sweep["axes"][0]["kind"].get<std::string>(), std::string("log"));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::SweepViewTest)
#include "sweep_view_test.moc"
