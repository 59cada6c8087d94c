#include <signal.h>

#include <QAccessible>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSpinBox>
#include <QTabWidget>
#include <QTableWidget>
#include <QToolButton>
#include <QWheelEvent>

#include "analysis/inspection/inspector.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/tasks/scored_items.h"
#include "tests/analysis/trained_run.h"
#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/ticks.h"
#include "ui/inspect/beside_run.h"
#include "ui/inspect/helper_text.h"
#include "ui/inspect/loss_strip.h"
#include "ui/inspect/token_text.h"
#include "ui/inspect/what_if_panel.h"

namespace saccade::test {

using namespace saccade::ui;

/// Texts of one's own and what-ifs on the Inspect page, over real runs and the real helper process.
class InspectHelperTest : public QObject {
  Q_OBJECT

  std::unique_ptr<TinyCorpus> corpus_;
  QTemporaryDir trained_;

  /// Trained once, copied to where it is looked at.
  QString run_of(const QString& mixer) {
    const QString directory = trained_.filePath(mixer);
    if (!QDir(directory).exists()) work_on(directory.toStdString(), tiny_config(mixer.toStdString()));
    return directory;
  }
  struct Window : PageOnRuns {
    Window(const std::vector<QString>& runs, const QSize& size = {1100, 720})
        : PageOnRuns("inspect", {}, size, [&](const QString& folder) {
            for (const QString& run : runs)
              std::filesystem::copy(run.toStdString(), (folder + "/" + QFileInfo(run).fileName()).toStdString(),
                                    std::filesystem::copy_options::recursive);
          }) {
      directory = QFileInfo(PageOnRuns::directory({})).path() + "/" + QFileInfo(runs.front()).fileName();
      session().setCurrentRun(directory);
    }
    FigureView* map() {
      for (FigureView* view : widget().findChildren<FigureView*>())
        if (view->isVisible() && view->figure().map && view->figure().id != "captured-heads" &&
            (view->figure().map->rows > 4 || view->figure().id == "maxsim"))
          return view;
      return nullptr;
    }
    QString said() {
      for (const QLabel* label : widget().findChildren<QLabel*>())
        if (label->accessibleName() == "What the change does to the loss") return label->isVisible() ? label->text() : QString();
      return {};
    }
    bool says(const QString& part) {
      for (const QLabel* label : widget().findChildren<QLabel*>())
        if (label->isVisible() && label->text().contains(part)) return true;
      return false;
    }
    void type(const QString& text) {
      choose(1);
      auto* field = child<QPlainTextEdit>("Text to type or paste");
      field->setFocus();
      field->clear();
      QTest::keyClicks(field, text);
      QTest::keyClick(field, Qt::Key_Return, Qt::ControlModifier);
    }
    void choose(int source) {
      auto* box = child<QComboBox>("Text to inspect");
      box->setCurrentIndex(source);
      Q_EMIT box->activated(source);
    }
    TokenText* text() { return widget().findChild<TokenText*>(); }
    QTabWidget* tabs() { return widget().findChild<QTabWidget*>(); }
    HelperText* helper() { return widget().findChild<HelperText*>(); }
    QString directory;
  };

 private Q_SLOTS:
  void initTestCase() { corpus_ = std::make_unique<TinyCorpus>(); }

  void a_typed_text_is_read() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    window.type("the cat sat on the cat");
    QTRY_COMPARE_WITH_TIMEOUT(window.map() ? window.map()->figure().map->rows : 0, int64_t(22), 30000);
    QCOMPARE(window.text()->text(0, 99), QString("the cat sat on the cat"));
    window.session().setQuery(17);
    Inspector inspector(window.directory.toStdString());
    inspector.read(typed_text(inspector.tokenizer(), "the cat sat on the cat", 100));
    const double loss = static_cast<double>(inspector.capture().token_losses[17]);
    const QString told = window.widget().findChild<LossStrip*>()->summary();
    QVERIFY2(told.startsWith("Query 17: loss ") && std::abs(told.split(' ').value(3).toDouble() - loss) < 0.01, qPrintable(told));
    window.tabs()->setCurrentIndex(1);
    auto* table = window.child<QTableWidget>("Most likely next tokens");
    QTRY_VERIFY_WITH_TIMEOUT(table->isVisible(), 30000);
    QCOMPARE(table->rowCount(), 11);
    QCOMPARE(table->item(0, 0)->text(), QString("next: “ ”"));
    const auto predicted = inspector.predictions(17, 1);
    QCOMPARE(table->item(1, 0)->text(), QStringLiteral("“%1”").arg(QString::fromStdString(predicted.top[0].piece)));
    window.shoot("inspect-typed");
  }

