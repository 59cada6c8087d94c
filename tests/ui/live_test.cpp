#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QSignalSpy>
#include <QToolButton>

#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/chart_scene.h"
#include "ui/charts/figure_view.h"
#include "ui/live/live_figures.h"
#include "ui/live/live_page.h"
#include "ui/live/smoothing_choice.h"

namespace saccade::test {

using namespace saccade::ui;

class LiveTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void shows_all_visible_runs() {
    PageOnRuns page("live", three_architectures());
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    QVERIFY(loss && has_data(loss->figure()));
    QCOMPARE(loss->figure().curves.size(), size_t{12});  // training, validation, OOD of three settings, and what these look like
    auto* speed = page.child<FigureView>("Speed");
    QVERIFY(speed->isVisible());
    page.shoot("live");
    page.widget().resize(700, 480);
    page.shoot("live-small");
    auto* runs = page.session().runs();
    const QString chunk = page.directory(three_architectures()[1]);
    QVERIFY(runs->setData(runs->index(runs->row(chunk)), false, RunList::VisibleRole));
    QTRY_COMPARE(loss->figure().curves.size(), size_t{9});
    runs->setHidden({});
    runs->setFilter("mixer:attention");
    QTRY_COMPARE(loss->figure().curves.size(), size_t{6});  // a filter is what is shown
    runs->setOpened(runs->selection().groups().at(0).key, true);
    QTRY_COMPARE(loss->figure().curves.size(), size_t{9});  // its seeds one by one
  }

  void training_losses_of_many_runs_do_not_cover_the_rest() {
    std::vector<FixtureOptions> runs(7);
    for (size_t i = 0; i < runs.size(); ++i) runs[i].layers = static_cast<int64_t>(i) + 1, runs[i].seed = runs[i].layers;
    PageOnRuns page("live", runs);
    page.session().setCurrentRun(page.directory(runs[2]));
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    const auto labels = [&](const char* end) {
      QStringList list;
      for (const Curve& curve : loss->figure().curves)
        if (const QString label = QString::fromStdString(curve.label); label.endsWith(end)) list << label;
      return list;
    };
    QTRY_COMPARE(labels(", training"), QStringList("Transformer++, layers 3, training"));
    QCOMPARE(labels(", OOD").size(), 7);
    QCOMPARE(labels("training (Transformer++, layers 3)").size(), 1);
    page.session().setCurrentRun(page.directory(runs[4]));
    QTRY_COMPARE(labels(", training"), QStringList("Transformer++, layers 5, training"));
  }

