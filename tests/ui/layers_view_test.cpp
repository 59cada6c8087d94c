// The stack of layers as blocks, on the page on which a run is configured: driven by keys and clicks.
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

#include "tests/ui/configure_page_fixture.h"
#include "ui/configure/layer_groups.h"
#include "ui/configure/layer_list.h"
#include "ui/configure/layers_view.h"
#include "ui/configure/setting_editor.h"
#include "ui/session.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

class LayersViewTest : public QObject {
  Q_OBJECT

  /// The page with its blocks in sight.
  struct Shown : ShownConfigure {
    explicit Shown(const Json& config = Json::object(), QSettings* settings = nullptr)
        : ShownConfigure(QStringLiteral("/nowhere"), settings, {900, 700}) {
      if (!config.empty()) text()->setPlainText(QString::fromStdString(config.dump()));
      if (settings) return;
      QTest::mouseClick(child<QToolButton>("Show the stack of layers as blocks"), Qt::LeftButton);
      if (!QTest::qWaitForWindowActive(page.get())) qFatal("no window");
      list()->setFocus();
    }
    LayerList* list() { return child<LayerList>("Blocks of layers"); }
    QPlainTextEdit* text() { return page->findChild<QPlainTextEdit*>(); }
    Json architecture() { return page->draft().json().at("architecture"); }
    std::string mixers() {
      std::string all;
      const Json groups = architecture().at("layers");
      for (const Json& group : groups)
        all += std::to_string(group.at("repeat").get<int>()) + " " + group.at("mixer").get<std::string>() + ";";
      return all;
    }
    void choose(const char* combo, const char* id) {
      auto* box = child<QComboBox>(combo);
      box->setCurrentIndex(box->findData(QLatin1String(id)));
      Q_EMIT box->activated(box->currentIndex());
    }
    QString says(int row) { return list()->item(row)->data(Qt::AccessibleTextRole).toString(); }
  };

  static Json hybrid(const char* layers) { return {{"architecture", {{"width", 64}, {"heads", 2}, {"layers", layers}}}}; }

 private Q_SLOTS:
  /// Whichever way an architecture is written, reading and writing its groups says the same.
  void groups_read_and_write_the_same_model() {
    for (QString text : {"{'mixer': 'top1_chunk', 'chunk': 32, 'layers': 6, 'heads': 2}", "{'block': 'avey', 'layers': 3}",
                         "{'layers': '3 gated_deltanet, 1 attention(window=64)', 'depth': 8}", "{'width': 64, 'heads': 2}",
                         "{'layers': [{'mixer': 'mamba2', 'block': 'llama'}, {'repeat': 2, 'mixer': 'rwkv7'}], 'block': 'gpt'}",
                         "{'mixer': 'mamba2', 'layers': [{'repeat': 2}, {'repeat': 1, 'mixer': 'attention'}]}"}) {
      const Json architecture = Json::parse(text.replace('\'', '"').toStdString());
      const Json again = LayerGroups::of(architecture).architecture();
      const auto resolved = [](const Json& one) { return to_json(resolve_config({{"architecture", one}}, "test")).at("architecture"); };
      QVERIFY2(resolved(again) == resolved(architecture), again.dump().c_str());
    }
  }