  void what_ifs_by_keys_data() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"attention", "top1_chunk", "top1_element", "mamba2", "avey"}) QTest::newRow(mixer) << mixer;
  }
  void what_ifs_by_keys() {
    QFETCH(QString, mixer);
    Window window({run_of(mixer)});
    QTRY_VERIFY(window.map());
    window.session().setHead(1, 0);
    window.session().setQuery(40);
    FigureView* map = window.map();
    map->setFocus();
    auto* kinds = window.child<QComboBox>("What the query is to do otherwise");
    QCOMPARE(kinds->count(), mixer == "avey" ? 2 : 1);
    if (mixer == "avey") {  // splits are forced for all layers, or left out of one
      kinds->setCurrentIndex(1);
      Q_EMIT kinds->activated(1);
    }
    auto* source = window.child<QSpinBox>("Source of the what-if");
    const int proposed = source->value();
    QTest::keyClick(map, proposed > source->minimum() ? Qt::Key_Comma : Qt::Key_Period);
    QTest::keyClick(map, proposed > source->minimum() ? Qt::Key_Period : Qt::Key_Comma);
    QCOMPARE(source->value(), proposed);
    QTest::keyClick(map, Qt::Key_W);
    QTRY_VERIFY_WITH_TIMEOUT(!window.said().isEmpty(), 30000);
    QCOMPARE(window.tabs()->currentIndex(), 1);
    Inspector inspector(window.directory.toStdString());
    const Run run(window.directory.toStdString());
    inspector.read({"sample", run.captures(run.capture_steps().back()).front().tokens});
    const bool force = mixer.startsWith("top1");
    const CounterfactualResult expected =
        inspector.change({force ? Counterfactual::Kind::force : Counterfactual::Kind::mask, 1, 0, 40, proposed}, 40, 10);
    const double after = expected.losses[40], before = static_cast<double>(inspector.capture().token_losses[40]);
    QVERIFY(std::abs(after - before) > 0);
    static const QRegularExpression numbers("loss ([0-9.]+) → ([0-9.]+) nats");
    const auto match = numbers.match(window.said());
    QVERIFY2(match.hasMatch(), qPrintable(window.said()));
    QVERIFY(std::abs(match.captured(1).toDouble() - before) < 0.01);
    QVERIFY(std::abs(match.captured(2).toDouble() - after) < 0.01);
    QVERIFY(window.widget().findChild<LossStrip*>()->summary().contains("with the change"));
    window.shoot("inspect-what-if-" + mixer);
    QTest::keyClick(window.map(), Qt::Key_Escape);
    QVERIFY(window.said().isEmpty());
    QVERIFY(!window.widget().findChild<LossStrip*>()->summary().contains("with the change"));
  }

  void what_the_model_reads_changes_nothing() {
    Window window({run_of("top1_chunk")});
    QTRY_VERIFY(window.map());
    window.session().setQuery(40);
    const Run run(window.directory.toStdString());
    const Capture capture = run.captures(run.capture_steps().back()).front();
    const auto own = reads_of(capture, 0, 0, 40).chosen_candidates.at(0);
    window.tabs()->setCurrentIndex(1);
    window.child<QSpinBox>("Source of the what-if")->setValue(static_cast<int>(own));
    for (auto* button : window.widget().findChildren<QPushButton*>())
      if (button->text() == "&Try") QTest::mouseClick(button, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(window.says("Nothing changes"), 30000);
  }

  /// Captured of a task, a sample is looked at where something is asked, and a what-if is over the answers alone.
  void captured_symbols_say_what_is_asked() {
    const QString trained = trained_.filePath("mqar");
    work_on(trained.toStdString(), resolve_config(tiny_symbol_run(), "mqar"));
    Window window({trained});
    QTRY_VERIFY(window.map());
    const Run run(window.directory.toStdString());
    const Capture capture = run.captures(run.capture_steps().back()).front();
    const auto [query, token] = *capture.asked->rbegin();
    QVERIFY(window.says(QStringLiteral("Query %1 ").arg(query)));
    const QLabel* asked = window.child<QLabel>("asked for");
    QVERIFY(asked->isVisible());
    const QString loss = short_number(static_cast<double>(capture.token_losses.at(static_cast<size_t>(query))));
    QCOMPARE(asked->text(), QStringLiteral("“%1 ” · loss %2 nats").arg(token).arg(loss));
    QVERIFY(window.child<QLabel>("known answer")->text().startsWith("at "));
    QVERIFY(!window.map()->figure().map->known.empty());
    window.session().setQuery(0);
    QTRY_VERIFY(!asked->isVisible());
    window.session().setQuery(static_cast<int>(capture.asked->begin()->first));
    QTRY_VERIFY(asked->isVisible());
    QTest::keyClick(window.map(), Qt::Key_W);
    QTRY_VERIFY_WITH_TIMEOUT(window.says(QStringLiteral("Mean over 2 queries from %1 on").arg(capture.asked->begin()->first)), 30000);
  }

  void a_killed_helper_is_one_message_and_starts_again() {
    Window window({run_of("top1_chunk")});
    QTRY_VERIFY(window.map());
    window.session().setQuery(40);
    window.tabs()->setCurrentIndex(1);
    auto* table = window.child<QTableWidget>("Most likely next tokens");
    QTRY_VERIFY_WITH_TIMEOUT(table->isVisible(), 30000);
    QSignalSpy failed(&window.session(), &Session::failed);
    const auto process = static_cast<pid_t>(window.helper()->client()->process());
    QVERIFY(process > 0);
    ::kill(process, SIGKILL);
    QTRY_COMPARE(failed.size(), 1);
    QVERIFY2(failed[0][0].toString().contains("The next request starts another"), qPrintable(failed[0][0].toString()));
    QVERIFY(window.map());
    QTest::keyClick(window.map(), Qt::Key_W);
    QTRY_VERIFY_WITH_TIMEOUT(!window.said().isEmpty(), 30000);
    QCOMPARE(failed.size(), 1);
    QCOMPARE(window.helper()->client()->startedProcesses(), 2);
  }

  void a_helper_that_takes_too_long_is_ended() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    window.helper()->client()->setPatience(1);
    QSignalSpy failed(&window.session(), &Session::failed);
    QTest::keyClick(window.map(), Qt::Key_W);
    QTRY_COMPARE(failed.size(), 1);
    QVERIFY2(failed[0][0].toString().contains("took longer"), qPrintable(failed[0][0].toString()));
    QCOMPARE(window.helper()->client()->process(), qint64(0));
  }

  void known_answers_are_marked_on_the_map() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    window.choose(3);
    window.child<QSpinBox>("Length of the task in bytes")->setValue(40);
    QTRY_VERIFY_WITH_TIMEOUT(window.map() && !window.map()->figure().map->known.empty(), 30000);
    const auto marked = window.map()->figure().map->known;
    const QString text = window.text()->text(0, 999);
    const auto equals = text.indexOf(" = ") + 3, letters = text.indexOf(' ') + 1;
    QCOMPARE(marked.front()[0], int64_t(equals - 1));
    QCOMPARE(marked.front()[1], int64_t(letters));
    for (const auto& cell : marked) QCOMPARE(text[static_cast<int>(cell[0]) + 1], text[static_cast<int>(cell[1])]);
    window.shoot("inspect-task");
  }

  void a_click_on_the_map_proposes_the_source() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    window.session().setQuery(40);
    Q_EMIT window.map()->cellClicked(30, 7);
    QCOMPARE(window.session().query(), 30);
    QCOMPARE(window.child<QSpinBox>("Source of the what-if")->value(), 7);
  }

  void the_text_is_there_again_after_a_restart() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    window.type("once more");
    QTRY_COMPARE_WITH_TIMEOUT(window.map() ? window.map()->figure().map->rows : 0, int64_t(9), 30000);
    window.tabs()->setCurrentIndex(1);
    std::unique_ptr<QWidget> again;
    for (const Page& page : pages())
      if (page.id == "inspect") again.reset(page.make(window.session(), nullptr));
    again->show();
    QTRY_COMPARE_WITH_TIMEOUT(again->findChild<TokenText*>()->text(0, 99), QString("once more"), 30000);
    QCOMPARE(again->findChild<QTabWidget*>()->currentIndex(), 1);
  }

  void runs_stand_beside_each_other() {
    Window window({run_of("attention"), run_of("top1_chunk")}, {1400, 800});
    QTRY_VERIFY(window.map());
    QVERIFY(window.tabs()->count() == 2);
    window.session().setHead(1, 1);
    window.session().setQuery(30);
    auto* button = window.child<QToolButton>("Runs to show beside this one");
    Q_EMIT button->menu()->aboutToShow();
    QCOMPARE(button->menu()->actions().size(), 1);
    button->menu()->actions().front()->setChecked(true);
    const auto beside = [&] { return window.widget().findChild<BesideRun*>(); };
    QTRY_VERIFY(beside() && beside()->map()->figure().map);
    const Capture& other = *beside()->capture();
    QCOMPARE(beside()->map()->figure().map->rows, int64_t(48));
    const auto own = Run(window.directory.toStdString());
    const Capture main = own.captures(own.capture_steps().back()).front();
    const auto weight = [](const Capture& capture, int64_t query, int64_t source) {
      const CapturedMap& map = require_map(capture, MapKind::weights, 1, 3);
      return map.values[static_cast<size_t>((48 + query) * 48 + source)];
    };
    const auto shown = [&](int64_t query, int64_t source) {
      return beside()->map()->figure().map->values[static_cast<size_t>(query * 48 + source)];
    };
    QCOMPARE(shown(30, 17), weight(other, 30, 17));
    for (auto* each : window.widget().findChildren<QToolButton*>())
      if (each->text() == "di&fference") QTest::mouseClick(each, Qt::LeftButton);
    QVERIFY(beside()->map()->figure().map->diverging);
    QCOMPARE(shown(30, 3), weight(other, 30, 3) - weight(main, 30, 3));
    Q_EMIT beside()->map()->cellClicked(22, 4);
    QCOMPARE(window.session().query(), 22);

    // What is pointed at and looked at in one map is so in the other.
    const QPointF at = QRectF(beside()->map()->rect()).center();
    QTest::mouseMove(beside()->map(), at.toPoint());
    QWheelEvent wheel(at, beside()->map()->mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(beside()->map(), &wheel);
    QVERIFY(window.map()->zoomed());
    QCOMPARE(window.map()->part(), beside()->map()->part());
    QCOMPARE(window.map()->rowPart(), beside()->map()->rowPart());
    window.map()->showAll();
    QVERIFY(!beside()->map()->zoomed());

    QCOMPARE(window.tabs()->count(), 3);
    auto* losses = window.child<QTableWidget>("Tokens whose losses differ most");
    QCOMPARE(losses->rowCount(), 12);
    double before = 1e9;
    for (int row = 0; row < 12; ++row) {
      const int query = losses->item(row, 0)->data(Qt::UserRole).toInt();
      const double difference =
          std::abs(static_cast<double>(main.token_losses[static_cast<size_t>(query)] - other.token_losses[static_cast<size_t>(query)]));
      QVERIFY(difference <= before);
      before = difference;
    }
    window.tabs()->setCurrentIndex(2);
    losses->setCurrentCell(4, 0);
    QCOMPARE(window.session().query(), losses->item(4, 0)->data(Qt::UserRole).toInt());
    window.shoot("inspect-beside");

    window.type("the cat sat");
    QTRY_VERIFY_WITH_TIMEOUT(beside()->map()->figure().map && beside()->map()->figure().map->rows == 11, 30000);
    window.shoot("inspect-beside-typed");
    std::unique_ptr<QWidget> again;
    for (const Page& page : pages())
      if (page.id == "inspect") again.reset(page.make(window.session(), nullptr));
    again->show();
    QTRY_VERIFY_WITH_TIMEOUT(again->findChild<BesideRun*>(), 30000);
    Q_EMIT button->menu()->aboutToShow();
    button->menu()->actions().front()->setChecked(false);
    QTRY_VERIFY(!beside());
    QCOMPARE(window.tabs()->count(), 2);
  }

  /// Of two to four runs: equal tokens stand at equal places of the maps, and one query, one cell and one part are looked at in all.
  void token_axes_are_aligned_data() {
    QTest::addColumn<int>("others");
    QTest::addColumn<QSize>("size");
    for (const int others : {1, 2, 3})
      for (const QSize& size : {QSize(760, 700), QSize(1000, 640), QSize(1540, 1140)})
        QTest::addRow("%d others, %d wide", others, size.width()) << others << size;
  }
  void token_axes_are_aligned() {
    QFETCH(int, others);
    QFETCH(QSize, size);
    Window window({run_of("top1_chunk"), run_of("attention"), run_of("mamba2"), run_of("avey")}, size);
    QTRY_VERIFY(window.map());
    window.session().setHead(0, 0);
    auto* what = window.child<QComboBox>("What the map shows");
    what->setCurrentText("attention (or read) weights");
    Q_EMIT what->activated(what->currentIndex());
    auto* button = window.child<QToolButton>("Runs to show beside this one");
    for (int i = 0; i < others; ++i) {
      Q_EMIT button->menu()->aboutToShow();
      button->menu()->actions().at(i)->setChecked(true);
    }
    const auto panes = [&] {
      QList<FigureView*> views{window.map()};
      for (const BesideRun* run : window.widget().findChildren<BesideRun*>())
        if (run->isVisible() && run->map()->figure().map) views << run->map();
      return views;
    };
    QTRY_COMPARE(panes().size(), 1 + others);
    const auto place = [](FigureView* view) {  // of the plot area in the view, and what it is of the page
      return std::pair(view->plotArea(), view->mapTo(view->window(), view->plotArea().topLeft().toPoint()));
    };
    const auto aligned = [&] {
      QCoreApplication::processEvents();
      const auto [first, at] = place(window.map());
      if (first.isEmpty()) return false;
      for (FigureView* view : panes()) {
        const auto [own, there] = place(view);
        if (std::abs(own.left() - first.left()) > 0.5 || std::abs(own.width() - first.width()) > 0.5) return false;
        if (std::abs(own.height() - first.height()) > 0.5) return false;
        const bool beside = std::abs(there.y() - at.y()) < first.height() / 2, above = std::abs(there.x() - at.x()) < first.width() / 2;
        if ((beside && there.y() != at.y()) || (above && there.x() != at.x())) return false;
      }
      return true;
    };
    const auto told = [&] {
      QString text;
      for (FigureView* view : panes()) {
        const auto [own, there] = place(view);
        text += QString("%1 %2 %3 x %4 at %5 %6\n")
                    .arg(own.left())
                    .arg(own.top())
                    .arg(own.width())
                    .arg(own.height())
                    .arg(there.x())
                    .arg(there.y());
      }
      return text;
    };
    QTRY_VERIFY2(aligned(), qPrintable(told()));
    for (FigureView* view : panes()) {
      QCOMPARE(view->figure().map->columns, int64_t{48});
      window.session().setQuery(3);
      Q_EMIT view->cellClicked(20, 4);  // in each
      QCOMPARE(window.session().query(), 20);
    }
    window.shoot(QString("inspect-aligned-%1-%2").arg(others).arg(size.width()));
    window.session().setHead(1, 1);  // other scales of colours: still in place
    QTRY_VERIFY2(aligned(), qPrintable(told()));
    panes().last()->look(std::array{8.0, 24.0}, std::array{8.0, 24.0});
    Q_EMIT panes().last()->zoomChanged();
    QTRY_VERIFY2(aligned(), qPrintable(told()));
    for (FigureView* view : panes()) QCOMPARE(view->part(), (std::optional<std::array<double, 2>>{{8, 24}}));
  }

  /// An item that a run failed, from its score: the text with the right answer, the needle drawn, and the query that is to say it.
  void a_failed_item_is_opened() {
    const QString run = run_of("attention");
    TaskRunOptions options;
    options.items.limit = 12;
    const Task task = at_difficulties(find_task("passkey"), {300}, {}).front();
    const std::atomic<bool> stop = false;
    evaluate_task(run.toStdString(), task, options, {}, stop);
    const FailedItems failed = failed_items(run.toStdString(), task.name, 12);
    QVERIFY(failed.items.size() > 1);
    Window window({run});
    QTRY_VERIFY(window.map());
    nlohmann::json list = nlohmann::json::array();
    for (const AnsweredItem& item : failed.items)
      list.push_back({{"number", item.number}, {"words", "item " + std::to_string(item.number)}});
    const nlohmann::json items{{"run", window.directory.toStdString()}, {"task", task.name}, {"step", 12}, {"items", list}, {"at", 0}};
    window.session().inspectItems(window.directory, 12, QByteArray::fromStdString(items.dump()));
    const std::string& target = failed.items.front().target;
    QTRY_VERIFY_WITH_TIMEOUT(window.text()->text(0, 9999).endsWith("The pass key is " + QString::fromStdString(target)), 60000);
    QTRY_VERIFY_WITH_TIMEOUT(window.map() && window.map()->figure().map && window.map()->figure().map->known.size() == target.size(),
                             30000);
    const int tokens = static_cast<int>(window.map()->figure().map->cells[0] > 0 ? window.map()->figure().map->cells[0]
                                                                                 : window.map()->figure().map->rows);
    QCOMPARE(window.session().query(), tokens - static_cast<int>(target.size()) - 1);
    const auto& known = window.map()->figure().map->known;
    QCOMPARE(known.size(), target.size());
    QCOMPARE(window.text()->text(static_cast<int>(known[0][1]), static_cast<int>(known[0][1]) + 1), QString(QChar(target[0])));
    QVERIFY(window.says("green line: known answer"));
    const auto* answer = window.child<QLabel>("known answer");
    QTRY_VERIFY2(answer->isVisible() && answer->text().startsWith(QString("at %1 · weight ").arg(known[0][1])), qPrintable(answer->text()));
    window.shoot("inspect-failed-item");
    auto* box = window.child<QComboBox>("Failed item");
    QCOMPARE(box->count(), static_cast<int>(failed.items.size()));
    window.session().setQuery(5);
    window.child<QToolButton>("The next failed item")->click();
    QTRY_VERIFY_WITH_TIMEOUT(window.text()->text(0, 9999).endsWith("key is " + QString::fromStdString(failed.items[1].target)), 60000);
    QVERIFY(window.session().query() > 900);  // where that one's answer is to come
    // Another page of the same place begins with it.
    std::unique_ptr<QWidget> again;
    for (const Page& page : pages())
      if (page.id == "inspect") again.reset(page.make(window.session(), nullptr));
    again->resize(900, 700);
    again->show();
    QTRY_VERIFY_WITH_TIMEOUT(
        again->findChild<TokenText*>()->text(0, 9999).endsWith("key is " + QString::fromStdString(failed.items[1].target)), 60000);
  }

  /// Of tasks on symbols the right answer does not follow in the text: it stands first, with the model's share for it.
  void the_right_answer_stands_first() {
    WhatIfPanel panel;
    panel.show();
    const ShownPrediction zero{"0 ", -1, 0.001}, right{"52 ", 4, 0.2}, other{"42 ", 5, 0.3};
    panel.setPredictions(ShownPredictions{{other, right}, zero, right});
    const auto* table = panel.findChild<QTableWidget*>();
    QCOMPARE(table->rowCount(), 4);
    QCOMPARE(table->item(0, 0)->text(), QStringLiteral("right: “52 ”"));
    QCOMPARE(table->item(0, 1)->text(), QStringLiteral("20.0 %"));
    QCOMPARE(table->item(1, 0)->text(), QStringLiteral("next: “0 ”"));
    QCOMPARE(table->item(2, 0)->text(), QStringLiteral("“42 ”"));
    QVERIFY(table->item(0, 0)->font().bold() && !table->item(2, 0)->font().bold());
    ShownChange change;
    change.before = {{other}, zero, right}, change.after = {{other}, zero, ShownPrediction{"52 ", 6, 0.5}};
    panel.setChange(change, 0);
    QCOMPARE(table->rowCount(), 3);
    QCOMPARE(table->item(0, 3)->text(), QStringLiteral("+2.000"));
    const auto says = [&](const char* words) {
      const QList<QLabel*> labels = panel.findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().startsWith(QLatin1String(words)); });
    };
    QVERIFY(says("No loss changes") && !says("Nothing changes"));
    change.after = change.before;
    panel.setChange(change, 0);
    QVERIFY(says("Nothing changes") && !says("No loss changes"));
    change.changed_from = 12, change.mean_over = 1, change.mean_change = 0.25;
    panel.setChange(change, 0);
    QVERIFY(says("Mean over 1 query from 12 on: +0.2500 nats"));
  }

  void dark_at_every_size_data() {
    QTest::addColumn<QSize>("size");
    for (const QSize& size : {QSize(740, 640), QSize(900, 740), QSize(1540, 1140)}) QTest::addRow("%d", size.width()) << size;
  }
  void dark_at_every_size() {
    QFETCH(QSize, size);
    const QPalette before = QApplication::palette();
    darken();
    {
      Window window({run_of("top1_chunk"), run_of("attention")}, size);
      QTRY_VERIFY(window.map());
      window.session().setQuery(40);
      QTest::keyClick(window.map(), Qt::Key_W);
      QTRY_VERIFY_WITH_TIMEOUT(!window.said().isEmpty(), 30000);
      window.shoot(QString("inspect-dark-%1").arg(size.width()));
      if (size.width() >= 900) QCOMPARE(window.cut(), QString());
      const QRect text(window.text()->mapTo(&window.widget(), QPoint()), window.text()->size());
      auto* strip = window.widget().findChild<LossStrip*>();
      QVERIFY(!text.intersects(QRect(strip->mapTo(&window.widget(), QPoint()), strip->size())));
    }
    QApplication::setPalette(before);
  }

  void bad_texts_are_told() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    window.choose(2);
    QVERIFY(!window.map());
    QSignalSpy failed(&window.session(), &Session::failed);
    auto* path = window.child<QLineEdit>("File to read");
    QTest::keyClicks(path, "/no/such/file");
    QTest::keyClick(path, Qt::Key_Return);
    QTRY_COMPARE_WITH_TIMEOUT(failed.size(), 1, 30000);
    QCOMPARE(failed[0][0].toString(), QString("/no/such/file is no file"));
    window.choose(0);
    QTRY_VERIFY(window.map());
  }

  void a_run_without_checkpoints_says_so() {
    PageOnRuns page("inspect", {FixtureOptions{}});
    page.session().setCurrentRun(page.directory({}));
    auto* tabs = page.widget().findChild<QTabWidget*>();
    tabs->setCurrentIndex(1);
    const auto says = [&] {
      for (const QLabel* label : page.widget().findChildren<QLabel*>())
        if (label->isVisible() && label->text().contains("need a checkpoint")) return true;
      return false;
    };
    QTRY_VERIFY(says());
  }

  void everything_has_a_name() {
    Window window({run_of("attention")});
    QTRY_VERIFY(window.map());
    for (int source = 0; source < 4; ++source) {
      window.choose(source);
      for (const QWidget* each : window.widget().findChildren<QWidget*>())
        if (each->isVisible() && !qobject_cast<QAbstractSpinBox*>(each->parentWidget()) && each->focusPolicy() & Qt::TabFocus &&
            QAccessible::queryAccessibleInterface(const_cast<QWidget*>(each)))
          QVERIFY2(!QAccessible::queryAccessibleInterface(const_cast<QWidget*>(each))->text(QAccessible::Name).isEmpty(),
                   each->metaObject()->className());
    }
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::InspectHelperTest)
#include "inspect_helper_test.moc"