  /// Values of every step of many runs would be one block: means of architectures, and the current run.
  void gradient_norms_of_many_runs_are_means() {
    std::vector<FixtureOptions> runs(9);
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].layers = static_cast<int64_t>(i) + 1, runs[i].seed = runs[i].layers;
      if (i >= 5) runs[i].mixer = "avey";
    }
    PageOnRuns page("live", runs);
    page.session().setCurrentRun(page.directory(runs[2]));
    auto* gradient = page.child<FigureView>("Gradient norm");
    const auto labels = [&] {
      QStringList list;
      for (const Curve& curve : gradient->figure().curves) list << QString::fromStdString(curve.label);
      return list;
    };
    QTRY_COMPARE(labels(), (QStringList{"Avey, mean of 4", "Transformer++, mean of 5", "Transformer++, layers 3"}));  // newest first
    for (const Curve& curve : gradient->figure().curves) QCOMPARE(curve.low.empty(), curve.label == "Transformer++, layers 3");
    QCOMPARE(gradient->figure().curves[0].colour, (Colour{0xD5, 0x5E, 0x00}));  // the architecture's, not a setting's
    QCOMPARE(gradient->figure().curves[1].colour, (Colour{0, 0, 0}));
    const auto& all = page.session().runs()->runs();
    double mean = 0;
    for (const Run* run : all)
      if (run->info().title == "Avey") mean += run->find("gradient_norm")->value[10] / 4;
    QVERIFY(std::abs(gradient->figure().curves[0].y[10] - mean) < 1e-12);
    QTRY_COMPARE(page.child<FigureView>("Speed")->figure().curves.size(), size_t{3});
    page.session().runs()->setFilter("mixer:avey");
    QTRY_COMPARE(gradient->figure().curves.size(), size_t{4});  // few: each by itself
  }

  void cards_without_data_are_hidden() {
    PageOnRuns page("live", {FixtureOptions{}});
    QVERIFY(!page.child<FigureView>("What is read")->isVisible());
    QVERIFY(page.child<FigureView>("Entropy by layer")->isVisible());
  }

  /// What some cards show is chosen where their titles stand.
  void cards_have_choices() {
    FixtureOptions chunk;
    chunk.mixer = "top1_chunk";
    PageOnRuns page("live", {chunk});
    const Run* run = page.session().runs()->run(page.directory(chunk));
    const auto choose = [&](const char* name, int index) {
      auto* box = page.child<QComboBox>(name);
      box->setCurrentIndex(index);
      Q_EMIT box->activated(index);
    };
    auto* gap = page.child<FigureView>("OOD − pre-training gap");
    const double outside = run->find("ood/loss")->value[1], inside = run->find("validation/loss")->value[1];
    QTRY_VERIFY(!gap->figure().curves.empty());
    QCOMPARE(gap->figure().curves.front().y[1], outside - inside);
    choose("What OOD and pre-training losses are compared by", 1);
    QTRY_COMPARE(gap->figure().id, std::string("ood-ratio"));
    QCOMPARE(gap->figure().curves.front().y[1], outside / inside);
    QCOMPARE(gap->accessibleName(), QString("OOD ÷ pre-training ratio"));
    auto* gradient = page.child<FigureView>("Gradient norm");
    choose("What is shown of every step", 1);
    QTRY_COMPARE(gradient->figure().id, std::string("learning_rate"));
    QCOMPARE(gradient->figure().curves.front().y[1], run->find("learning_rate")->value[1]);
    QVERIFY(page.child<FigureView>("Captured mass")->isVisible());
    QCOMPARE(page.session().place().value("live/every_step").toString(), QString("learning_rate"));
  }

  /// A curve for each OOD domain in place of their mean, told apart by dashes that the legend explains.
  void every_ood_domain_can_stand_among_the_losses() {
    PageOnRuns page("live", three_architectures());
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    auto* each = page.child<QComboBox>("OOD losses among the losses");
    QVERIFY(each && each->isVisible());
    each->setCurrentIndex(1);
    Q_EMIT each->activated(1);
    QTRY_COMPARE(loss->figure().curves.size(),
                 size_t{16});  // of three things training, validation and two domains, and what they look like
    const Run* avey = page.session().runs()->run(page.directory(three_architectures()[2]));
    std::map<std::string, Dash> keys;
    int found = 0;
    for (const Curve& curve : loss->figure().curves) {
      if (curve.x.empty()) keys[curve.label] = curve.dash;
      QVERIFY(!QString::fromStdString(curve.label).endsWith(", OOD"));
    }
    for (const Curve& curve : loss->figure().curves)
      for (const char* domain : {"c", "python"}) {
        if (curve.label != std::string("Avey, OOD ") + domain) continue;
        ++found;
        QVERIFY(curve.dash == keys.at(std::string("OOD ") + domain));
        QCOMPARE(curve.y, avey->find(std::string("ood/loss/") + domain)->value);
      }
    QCOMPARE(found, 2);
    QVERIFY(keys.at("OOD c") != keys.at("OOD python"));
    page.shoot("live-domains");
    QSignalSpy pages(&page.session(), &Session::pageRequested);
    const Series* python = avey->find("ood/loss/python");
    Q_EMIT loss->positionClicked(python->tokens[1], python->value[1]);
    QTRY_COMPARE_WITH_TIMEOUT(pages.size(), 1, 3000);
    QCOMPARE(page.session().currentRun(), page.directory(three_architectures()[2]));
    QVERIFY(page.session().place().value("live/each_domain").toBool());
  }

  /// How choices change from one probe to the next, chunks that nothing chooses, and memory.
  void selection_health_and_memory_can_be_followed() {
    FixtureOptions chunk;
    chunk.mixer = "top1_chunk", chunk.health = true;
    PageOnRuns page("live", {chunk});
    const Run* run = page.session().runs()->run(page.directory(chunk));
    const auto choose = [&](const char* name, const char* entry) {
      auto* box = page.child<QComboBox>(name);
      QVERIFY2(box && box->findText(entry) >= 0, entry);
      box->setCurrentIndex(box->findText(entry));
      Q_EMIT box->activated(box->currentIndex());
    };
    choose("What is shown of reads and choices", "Churn");
    QTRY_VERIFY(page.child<FigureView>("Churn") && page.child<FigureView>("Churn")->isVisible());
    const auto* health = page.child<FigureView>("Churn");
    QCOMPARE(health->figure().curves.size(), size_t{3});
    QCOMPARE(health->figure().curves[0].y, run->find("churn/layer0")->value);
    QCOMPARE(run->find("churn/layer0")->step.front(), 100.0);  // the first probe has none before it
    choose("What is shown of reads and choices", "Dead chunks");
    QTRY_COMPARE(health->accessibleName(), QString("Dead chunks"));
    QCOMPARE(health->figure().curves[2].y, run->find("dead_chunks/layer2")->value);
    const auto* speed = page.child<FigureView>("Speed");
    choose("What is shown of time and memory", "Device memory");
    QTRY_COMPARE(speed->figure().id, std::string("device_memory"));
    QCOMPARE(speed->figure().curves.front().y, (std::vector<double>(4, 300)));
    choose("What is shown of time and memory", "Process memory");
    QTRY_COMPARE(speed->accessibleName(), QString("Process memory"));
    QTRY_COMPARE(speed->figure().curves.front().y, (std::vector<double>{450, 500, 550, 600}));
  }

  /// Of a generated task: training domains first; other lengths, which are OOD domains, by a choice that is kept.
  void right_answers_of_every_domain() {
    FixtureOptions options;
    options.answers = true;
    PageOnRuns page("live", {options});
    const Run* run = page.session().runs()->run(page.directory(options));
    auto* box = page.child<QComboBox>("Whose right answers are shown");
    QVERIFY(box && box->isVisible());
    QTRY_COMPARE(box->count(), 4);
    const auto* chart = page.child<FigureView>("Right answers");
    QVERIFY(chart && chart->isVisible());
    QCOMPARE(chart->figure().curves.front().y, run->find("validation/accuracy")->value);
    const std::pair<const char*, const char*> others[] = {{"Right answers, OOD mean", "ood/accuracy"},
                                                          {"Right, OOD python", "ood/accuracy/python"}};
    for (const auto& [entry, series] : others) {
      box->setCurrentIndex(box->findText(entry));
      Q_EMIT box->activated(box->currentIndex());
      QTRY_COMPARE(chart->accessibleName(), QString(entry));
      QCOMPARE(chart->figure().curves.front().y, run->find(series)->value);
    }
    QCOMPARE(page.session().place().value("live/answers").toString(), QString("ood/accuracy/python"));
    PageOnRuns text("live", {FixtureOptions{}});
    QVERIFY(!text.child<QComboBox>("Whose right answers are shown")->isVisible());
  }

  void smoothing_keeps_raw_values() {
    PageOnRuns page("live", {FixtureOptions{}});
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    const size_t before = loss->figure().curves.size();
    auto* box = page.child<QComboBox>("Smoothing of what is recorded at every step");
    box->setCurrentIndex(box->findData(static_cast<int>(Smoothing::Kind::exponential)));
    const auto* reach = page.child<QComboBox>("Reach of the smoothing, in units of the x axis");
    QVERIFY(reach && reach->isVisible() && quantity(reach->currentText()));
    QCOMPARE(loss->figure().curves.size(), before + 1);
    page.shoot("live-smooth");
  }

  /// Inspect's step is marked on the curves of its run, and goes where the mark is dragged: to the nearest capture.
  void inspects_step_is_marked_and_moved() {
    PageOnRuns page("live", {FixtureOptions{}});
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    page.session().setXAxis(XAxis::tokens);
    page.session().setCurrentRun(page.directory({}));
    QVERIFY(!loss->figure().vertical_line);  // the newest capture needs no mark
    page.session().setCaptureStep(100);
    const double tokens = static_cast<double>(fixture_position(100).tokens);
    QTRY_COMPARE(loss->figure().vertical_line.value_or(-1), tokens);
    QCOMPARE(loss->figure().vertical_label, std::string("Inspect: step 100"));
    Q_EMIT loss->verticalLineMoved(1.7 * tokens);
    QTRY_COMPARE(page.session().captureStep(), qint64{200});
    QTRY_COMPARE(loss->figure().vertical_line.value_or(-1), 2 * tokens);
    page.session().setXAxis(XAxis::step);
    QTRY_COMPARE(loss->figure().vertical_line.value_or(-1), 200.0);
    page.session().setStepLinked(false);
    QTRY_VERIFY(!loss->figure().vertical_line);
  }

  void x_axis_belongs_to_the_session() {
    PageOnRuns page("live", {FixtureOptions{}});
    page.session().setXAxis(XAxis::flops);
    QCOMPARE(page.child<FigureView>("Speed")->figure().x.title, std::string("training FLOPs"));
  }

  void a_diverged_run_is_marked() {
    FixtureOptions diverged;
    diverged.end = RunState::diverged;
    PageOnRuns page("live", {diverged});
    const auto& curves = page.child<FigureView>("Pre-training and OOD loss")->figure().curves;
    QVERIFY(curves.back().label.find("diverged at step 200") != std::string::npos);
    QCOMPARE(curves.back().x.size(), size_t{1});
    QCOMPARE(trouble(page.session().runs()->shown()->drawn()), QString("1 diverged: Transformer++ at step 200"));
    page.shoot("live-diverged");
  }

  /// In a small window cards stand below each other and controls below their title; nothing asks for more width.
  void fits_a_narrow_window() {
    PageOnRuns page("live", three_architectures(), {520, 460});
    QVERIFY2(page.widget().minimumSizeHint().width() <= 520, qPrintable(QString::number(page.widget().minimumSizeHint().width())));
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    auto* axis = page.child<QComboBox>("What the x axis shows");
    const auto top = [&](QWidget* widget) { return widget->mapTo(&page.widget(), QPoint()).y(); };
    const int title = top(loss->parentWidget());
    QTRY_VERIFY(top(axis) > title + 20);
    QTRY_COMPARE(page.overlapping(), QString());
    page.shoot("live-narrow");
    page.widget().resize(1300, 800);
    QTRY_VERIFY(top(axis) < top(loss->parentWidget()) + 20);
    QVERIFY(page.child<FigureView>("OOD − pre-training gap")->mapTo(&page.widget(), QPoint()).x() > 700);
  }

  void a_runaway_loss_does_not_flatten_the_others() {
    PageOnRuns page("live", three_architectures());
    Figure figure = page.child<FigureView>("Pre-training and OOD loss")->figure();
    Curve away = figure.curves.at(0);
    for (size_t i = away.y.size() - 4; i < away.y.size(); ++i)
      away.y.edit()[i] = std::pow(10.0, static_cast<double>(i + 10 - away.y.size()));
    const auto ends = [&] {
      PreparedCurves curves;
      for (const Curve& curve : figure.curves) curves.push_back(std::make_shared<const PreparedCurve>(curve, AxisScale{}));
      const AxisScale x = x_scale(figure), y = y_scale(figure, curves, x);
      return std::pair(y, runs_off(figure, curves, x, y));
    };
    const auto [before, nothing] = ends();
    QVERIFY(nothing.empty());
    figure.curves.push_back(away);
    const auto [after, told] = ends();
    QCOMPARE(after.high, before.high);
    QCOMPARE(told.size(), size_t{1});
    QVERIFY(told[0].edge == Qt::TopEdge && told[0].value == 1e9);
    figure.curves = {away};
    QVERIFY(ends().first.high >= 1e9);  // alone it is shown whole
  }

  /// Twenty-six diverged runs are one message.
  void many_bad_ends_are_one_line() {
    std::vector<FixtureOptions> runs;
    for (int64_t i = 1; i <= 8; ++i) runs.push_back({.seed = i, .steps = 40, .layers = i, .end = RunState::diverged});
    PageOnRuns page("live", runs);
    const QString text = trouble(page.session().runs()->shown()->drawn());
    QVERIFY2(text.startsWith("8 diverged: ") && text.endsWith("; and 5 more") && !text.contains('\n'), qPrintable(text));
  }

  /// Why it crashed nobody knows; how to go on is known, and a click away.
  void a_crashed_run_can_be_resumed() {
    FixtureOptions crashed;
    crashed.end = RunState::running;  // and no process has its lock
    PageOnRuns page("live", {crashed});
    const QDir directory(page.directory(crashed));
    directory.mkpath("checkpoints");
    QVERIFY(QFile(directory.filePath("checkpoints/step-160.h5")).open(QIODevice::WriteOnly));
    QCOMPARE(trouble(page.session().runs()->shown()->drawn()),
             QString("1 crashed: Transformer++ at step 200, resume goes on from step 160"));
    auto* resume = page.child<QToolButton>("Resume the crashed run");
    QVERIFY(resume && resume->isVisible());
    QCOMPARE(resume->text(), QString("Resume Transformer++"));
    QTemporaryDir programs;
    QFile program(programs.filePath("program"));
    QVERIFY(program.open(QIODevice::WriteOnly));
    program.write("#!/bin/sh\nexit 0\n");
    program.close();
    program.setPermissions(QFile::ReadOwner | QFile::ExeOwner);
    qputenv("SACCADE_BINARY", program.fileName().toUtf8());
    QSignalSpy started(&page.session(), &Session::runStarted);
    resume->click();
    QCOMPARE(started.size(), 1);
    QCOMPARE(started[0][0].toString(), page.directory(crashed));
  }

  /// Cards of what a run at work is going to measure stand where they will be filled: nothing jumps.
  void cards_of_what_comes_keep_their_place() {
    const QTemporaryDir folder;
    RunInfo info = fixture_info({});
    info.config["training"]["probe_every"] = 20;
    RunWriter writer = RunWriter::create(folder.filePath("run").toStdString(), info);
    writer.set_state(RunState::running, 0);
    writer.add(fixture_step({}, 1));
    Session session(folder.path());
    QTRY_COMPARE(session.runs()->shown()->runs().size(), size_t{1});
    LivePage page(session, nullptr);
    page.resize(1000, 700);
    page.QWidget::show();
    const auto place = [&](const char* name) -> QRect {
      for (FigureView* view : page.findChildren<FigureView*>())
        if (view->accessibleName() == name && view->isVisible()) return {view->mapTo(&page, QPoint()), view->size()};
      return {};
    };
    const QStringList names{"Attention entropy", "Entropy by layer", "OOD − pre-training gap", "OOD by domain"};
    std::map<QString, QRect> before;
    for (const QString& name : names) QTRY_VERIFY2(place(name.toUtf8()).isValid(), qPrintable(name));
    QTest::qWait(300);  // until the layout has settled
    for (const QString& name : names) {
      before[name] = place(name.toUtf8());
    }
    for (int64_t step = 2; step <= 40; ++step) writer.add(fixture_step({}, step));
    writer.add(fixture_evaluation({}, 20));
    StatisticsRecord statistics = fixture_statistics({}, 20);
    statistics.statistics.push_back({"distance", "tokens", 0, {3, 4}});
    writer.add(statistics);
    writer.add(fixture_evaluation({}, 40));
    const auto filled = [&] {
      const auto views = page.findChildren<FigureView*>();
      return std::all_of(names.begin(), names.end(), [&](const QString& name) {
        return std::any_of(views.begin(), views.end(), [&](FigureView* v) { return v->accessibleName() == name && has_data(v->figure()); });
      });
    };
    QTRY_VERIFY_WITH_TIMEOUT(filled(), 20000);
    for (const QString& name : names) {
      const QRect now = place(name.toUtf8());
      QVERIFY2(now.x() == before[name].x() && std::abs(now.y() - before[name].y()) < 40,
               qPrintable(QStringLiteral("%1: y %2, was %3").arg(name).arg(now.y()).arg(before[name].y())));
    }
  }

  void nothing_is_cut() {
    PageOnRuns page("live", three_architectures(), {900, 740});  // beside rail and list in a window of 1280
    QCoreApplication::processEvents();
    QVERIFY2(page.cut().isEmpty(), qPrintable(page.cut()));
  }

  /// A run that is hidden is nowhere on the page, be it the current one.
  void a_hidden_run_is_hidden_everywhere() {
    const auto options = three_architectures();
    PageOnRuns page("live", options);
    page.session().setCurrentRun(page.directory(options[2]));
    auto* layers = page.child<FigureView>("Entropy by layer");
    const auto title = [&] {
      QStringList texts;
      for (const QLabel* label : layers->parentWidget()->findChildren<QLabel*>()) texts << label->text();
      return texts.join(' ');
    };
    QTRY_VERIFY(title().contains("Avey"));
    page.session().runs()->setHidden({page.directory(options[2])});
    QTRY_VERIFY(!title().contains("Avey"));
    for (const Curve& curve : page.child<FigureView>("Pre-training and OOD loss")->figure().curves)
      QVERIFY(curve.label.find("Avey") == std::string::npos);
  }

  /// Whoever zooms in and then hides what is seen is told so, and finds the way back.
  void an_empty_part_says_so() {
    PageOnRuns page("live", {FixtureOptions{}});
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    auto* whole = loss->findChild<QToolButton*>();
    loss->grab();
    QVERIFY(whole && whole->isHidden());
    loss->look(std::array<double, 2>{1e9, 2e9}, std::array<double, 2>{1, 2});
    QVERIFY(loss->zoomed() && !whole->isHidden());
    const QRect middle(loss->plotArea().center().toPoint() - QPoint(80, 12), QSize(160, 24));
    const QImage words = loss->grab(middle).toImage();
    QSet<QRgb> colours;
    for (int y = 0; y < words.height(); ++y)
      for (int x = 0; x < words.width(); ++x) colours.insert(words.pixel(x, y));
    QVERIFY2(colours.size() > 8, "nothing is written where no curve is");
    page.shoot("live-empty-part");
    QTest::mouseClick(whole, Qt::LeftButton);
    QVERIFY(!loss->zoomed() && whole->isHidden());
  }

  void an_empty_folder_says_what_to_do() {
    PageOnRuns page("live", {});
    QVERIFY(!has_data(page.child<FigureView>("Pre-training and OOD loss")->figure()));
    page.shoot("live-empty");
  }

  /// Dark ground with everything still drawn on it, light again afterwards.
  void dark() {
    const QPalette before = QApplication::palette();
    darken();
    PageOnRuns page("live", three_architectures());
    page.shoot("live-dark");
    const auto dark = page.look();
    QApplication::setPalette(before);
    PageOnRuns light_page("live", three_architectures());
    const auto light = light_page.look();
    QVERIFY2(dark.lightness < 80 && light.lightness > 200, qPrintable(QString("%1 and %2").arg(dark.lightness).arg(light.lightness)));
    QVERIFY2(dark.colours > light.colours / 2, qPrintable(QString("%1 and %2 colours").arg(dark.colours).arg(light.colours)));
  }

  /// One key goes on from linear to logarithmic to both sides of zero, and back.
  void axes_have_three_scales_at_one_key() {
    PageOnRuns page("live", three_architectures());
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    page.widget().activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&page.widget()));
    QTest::keyClick(&page.widget(), Qt::Key_L);
    QTRY_VERIFY(loss->figure().y.logarithmic);
    QTest::keyClick(&page.widget(), Qt::Key_L);
    QTRY_VERIFY(!loss->figure().y.logarithmic && loss->figure().y.linear_within > 0);
    auto* gap = page.child<FigureView>("OOD − pre-training gap");
    QTRY_VERIFY(gap->figure().y.linear_within > 0);
    page.shoot("live-symlog");
    QTest::keyClick(&page.widget(), Qt::Key_L);
    QTRY_VERIFY(!loss->figure().y.logarithmic && loss->figure().y.linear_within == 0);
    QTest::keyClick(&page.widget(), Qt::Key_L, Qt::ShiftModifier);
    QTRY_VERIFY(loss->figure().x.logarithmic && gap->figure().x.logarithmic);
  }

  /// Two seeds: a standard error is 1/√2 of the deviation, half of the 95 % interval 12.706 times that.
  void bands_are_deviations_errors_or_intervals() {
    PageOnRuns page("live", three_architectures());
    auto* gap = page.child<FigureView>("OOD − pre-training gap");
    auto* spread = page.child<QComboBox>("Bands over seeds");
    const auto width = [&] {
      for (const Curve& curve : gap->figure().curves)
        if (!curve.low.empty()) return curve.high[2] - curve.low[2];
      return -1.0;
    };
    const double deviation = width();
    QVERIFY(deviation > 0);
    const auto chosen = [&](int index) {
      spread->setCurrentIndex(index);
      Q_EMIT spread->activated(index);
    };
    chosen(1);
    QTRY_VERIFY(std::abs(width() - deviation / std::sqrt(2)) < 1e-9);
    chosen(2);
    QTRY_VERIFY(std::abs(width() - 12.7062 * deviation / std::sqrt(2)) < 1e-3 * width());
  }

  void the_crosshair_is_linked_over_all_charts() {
    PageOnRuns page("live", three_architectures());
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    auto* gradient = page.child<FigureView>("Gradient norm");
    const auto drawn = [](FigureView* view) {  // painting asks another thread for the curves; what it has drawn comes with the next one
      view->grab();
      return !view->drawing();
    };
    QTRY_VERIFY(drawn(loss) && drawn(gradient));
    QTest::qWait(300);  // until the layout has settled
    QTRY_VERIFY(drawn(loss) && drawn(gradient));
    const QImage before = gradient->grab().toImage();
    QTest::mouseMove(loss, loss->rect().center());
    QTRY_VERIFY(gradient->grab().toImage() != before);
    page.shoot("live-linked");
    QTest::mouseMove(loss, QPoint(1, loss->height() - 2));  // outside of the plot area
    QTRY_VERIFY(gradient->grab().toImage() == before);
  }

  void a_click_opens_the_run_and_its_capture() {
    const auto options = three_architectures();
    PageOnRuns page("live", options);
    page.session().setCurrentRun(page.directory(options[0]));
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    const Run* avey = page.session().runs()->run(page.directory(options[2]));
    const Series* losses = avey->find("ood/loss");
    QSignalSpy pages(&page.session(), &Session::pageRequested);
    Q_EMIT loss->positionClicked(losses->tokens[1], losses->value[1]);
    QTRY_COMPARE_WITH_TIMEOUT(pages.size(), 1, 3000);
    QCOMPARE(pages[0][0].toString(), QString("inspect"));
    QCOMPARE(page.session().currentRun(), page.directory(options[2]));
    QVERIFY(page.session().captureStep() > 0);
    page.session().setCurrentRun(page.directory(options[1]));
    const Series* inside = avey->find("validation/loss");
    Q_EMIT page.child<FigureView>("OOD − pre-training gap")->positionClicked(losses->tokens[0], losses->value[0] - inside->value[0]);
    QTRY_COMPARE_WITH_TIMEOUT(pages.size(), 2, 3000);
    QCOMPARE(page.session().currentRun(), page.directory(options[2]));
    page.session().setCurrentRun(page.directory(options[1]));  // the card of a single run: to that run, whatever y
    Q_EMIT page.child<FigureView>("Entropy by layer")->positionClicked(losses->tokens[0], 0.5);
    QTRY_COMPARE_WITH_TIMEOUT(pages.size(), 3, 3000);
    QCOMPARE(page.session().currentRun(), page.directory(options[1]));
    QCOMPARE(page.session().captureStep(), qint64{100});
    Q_EMIT loss->positionClicked(losses->tokens[1], losses->value[1]);
    loss->showAll();  // the second half of a double click
    QTest::qWait(QApplication::doubleClickInterval() + 100);
    QCOMPARE(pages.size(), 3);
  }

  void steps_without_a_number_are_marked() {
    FixtureOptions run;
    run.not_finite = 60;
    PageOnRuns page("live", {run});
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    const auto mark = [&] {
      for (const Curve& curve : loss->figure().curves)
        if (curve.marker == Marker::cross) return curve;
      return Curve{};
    };
    QTRY_VERIFY(QString::fromStdString(mark().label).endsWith("NaN at step 60"));
    const Series& losses = *page.session().runs()->visibleRuns().front()->find("train/loss");
    QVERIFY(mark().x[0] == losses.tokens[59] && mark().y[0] == losses.value[58]);
    page.shoot("live-nan");
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::LiveTest)
#include "live_test.moc"