  void a_stack_is_built_by_keys() {
    Shown shown;
    QCOMPARE(shown.list()->count(), 1);
    QTest::keyClick(shown.list(), Qt::Key_Insert);
    shown.choose("Mixer of this block", "gated_deltanet");
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("4 attention;1 gated_deltanet;"));
    shown.list()->setFocus();
    for (int i = 0; i < 2; ++i) QTest::keyClick(shown.list(), Qt::Key_Right, Qt::ControlModifier | Qt::ShiftModifier);
    QTest::keyClick(shown.list(), Qt::Key_Up, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("3 gated_deltanet;4 attention;"));
    QCOMPARE(shown.list()->currentRow(), 0);  // it goes along
    QTest::keyClick(shown.list(), Qt::Key_D, Qt::ControlModifier);
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("3 gated_deltanet;3 gated_deltanet;4 attention;"));
    QTest::keyClick(shown.list(), Qt::Key_Down, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("3 gated_deltanet;4 attention;3 gated_deltanet;"));
    QTest::keyClick(shown.list(), Qt::Key_Delete);
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("3 gated_deltanet;4 attention;"));
    QTest::keyClick(shown.list(), Qt::Key_Delete);  // the last but one: a plain architecture again
    QCOMPARE(shown.architecture().at("layers").get<int>(), 3);
    QCOMPARE(shown.architecture().at("mixer").get<std::string>(), std::string("gated_deltanet"));
    QTest::keyClick(shown.list(), Qt::Key_Z, Qt::ControlModifier);
    QTest::keyClick(shown.list(), Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("3 gated_deltanet;4 attention;3 gated_deltanet;"));
    for (int i = 0; i < 2; ++i) QTest::keyClick(shown.list(), Qt::Key_Delete);
    QTest::keyClick(shown.list(), Qt::Key_Delete);  // a model has layers
    QCOMPARE(shown.list()->count(), 1);
  }

  void a_block_is_dragged_to_its_place() {
    Shown shown(hybrid("1 attention, 2 mamba2, 3 gated_deltanet"));
    const auto at = [&](int row) { return shown.list()->visualItemRect(shown.list()->item(row)).center(); };
    QWidget* surface = shown.list()->viewport();
    QTest::mousePress(surface, Qt::LeftButton, {}, at(0));
    QTest::mouseMove(surface, at(1));
    QTest::mouseMove(surface, at(2));
    QTest::mouseRelease(surface, Qt::LeftButton, {}, at(2));
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("2 mamba2;3 gated_deltanet;1 attention;"));
    QTest::mouseMove(surface, at(0));  // nothing is held any more
    QCOMPARE(QString::fromStdString(shown.mixers()), QString("2 mamba2;3 gated_deltanet;1 attention;"));
  }

  void settings_belong_to_their_block() {
    Shown shown(hybrid("1 attention, 1 attention"));
    shown.list()->setCurrentRow(1);
    for (SettingEditor* editor : shown.page->layers()->findChildren<SettingEditor*>()) {
      if (editor->field().setting.name != "window") continue;
      auto* line = editor->findChild<QLineEdit*>();
      line->setFocus();
      line->selectAll();
      QTest::keyClicks(line, "64");
    }
    QVERIFY(!shown.architecture().at("layers")[0].contains("window"));
    QCOMPARE(shown.architecture().at("layers")[1].at("window").get<int>(), 64);
    QVERIFY2(shown.says(1).contains("window 64"), qPrintable(shown.says(1)));
  }

  void a_block_that_cannot_be_says_why() {
    Shown shown(hybrid("1 attention, 1 top1_chunk(chunk=0), 1 nonsense"));
    QCOMPARE(shown.list()->count(), 3);
    QVERIFY2(!shown.says(0).contains("expected"), qPrintable(shown.says(0)));
    QVERIFY2(shown.says(1).contains("chunk is 0") && shown.says(1).contains("expected"), qPrintable(shown.says(1)));
    QVERIFY2(shown.says(2).contains("nonsense") && shown.says(2).contains("expected"), qPrintable(shown.says(2)));
    shown.list()->setCurrentRow(2);
    shown.choose("Mixer of this block", "mamba2");
    QVERIFY2(!shown.says(2).contains("expected"), qPrintable(shown.says(2)));
  }

  /// What is written as text is seen as blocks, and the other way round.
  void text_and_blocks_are_one() {
    Shown shown(hybrid("3 gated_deltanet, 1 attention"));
    shown.child<QSpinBox>("Layers in all")->setValue(8);
    QCOMPARE(Json::parse(shown.text()->toPlainText().toStdString()).at("architecture").at("depth").get<int>(), 8);
    const auto order = [&] {
      for (QWidget* each : shown.page->findChildren<QWidget*>())
        if (each->accessibleName() == "Order of the layers") return each->accessibleDescription();
      return QString();
    };
    QCOMPARE(order().count("Gated DeltaNet"), 6);
    QCOMPARE(order().count("Attention"), 2);
    shown.text()->setPlainText(QString("{'architecture': {'layers': '2 mamba2, 1 attention', 'depth': 3}}").replace('\'', '"'));
    QCOMPARE(shown.list()->count(), 2);
    QCOMPARE(order(), QString("Mamba-2, Mamba-2, Attention"));
    shown.text()->setPlainText(
        QString("{'architecture': {'layers': '2 mamba2, 1 ('}}").replace('\'', '"'));  // half written: no blocks, no crash
    QCOMPARE(shown.list()->count(), 0);
  }

  void a_whole_architecture_has_no_blocks_to_add() {
    Shown shown(Json{{"architecture", {{"block", "avey"}, {"layers", 3}}}});
    QVERIFY(!shown.child<QToolButton>("Add block")->isEnabled());
    QVERIFY(shown.says(0).contains("Avey"));
  }

  void view_and_block_survive_a_restart() {
    const QTemporaryDir state;
    const QString file = state.filePath("workbench.ini");
    {
      QSettings settings(file, QSettings::IniFormat);
      Shown shown(hybrid("1 attention, 1 mamba2"), &settings);
      QTest::mouseClick(shown.child<QToolButton>("Show the stack of layers as blocks"), Qt::LeftButton);
      shown.list()->setCurrentRow(1);
    }
    QSettings settings(file, QSettings::IniFormat);
    Shown shown(Json::object(), &settings);
    QVERIFY(shown.list()->isVisible());
    QCOMPARE(shown.list()->currentRow(), 1);
    QCOMPARE(shown.child<QComboBox>("Mixer of this block")->currentData().toString(), QString("mamba2"));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::LayersViewTest)
#include "layers_view_test.moc"
