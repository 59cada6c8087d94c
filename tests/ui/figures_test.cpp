// The page of figures and the command that draws recipes: one paint code for screen and file, kept and written beside the runs.
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPainter>
#include <QPlainTextEdit>
#include <QProcess>
#include <QToolButton>

#include "analysis/figures/recipe.h"
#include "kernels/engine/error.h"
#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/colours.h"
#include "ui/charts/page_painting.h"
#include "ui/figures/figures_page.h"

namespace saccade::test {

using namespace ui;

class FiguresTest : public QObject {
  Q_OBJECT

  static QByteArray content(const QString& file) {
    QFile opened(file);
    return opened.open(QIODevice::ReadOnly) ? opened.readAll() : QByteArray();
  }

  static QToolButton* button(PageOnRuns& page, const QString& name) { return page.child<QToolButton>(name); }
  static QAction* action(PageOnRuns& page, const QString& text) {
    for (QAction* each : page.widget().actions())
      if (each->text() == text) return each;
    return nullptr;
  }
  static QString caption(PageOnRuns& page) { return page.child<QLabel>("Caption")->text(); }
  static QString folder(PageOnRuns& page) { return page.session().runs()->folder() + "/figures"; }

  static FigurePage two_panels() {
    Figure figure{.id = "a", .title = "left", .x = {"step"}, .y = {"loss"}};
    figure.curves.push_back({"one curve", {1, 2, 3}, {3, 2, 1}, {0, 0x72, 0xB2}});
    figure.curves.push_back({"another one", {1, 2, 3}, {3, 2.5, 1.1}, {0xD5, 0x5E, 0}});
    FigurePage page{.id = "two", .title = "Two"};
    page.style.columns = 2;
    page.panels = {figure, figure};
    page.panels[1].y.linear_within = 0.01;
    page.panels[1].curves[1].y = {-3, 0, 2};
    page.caption = "What 50 % of_it is.";
    return page;
  }

