#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSlider>
#include <QToolButton>

#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/inspect/token_text.h"

namespace saccade::test {

using namespace saccade::ui;

class InspectTest : public QObject {
  Q_OBJECT

  static FigureView* map(PageOnRuns& page) {
    for (FigureView* view : page.widget().findChildren<FigureView*>())
      if (view->figure().map && view->figure().map->rows > 8) return view;
    for (FigureView* view : page.widget().findChildren<FigureView*>())
      if (view->figure().id == "maxsim") return view;
    return nullptr;
  }

 private Q_SLOTS:
  void every_mixer_is_shown_data() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"attention", "top1_element", "top1_chunk", "avey"}) QTest::newRow(mixer) << mixer;
  }
  void every_mixer_is_shown() {
    QFETCH(QString, mixer);
    FixtureOptions options;
    options.mixer = mixer.toStdString();
    PageOnRuns page("inspect", {options});
    page.session().setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    page.session().setQuery(70);
    auto* text = page.widget().findChild<TokenText*>();
    QVERIFY2(text->summary().startsWith("Query 70 "), qPrintable(text->summary()));
    page.shoot("inspect-" + mixer);
    if (mixer == "top1_chunk") {
      auto* chosen = page.child<QPlainTextEdit>("Text of what was chosen");
      QVERIFY(chosen->isVisible());
      QCOMPARE(chosen->toPlainText().size(), 16);
    }
  }

  /// A strip of margins beside the map of what a mixer chooses, on the screen and in what is exported; its bars tell and choose queries.
  void margins_stand_beside_the_map() {
    const FixtureOptions options{.mixer = "top1_chunk"};
    PageOnRuns page("inspect", {options});
    page.session().setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    page.session().setQuery(70);
    FigureView* view = map(page);
    const auto margins = [&] { return view->shownFigure().map->strip; };
    QCOMPARE(margins().size(), size_t(view->figure().map->rows));
    QCOMPARE(view->shownFigure().map->strip_row, int64_t{70});
    const QImage with = figure_picture(view->shownFigure(), FigureStyle::forExport(), 100);
    QToolButton* button = nullptr;
    for (auto* each : page.widget().findChildren<QToolButton*>())
      if (each->text() == "margins") button = each;
    QVERIFY(button && button->isVisible() && button->isChecked());
    Q_EMIT view->cellClicked(40, -1);
    QCOMPARE(page.session().query(), 40);
    button->click();
    QVERIFY(margins().empty());
    QVERIFY(figure_picture(view->shownFigure(), FigureStyle::forExport(), 100) != with);
    page.shoot("inspect-without-margins");
  }

  void log_colours_can_be_chosen() {
    PageOnRuns page("inspect", {FixtureOptions{}});
    page.session().setCurrentRun(page.directory({}));
    QTRY_VERIFY(map(page));
    QVERIFY(!map(page)->figure().map->logarithmic);
    for (auto* button : page.widget().findChildren<QToolButton*>())
      if (button->text() == "log colours") button->click();
    QVERIFY(map(page)->figure().map->logarithmic);
    page.shoot("inspect-log-colours");
  }

  /// The same place in another architecture is what one wants to see.
  void another_run_is_seen_at_the_same_place() {
    const FixtureOptions attention, chunk{.mixer = "top1_chunk"};
    PageOnRuns page("inspect", {attention, chunk});
    Session& session = page.session();
    session.setCurrentRun(page.directory(attention));
    QTRY_VERIFY(map(page));
    session.setHead(1, 2);
    session.setQuery(37);
    session.setCaptureStep(100);
    const auto* step = page.child<QSlider>("Training step of the capture");
    QTRY_COMPARE(step->value(), 0);
    session.setCurrentRun(page.directory(chunk));
    QTRY_VERIFY(map(page));
    const auto titled = [&](const QString& part) {
      for (const QLabel* label : page.widget().findChildren<QLabel*>())
        if (label->text().contains(part)) return true;
      return false;
    };
    QTRY_VERIFY(titled("Top-1 Chunk exact · step 100 · query 37"));
    QVERIFY(titled("Layer 1 · head 2"));
    QCOMPARE(step->value(), 0);
  }

  /// The main map is seen whole, also of mixers whose query card is long, and the text takes what it fills.
  void the_map_is_whole_in_view_data() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"attention", "top1_element", "top1_chunk", "avey"}) QTest::newRow(mixer) << mixer;
  }
  void the_map_is_whole_in_view() {
    QFETCH(QString, mixer);
    FixtureOptions options;
    options.mixer = mixer.toStdString();
    PageOnRuns page("inspect", {options}, {900, 740});  // beside rail and list in a window of 1280 x 800
    page.session().setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    page.session().setQuery(70);
    QCoreApplication::processEvents();
    for (const TwoColumns* columns : page.widget().findChildren<TwoColumns*>()) QTRY_COMPARE(columns->verticalScrollBar()->maximum(), 0);
    const QRect seen(map(page)->mapTo(&page.widget(), QPoint()), map(page)->size());
    QVERIFY(page.widget().rect().contains(seen));
    QVERIFY2(seen.height() > 330, qPrintable(QString::number(seen.height())));
    auto* text = page.widget().findChild<TokenText*>();
    QTRY_VERIFY(text->viewport()->height() <= std::max(text->textHeight() + 2, 60));
    page.shoot("inspect-whole-" + mixer);
  }

  /// Files say by their names what they show, and that they were written.
  void exports_are_named_and_told() {
    const FixtureOptions options;
    PageOnRuns page("inspect", {options});
    page.session().setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    page.session().setHead(1, 2);
    QCOMPARE(map(page)->fileName(), QString("attention-1-step200-prose0-weights-layer1-head2"));
    QSignalSpy noted(&page.session(), &Session::offered);
    const auto views = page.widget().findChildren<FigureView*>();
    for (FigureView* view : views) Q_EMIT view->exported("/there/figure.pdf");
    QCOMPARE(noted.size(), views.size());
    QVERIFY(noted[0][0].toString().contains("/there/figure.pdf"));
  }

  void fits_a_narrow_window() {
    PageOnRuns page("inspect", {FixtureOptions{}});
    page.session().setCurrentRun(page.directory({}));
    QTRY_VERIFY(map(page));
    QVERIFY2(page.widget().minimumSizeHint().width() <= 520, qPrintable(QString::number(page.widget().minimumSizeHint().width())));
    for (const QSize size : {QSize(520, 460), QSize(700, 420), QSize(520, 300)}) {
      page.widget().resize(size);
      QTRY_COMPARE(page.overlapping(), QString());
      page.shoot(QString("inspect-narrow-%1").arg(size.height()));
    }
  }

  void keys_move_query_head_layer_and_step() {
    FixtureOptions options;
    PageOnRuns page("inspect", {options});
    Session& session = page.session();
    session.setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    FigureView* view = map(page);
    session.setQuery(40);
    QTest::keyClick(view, Qt::Key_Right);
    QCOMPARE(session.query(), 41);
    QTest::keyClick(view, Qt::Key_Home);
    QCOMPARE(session.query(), 0);
    QTest::keyClick(view, Qt::Key_Left);
    QCOMPARE(session.query(), 0);
    QTest::keyClick(view, Qt::Key_PageDown);
    QCOMPARE(session.layer(), 1);
    QTest::keyClick(view, Qt::Key_Right, Qt::ShiftModifier);
    QCOMPARE(session.head(), 1);
    QTest::keyClick(view, Qt::Key_Left, Qt::ControlModifier);
    QCOMPARE(session.captureStep(), qint64{100});
    QTRY_COMPARE(page.child<QSlider>("Training step of the capture")->value(), 0);
  }

  void a_click_on_the_text_selects_a_query() {
    FixtureOptions options;
    PageOnRuns page("inspect", {options});
    page.session().setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    auto* text = page.widget().findChild<TokenText*>();
    QTest::mouseClick(text->viewport(), Qt::LeftButton, {}, QPoint(6, 12));
    QCOMPARE(page.session().query(), 0);
  }

  /// A run that has ended captures nothing any more: what can be done instead depends on whether it kept a checkpoint.
  void no_captures_say_what_to_do() {
    FixtureOptions first, second;
    second.seed = 2;
    PageOnRuns page("inspect", {first, second}, {1100, 720}, [](const QString& folder) {
      for (const QString& run : QDir(folder).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
        QDir(folder + "/" + run + "/captures").removeRecursively();
      QDir().mkpath(folder + "/attention-1/checkpoints");
      QFile file(folder + "/attention-1/checkpoints/step-200.h5");
      QVERIFY(file.open(QIODevice::WriteOnly));
    });
    const auto says = [&](const char* words) {
      const auto views = page.widget().findChildren<FigureView*>();
      return std::any_of(views.begin(), views.end(), [&](const FigureView* view) { return view->emptyText().contains(QString(words)); });
    };
    page.session().setCurrentRun(page.directory(first));
    QTRY_VERIFY(says("Its checkpoints can read one"));
    page.session().setCurrentRun(page.directory(second));
    QTRY_VERIFY(says("Choose another run"));
  }

  void nothing_selected_says_what_to_do() {
    PageOnRuns page("inspect", {FixtureOptions{}});
    page.session().setCurrentRun({});
    QTest::qWait(300);  // nothing that was asked for before comes in later
    QVERIFY(!map(page));
    const auto views = page.widget().findChildren<FigureView*>();
    QVERIFY(std::any_of(views.begin(), views.end(),
                        [](const FigureView* view) { return view->isVisible() && view->emptyText().startsWith("Select a run"); }));
    page.shoot("inspect-empty");
  }

  void a_damaged_capture_is_reported() {
    FixtureOptions first, second;
    second.seed = 2;
    PageOnRuns page("inspect", {first, second});
    QTRY_VERIFY(map(page));  // of the current run; the other one is not read yet
    const QString other = page.directory(page.session().currentRun() == page.directory(first) ? second : first);
    const QDir captures(other + "/captures");
    for (const QString& name : captures.entryList(QDir::Files)) {
      QFile file(captures.filePath(name));
      QVERIFY(file.open(QIODevice::WriteOnly));
      file.write("no HDF5");
    }
    QSignalSpy failed(&page.session(), &Session::failed);
    page.session().setCurrentRun(other);
    QTRY_COMPARE_WITH_TIMEOUT(failed.size(), 1, 20000);
    QVERIFY(!failed[0][0].toString().isEmpty());
  }

  void dark_and_small() {
    const QPalette before = QApplication::palette();
    darken();
    FixtureOptions options;
    options.mixer = "top1_chunk";
    PageOnRuns page("inspect", {options}, {800, 560});
    page.session().setCurrentRun(page.directory(options));
    QTRY_VERIFY(map(page));
    page.shoot("inspect-dark-small");
    QApplication::setPalette(before);
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::InspectTest)
#include "inspect_test.moc"