 private Q_SLOTS:
  void a_new_figure_is_kept_and_drawn() {
    PageOnRuns page("figures", three_architectures());
    action(page, "New figure")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder(page) + "/figure.json"), 20000);
    QTRY_VERIFY_WITH_TIMEOUT(caption(page).contains("seeds 1, 2"), 20000);
    QVERIFY2(caption(page).contains("Saccade "), qPrintable(caption(page)));
    auto* preview = page.child<QWidget>("The figure on paper");
    QTRY_VERIFY(preview->grab().toImage().pixel(preview->width() / 2, preview->height() / 2) != 0);
    page.shoot("figures");
    auto* runs = page.child<QLineEdit>("Runs");
    runs->setFocus();
    QTest::keyClicks(runs, "mixer:avey");
    QTRY_VERIFY_WITH_TIMEOUT(!caption(page).contains("seeds 1, 2") && caption(page).contains("seed 1"), 20000);
    QCOMPARE(load_recipe((folder(page) + "/figure.json").toStdString()).runs, std::string("mixer:avey"));
    page.child<QComboBox>("Size")->setCurrentIndex(3);  // ICML, one column
    QTRY_COMPARE_WITH_TIMEOUT(load_recipe((folder(page) + "/figure.json").toStdString()).style.width_mm, 82.5, 20000);
  }

  /// What somebody wrote in an editor is not written anew by looking at it; what is changed in the form is kept.
  void a_recipe_that_is_looked_at_stays_as_it_is() {
    const QByteArray written =
        "{\"title\": \"By hand\",\n \"style\": {\"size\": \"icml-one\", \"font\": \"DejaVu Sans\"}, \"panels\": [{\"chart\": \"loss\"}]}\n";
    PageOnRuns page("figures", three_architectures(), {1100, 720}, [&](const QString& runs) {
      QDir(runs).mkdir("figures");
      QFile file(runs + "/figures/hand.json");
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write(written) == written.size());
    });
    QTRY_VERIFY_WITH_TIMEOUT(caption(page).contains("By hand"), 20000);
    QCOMPARE(content(folder(page) + "/hand.json"), written);
    auto* runs = page.child<QLineEdit>("Runs");
    runs->setFocus();
    QTest::keyClicks(runs, "mixer:avey");
    QTRY_VERIFY_WITH_TIMEOUT(content(folder(page) + "/hand.json").contains("mixer:avey"), 20000);
    QCOMPARE(load_recipe((folder(page) + "/hand.json").toStdString()).style.width_mm, 82.5);
  }

  /// A recipe that is edited elsewhere while it is shown: the window follows the file, and never writes over it.
  void a_recipe_that_is_edited_elsewhere_is_followed() {
    PageOnRuns page("figures", three_architectures());
    action(page, "New figure")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(caption(page).contains("seeds 1, 2"), 20000);
    const QString file = folder(page) + "/figure.json";
    const auto edit = [&](const QByteArray& text) {
      QFile opened(file);
      QVERIFY(opened.open(QIODevice::WriteOnly) && opened.write(text) == text.size());
    };
    QSignalSpy noted(&page.session(), &Session::noted);
    const QByteArray edited = "{\"title\": \"Edited\", \"runs\": \"mixer:avey\", \"panels\": [{\"chart\": \"loss\"}]}\n";
    edit(edited);
    QEvent activated(QEvent::WindowActivate);
    QCoreApplication::sendEvent(&page.widget(), &activated);
    QTRY_VERIFY_WITH_TIMEOUT(caption(page).contains("Edited"), 20000);
    QCOMPARE(content(file), edited);
    QCOMPARE(page.child<QLineEdit>("Runs")->text(), QString("mixer:avey"));
    QCOMPARE(noted.size(), 1);
    QVERIFY(noted[0][0].toString().contains("figure.json was changed"));

    edit("{\"title\": \"Edi");  // an editor that has not come further yet
    QTest::keyClick(page.child<QLineEdit>("Runs"), Qt::Key_End);
    QTest::keyClicks(page.child<QLineEdit>("Runs"), " seed:1");
    QTest::qWait(1500);
    QCOMPARE(content(file), QByteArray("{\"title\": \"Edi"));
    edit(edited);
    QTest::keyClicks(page.child<QLineEdit>("Runs"), "0");  // what it said before is nobody else's: the form is kept
    QTRY_VERIFY_WITH_TIMEOUT(content(file).contains("mixer:avey seed:10"), 20000);
  }

  /// Beside the title stands how many runs are shown, and not that their branches are some.
  void branches_are_counted_beside_runs() {
    PageOnRuns page("figures", three_architectures(), {1100, 720}, [](const QString& runs) {
      for (const int steps : {60, 120})
        write_fixture(QString("%1/avey-1/branches/step-%2").arg(runs).arg(steps).toStdString(), {.mixer = "avey", .steps = steps});
    });
    action(page, "New figure")->trigger();
    const auto told = [&] {
      for (const QLabel* label : page.widget().findChildren<QLabel*>())
        if (label->text().contains(" mm")) return label->text();
      return QString();
    };
    QTRY_VERIFY2_WITH_TIMEOUT(told().startsWith("4 runs and 2 branches · "), qPrintable(told()), 20000);
  }

  /// What is exported is what the same recipe gives on the command line, to the byte where files hold no dates.
  void the_window_and_the_command_line_write_the_same() {
    PageOnRuns page("figures", three_architectures());
    action(page, "New figure")->trigger();
    for (QCheckBox* box : page.widget().findChildren<QCheckBox*>())
      if (QStringList{"SVG", "PNG"}.contains(box->text())) QTest::mouseClick(box, Qt::LeftButton, {}, {5, box->height() / 2});
    QTRY_VERIFY_WITH_TIMEOUT(content(folder(page) + "/figure.json").contains("png"), 20000);
    action(page, "Export")->trigger();
    for (const char* kind : {"pdf", "svg", "png", "csv", "tex"})
      QTRY_VERIFY2_WITH_TIMEOUT(QFileInfo::exists(folder(page) + "/figure." + kind), kind, 30000);
    const QTemporaryDir other;
    QProcess program;
    program.start(qEnvironmentVariable("SACCADE_BINARY"), {"export", "--recipe", folder(page) + "/figure.json", "--out", other.path()});
    QVERIFY(program.waitForFinished(60000));
    QVERIFY2(program.exitCode() == 0, program.readAllStandardError());
    for (const char* kind : {"svg", "png", "csv", "tex"})
      QCOMPARE(content(other.filePath("figure.") + kind), content(folder(page) + "/figure." + kind));
    const QByteArray pdf = content(folder(page) + "/figure.pdf");
    QVERIFY(pdf.contains("/FontFile2") && !pdf.contains("/DCTDecode"));  // fonts are embedded, nothing is a JPEG
    const QByteArray svg = content(folder(page) + "/figure.svg");
    QVERIFY(svg.contains("<text") && svg.contains("width=\"140mm\""));
    const QByteArray csv = content(folder(page) + "/figure.csv");
    QVERIFY(csv.startsWith("panel,curve,x_title,y_title,x,y,low,high\na,"));
    const QByteArray tex = content(folder(page) + "/figure.tex");
    QVERIFY(tex.contains("\\includegraphics[width=140mm]{figure}") && tex.contains("\\caption{") && tex.contains("seeds 1, 2"));
  }

  void all_figures_are_exported_by_a_click() {
    PageOnRuns page("figures", three_architectures());
    QSignalSpy noted(&page.session(), &Session::noted);
    auto* all = button(page, "Export all");
    QVERIFY(!all->isEnabled());
    action(page, "New figure")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder(page) + "/figure.json"), 20000);
    QTest::mouseClick(button(page, "Duplicate"), Qt::LeftButton);
    auto* runs = page.child<QLineEdit>("Runs");
    runs->setFocus();
    QTest::keyClicks(runs, "mixer:avey");
    QTRY_VERIFY_WITH_TIMEOUT(content(folder(page) + "/figure-2.json").contains("avey"), 20000);
    QTest::mouseClick(all, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!noted.empty(), 60000);
    QStringList written;
    for (const char* stem : {"figure", "figure-2"})
      for (const std::string& format : load_recipe((folder(page) + "/figure.json").toStdString()).formats)
        written << folder(page) + "/" + stem + "." + QString::fromStdString(format);
    QVERIFY(written.size() >= 4);
    for (const QString& file : std::as_const(written)) QVERIFY2(!content(file).isEmpty(), qPrintable(file));
    QCOMPARE(noted.first().first().toString(), QString("Wrote %1 files into %2").arg(written.size()).arg(folder(page)));
    QVERIFY(content(folder(page) + "/figure.csv").contains("Transformer++"));
    QVERIFY(!content(folder(page) + "/figure-2.csv").contains("Transformer++"));
  }

  /// Files that were written follow their runs to the end; recipes that no file was made of stay without.
  void files_are_drawn_anew_when_a_run_ends() {
    FixtureOptions done, going;
    going.mixer = "avey";
    std::unique_ptr<RunWriter> writer;
    PageOnRuns page("figures", {done}, {1100, 720}, [&](const QString& runs) {
      const std::filesystem::path directory = (runs + "/avey-1").toStdString();
      writer = std::make_unique<RunWriter>(RunWriter::create(directory, fixture_info(going)));
      writer->set_state(RunState::running, 0);
      for (int64_t step = 1; step <= 100; ++step) {
        writer->add(fixture_step(going, step));
        if (step % 20 == 0) writer->add(fixture_evaluation(going, step));
      }
    });
    QSignalSpy noted(&page.session(), &Session::noted);
    const QString csv = folder(page) + "/figure.csv";
    const auto last_tokens = [&](const QByteArray& text) {
      double last = 0;
      for (const QByteArray& line : text.split('\n'))
        if (line.contains("Avey")) last = std::max(last, line.split(',').value(4).toDouble());
      return last;
    };
    action(page, "New figure")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder(page) + "/figure.json"), 20000);
    QTest::mouseClick(button(page, "Export"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!noted.empty() && QFileInfo::exists(csv), 60000);
    const QByteArray before = content(csv);
    QVERIFY2(last_tokens(before) > 0 && last_tokens(before) <= static_cast<double>(fixture_position(100).tokens), before.constData());
    QTest::mouseClick(button(page, "Duplicate"), Qt::LeftButton);  // never exported
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder(page) + "/figure-2.json"), 20000);
    QTest::qWait(500);
    for (int64_t step = 101; step <= going.steps; ++step) {
      writer->add(fixture_step(going, step));
      if (step % 20 == 0) writer->add(fixture_evaluation(going, step));
    }
    writer->set_state(RunState::finished, going.steps);
    writer->write_results();
    writer.reset();
    QTRY_COMPARE_WITH_TIMEOUT(last_tokens(content(csv)), static_cast<double>(fixture_position(going.steps).tokens), 60000);
    QVERIFY(!QFileInfo::exists(folder(page) + "/figure-2.csv"));
    QCOMPARE(noted.size(), 1);  // nobody asked
  }

  void recipes_of_the_papers_can_be_read_and_written_again() {
    const auto names = shipped_recipes();
    QVERIFY(names.size() >= 25);
    for (const std::string& name : names) {
      const FigureRecipe recipe = load_recipe(find_recipe(name));
      QVERIFY2(!recipe.title.empty() && recipe.source.starts_with("arXiv:"), name.c_str());
      QVERIFY2(parse_recipe(to_json(recipe).dump(), "again", recipe.name) == recipe, name.c_str());
    }
  }

  /// Names stand in the order of panel_charts(): one that is left out would give all behind it the name of another chart.
  void every_chart_has_its_name() {
    PageOnRuns page("figures", three_architectures());
    for (QAction* each : button(page, "New figure")->menu()->actions())
      if (each->text() == "answers-over-length") each->trigger();
    auto* chart = page.child<QComboBox>("Chart");
    QTRY_COMPARE_WITH_TIMEOUT(chart->currentText(), QString("right answers over a number"), 20000);
    QCOMPARE(static_cast<size_t>(chart->count()), panel_charts().size());
    QCOMPARE(chart->itemText(chart->count() - 1), QString("table of speeds"));
  }

  void a_table_is_written_as_latex() {
    PageOnRuns page("figures", three_architectures());
    auto* more = button(page, "New figure");
    QStringList names;
    for (const QAction* each : more->menu()->actions()) names << each->text();
    QVERIFY(names.indexOf("2506.11305-table-2") >= 0 && names.indexOf("2506.11305-table-2") < names.indexOf("2506.11305-table-10"));
    for (QAction* each : more->menu()->actions())
      if (each->text() == "2506.11305-table-12") each->trigger();
    auto* text = page.child<QPlainTextEdit>("Tables as LaTeX");
    QTRY_VERIFY_WITH_TIMEOUT(text->isVisible() && text->toPlainText().contains("\\begin{tabular}"), 20000);
    QVERIFY(text->toPlainText().contains("$\\pm$"));  // two seeds
    action(page, "Export")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(content(folder(page) + "/2506.11305-table-12.tex").contains("\\label{tab:2506.11305-table-12}"), 20000);
    QVERIFY(!QFileInfo::exists(folder(page) + "/2506.11305-table-12.pdf"));
  }

  /// Files of `saccade bench` in the folder beside the runs, and the numbers that a paper prints.
  void benchmarks_and_published_numbers_are_drawn() {
    const nlohmann::json timing{{"ms", 20.0}, {"fastest_ms", 18.0}, {"slowest_ms", 30.0}};
    nlohmann::json step = timing;
    step.update({{"preset", "tpp"}, {"title", "Transformer++"}, {"sequence_length", 512}, {"batch_tokens", 4096}});
    step.update({{"tokens_per_s", 204800.0}, {"gpu", "a GPU"}, {"processor", "a processor"}});
    const nlohmann::json result{{"saccade_bench", 1}, {"made", "2026-01-01"}, {"steps", {step}}};
    PageOnRuns page("figures", three_architectures(), {1100, 720}, [&](const QString& runs) {
      QDir().mkpath(runs + "/bench");
      QFile file(runs + "/bench/steps.json");
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write(QByteArray::fromStdString(result.dump())) > 0);
    });
    auto* more = button(page, "New figure");
    const auto begin = [&](const QString& name) {
      for (QAction* each : more->menu()->actions())
        if (each->text() == name) each->trigger();
    };
    begin("speed");
    QTRY_VERIFY_WITH_TIMEOUT(caption(page).contains("Measured on a GPU"), 20000);
    QVERIFY(page.child<QLineEdit>("Relative to")->isVisibleTo(&page.widget()));
    QVERIFY(!page.child<QLineEdit>("Published")->isVisibleTo(&page.widget()));
    action(page, "Export")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(
        content(folder(page) + "/speed.csv").contains("a,Transformer++,sequence (tokens),training (tokens/s),512,204800,"), 60000);
    page.shoot("figures-speed");
    begin("2506.11305-table-6");
    QTRY_VERIFY_WITH_TIMEOUT(page.child<QPlainTextEdit>("Tables as LaTeX")->toPlainText().contains("tail 50"), 20000);
    action(page, "Export")->trigger();
    const QString table = folder(page) + "/2506.11305-table-6.csv";
    QTRY_VERIFY_WITH_TIMEOUT(content(table).contains("published (arXiv:2506.11305, table 6)"), 60000);
  }

  void removing_can_be_undone() {
    PageOnRuns page("figures", three_architectures());
    action(page, "New figure")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder(page) + "/figure.json"), 20000);
    auto* title = page.child<QLineEdit>("Caption");
    title->setFocus();
    QTest::keyClicks(title, "Mine");
    QTRY_VERIFY_WITH_TIMEOUT(content(folder(page) + "/figure.json").contains("Mine"), 20000);
    action(page, "Remove")->trigger();
    QVERIFY(!QFileInfo::exists(folder(page) + "/figure.json"));
    QCOMPARE(page.child<QListWidget>("Figures of this folder")->count(), 0);
    QTest::keyClick(&page.widget(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(content(folder(page) + "/figure.json").contains("Mine"), 20000);
  }

  void panels_are_added_ordered_and_lettered() {
    PageOnRuns page("figures", three_architectures());
    action(page, "New figure")->trigger();
    auto* panels = page.child<QListWidget>("Panels");
    QTest::mouseClick(button(page, "Add a panel"), Qt::LeftButton);
    QCOMPARE(panels->count(), 2);
    QCOMPARE(panels->currentRow(), 1);
    page.child<QComboBox>("Chart")->setCurrentIndex(1);
    QCOMPARE(panels->item(1)->text(), QString("b  trajectory"));
    QTest::mouseClick(button(page, "Earlier panel"), Qt::LeftButton);
    QCOMPARE(panels->item(0)->text(), QString("a  trajectory"));
    QCOMPARE(panels->currentRow(), 0);
    page.child<QComboBox>("Columns")->setCurrentIndex(1);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(folder(page) + "/figure.json"), 20000);
    QTRY_COMPARE_WITH_TIMEOUT(load_recipe((folder(page) + "/figure.json").toStdString()).panels.size(), size_t{2}, 20000);
    QTRY_VERIFY_WITH_TIMEOUT(load_recipe((folder(page) + "/figure.json").toStdString()).style.columns == 2, 20000);
    page.shoot("figures-panels");
    for (const QSize size : {QSize(640, 560), QSize(520, 460)}) {
      page.widget().resize(size);
      QTRY_COMPARE(page.overlapping(), QString());
      page.shoot(QString("figures-narrow-%1").arg(size.height()));
    }
  }

  /// Which losses a panel shows, where its chart has any to choose; what was chosen for another chart is not written.
  void losses_are_chosen() {
    PageOnRuns page("figures", three_architectures());
    action(page, "New figure")->trigger();
    auto *kind = page.child<QComboBox>("Pre-training loss"), *ends = page.child<QComboBox>("Losses at the end");
    const auto panel = [&] { return load_recipe((folder(page) + "/figure.json").toStdString()).panels.at(0); };
    page.child<QComboBox>("Chart")->setCurrentIndex(1);
    QVERIFY(kind->isVisibleTo(&page.widget()) && !ends->isVisibleTo(&page.widget()));
    kind->setCurrentIndex(2);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(folder(page) + "/figure.json"), 20000);
    QTRY_COMPARE_WITH_TIMEOUT(panel().pretraining, std::string("train"), 20000);
    QTRY_VERIFY_WITH_TIMEOUT(caption(page).contains("Pre-training loss: training loss, mean over the last"), 20000);
    page.child<QComboBox>("Chart")->setCurrentIndex(8);
    QVERIFY(kind->isVisibleTo(&page.widget()) && ends->isVisibleTo(&page.widget()));
    ends->setCurrentIndex(1);
    QTRY_COMPARE_WITH_TIMEOUT(panel().split, std::string("test"), 20000);
    page.child<QComboBox>("Chart")->setCurrentIndex(0);
    QTRY_VERIFY_WITH_TIMEOUT(panel().chart == "loss" && panel().pretraining == "validation", 20000);
  }

  void the_page_is_as_wide_as_asked() {
    FigurePage page = two_panels();
    page.style.width_mm = 171.4;
    QCOMPARE(page_size_mm(page).width(), 171.4);
    const double two_columns = page_size_mm(page).height();
    page.style.columns = 1;
    QVERIFY(page_size_mm(page).height() > 1.9 * two_columns);
    QCOMPARE(to_json(page_from_json(to_json(page))), to_json(page));
    QVERIFY(QString::fromStdString(to_latex(page)).contains("\\caption{What 50 \\% of\\_it is.}"));
  }

  /// Lines of names break where room was left for them, on paper of whatever fineness.
  void a_legend_of_many_names_has_its_room() {
    FigurePage page = two_panels();
    for (int i = 0; i < 60; ++i) {
      const std::string name = "curve " + std::to_string(i) + " with " + std::string(static_cast<size_t>(5 + 7 * i % 23), 'n');
      page.panels[0].curves.push_back({name, {1, 2, 3}, {3, 2, 1}, {0, 0x72, 0xB2}});
    }
    page.style.letters = false;
    const auto end_mm = [&](double per_mm) {  // of the swatches, which stand at the left edge; curves are further in
      QImage image((page_size_mm(page) * per_mm).toSize(), QImage::Format_RGB32);
      image.setDotsPerMeterX(static_cast<int>(1000 * per_mm)), image.setDotsPerMeterY(static_cast<int>(1000 * per_mm));
      image.fill(Qt::white);
      QPainter painter(&image);
      paintPage(painter, QRectF(QPointF(), page_size_mm(page) * per_mm), page);
      painter.end();
      int last = 0;
      for (int y = 0; y < image.height(); ++y) {
        const QColor at = image.pixelColor(static_cast<int>(4 * per_mm), y);
        if (at.blue() > at.red() + 30) last = y;
      }
      return last / per_mm;
    };
    const double end = end_mm(20);
    QVERIFY2(end > 60, qPrintable(QString::number(end)));
    for (const double per_mm : {4.0, 5.0, 7.3, 8.9, 11.811})
      QVERIFY2(std::abs(end_mm(per_mm) - end) < 1, qPrintable(QString("%1 and %2").arg(end_mm(per_mm)).arg(end)));
  }

  /// A panel without anything says so, where axes from 0 to 1 would look like a result.
  void an_empty_panel_says_so() {
    FigurePage page = two_panels();
    page.panels[1].curves.clear();
    const double per_mm = 6;
    QImage image((page_size_mm(page) * per_mm).toSize(), QImage::Format_RGB32);
    image.setDotsPerMeterX(6000), image.setDotsPerMeterY(6000);
    image.fill(Qt::white);
    QPainter painter(&image);
    paintPage(painter, QRectF(QPointF(), page_size_mm(page) * per_mm), page);
    painter.end();
    const auto ink = [&](double from, double to) {  // in the middle of the page's height, in shares of its width
      int count = 0;
      for (int y = image.height() * 4 / 10; y < image.height() * 6 / 10; ++y)
        for (int x = static_cast<int>(from * image.width()); x < static_cast<int>(to * image.width()); ++x)
          count += qGray(image.pixel(x, y)) < 128;
      return count;
    };
    QVERIFY2(ink(0.65, 0.85) > 100, qPrintable(QString::number(ink(0.65, 0.85))));
    QCOMPARE(ink(0.52, 0.56), 0);  // no axis
  }

  /// Names at the ends of curves are in the curves' colours, and apart.
  void names_can_stand_at_the_ends() {
    FigurePage page = two_panels();
    page.panels.resize(1);
    page.style.legend = LegendPlace::direct;
    QImage image(900, 500, QImage::Format_RGB32);
    image.setDotsPerMeterX(5906), image.setDotsPerMeterY(5906);  // 150 dpi
    image.fill(Qt::white);
    QPainter painter(&image);
    paintPage(painter, QRectF(image.rect()), page);
    painter.end();
    int blue = 0, orange = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 750; x < image.width(); ++x) {
        const QColor c = image.pixelColor(x, y);
        blue += c.blue() > c.red() + 90, orange += c.red() > c.blue() + 90;
      }
    QVERIFY2(blue > 60 && orange > 60, qPrintable(QString("%1 %2").arg(blue).arg(orange)));
    if (const QString shots = qEnvironmentVariable("SACCADE_SHOTS"); !shots.isEmpty()) image.save(shots + "/direct.png");
  }

  /// Where names at the ends would leave a panel less than half of its width, they stand above all panels.
  void long_names_do_not_stand_at_the_ends() {
    const auto painted = [](LegendPlace place, const std::string& name) {
      FigurePage page = two_panels();
      page.style.legend = place;
      for (Figure& panel : page.panels)
        for (Curve& curve : panel.curves) curve.label += name;
      QImage image((page_size_mm(page) * 6).toSize(), QImage::Format_RGB32);
      image.setDotsPerMeterX(6000), image.setDotsPerMeterY(6000);
      image.fill(Qt::white);
      QPainter painter(&image);
      paintPage(painter, QRectF(QPointF(), page_size_mm(page) * 6), page);
      return image;
    };
    const std::string longer = ", learning rate 0.006, window 32, mean of 2";
    QVERIFY(painted(LegendPlace::direct, longer) == painted(LegendPlace::above, longer));
    QVERIFY(painted(LegendPlace::direct, "") != painted(LegendPlace::above, ""));
  }

  void mistakes_are_named_data() {
    QTest::addColumn<QString>("json");
    QTest::addColumn<QString>("message");
    QTest::newRow("key") << R"({"titel": "x"})"
                         << "did you mean \"title\"?";
    QTest::newRow("chart") << R"({"panels": [{"chart": "los"}]})"
                           << "/panels/0/chart is \"los\"; did you mean \"loss\"?";
    QTest::newRow("none") << R"({"panels": []})"
                          << "/panels is []; expected a list of 1 to 26 panels";
    QTest::newRow("size") << R"({"style": {"size": "nurips"}})"
                          << "did you mean \"neurips\"?";
    QTest::newRow("width") << R"({"style": {"width_mm": 0}})"
                           << "/style/width_mm is 0; expected a number from 20";
    QTest::newRow("range") << R"({"panels": [{"x_range": [2, 1]}]})"
                           << "/panels/0/x_range is [2,1]; expected [low, high]";
    QTest::newRow("series") << R"({"panels": [{"chart": "series"}]})"
                            << "/panels/0/series";
    QTest::newRow("format") << R"({"formats": ["pdv"]})"
                            << "did you mean \"pdf\"?";
  }
  void mistakes_are_named() {
    QFETCH(QString, json);
    QFETCH(QString, message);
    try {
      static_cast<void>(parse_recipe(json.toStdString(), "r.json", "r"));
      QFAIL("no mistake was found");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).startsWith("r.json: ") && QString(error.what()).contains(message), error.what());
    }
  }

  void maps_have_the_page_s_colours() {
    for (const std::string& name : colour_maps()) {
      const QList<QRgb>& map = colour_map(false, name);
      for (qsizetype i = 1; i < map.size(); ++i) QVERIFY2(qGray(map[i]) >= qGray(map[i - 1]) - 3, name.c_str());  // ever lighter
      QVERIFY(qGray(map.last()) - qGray(map.first()) > 130);
    }
    QVERIFY(colour_map(false, "magma") != colour_map(false, "viridis"));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::FiguresTest)
#include "figures_test.moc"
