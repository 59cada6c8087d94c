#include <QComboBox>
#include <QLabel>
#include <QToolButton>

#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/chart_scene.h"
#include "ui/charts/figure_view.h"
#include "ui/live/live_figures.h"

namespace saccade::test {

using namespace saccade::ui;

class LiveTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void shows_all_visible_runs() {
    PageOnRuns page("live", three_architectures());
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    QVERIFY(loss && has_data(loss->figure()));
    QCOMPARE(loss->figure().curves.size(), size_t{15});  // training, validation, OOD of four runs, and what these look like
    auto* speed = page.child<FigureView>("Speed");
    QVERIFY(speed->isVisible());
    page.shoot("live");
    page.widget().resize(700, 480);
    page.shoot("live-small");
    auto* runs = page.session().runs();
    QVERIFY(runs->setData(runs->index(0), false, RunList::VisibleRole));
    QTRY_COMPARE(loss->figure().curves.size(), size_t{12});
  }

  void training_losses_of_many_runs_do_not_cover_the_rest() {
    std::vector<FixtureOptions> runs(7);
    for (size_t i = 0; i < runs.size(); ++i) runs[i].seed = static_cast<int64_t>(i) + 1;
    PageOnRuns page("live", runs);
    page.session().setCurrentRun(page.directory(runs[2]));
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    const auto labels = [&](const char* end) {
      QStringList list;
      for (const Curve& curve : loss->figure().curves)
        if (const QString label = QString::fromStdString(curve.label); label.endsWith(end)) list << label;
      return list;
    };
    QTRY_COMPARE(labels(", training"), QStringList("Transformer++, seed 3, training"));
    QCOMPARE(labels(", OOD").size(), 7);
    QCOMPARE(labels("training (Transformer++, seed 3)").size(), 1);
    page.session().setCurrentRun(page.directory(runs[4]));
    QTRY_COMPARE(labels(", training"), QStringList("Transformer++, seed 5, training"));
  }

  void cards_without_data_are_hidden() {
    PageOnRuns page("live", {FixtureOptions{}});
    QVERIFY(!page.child<FigureView>("Captured mass of the choice")->isVisible());
    QVERIFY(page.child<FigureView>("Entropy by layer")->isVisible());
  }

  void smoothing_keeps_raw_values() {
    PageOnRuns page("live", {FixtureOptions{}});
    auto* loss = page.child<FigureView>("Pre-training and OOD loss");
    const size_t before = loss->figure().curves.size();
    auto* box = page.child<QComboBox>("Smoothing of what is recorded at every step");
    box->setCurrentIndex(box->findData(11));
    QCOMPARE(loss->figure().curves.size(), before + 1);
    page.shoot("live-smooth");
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
    QVERIFY(trouble(*page.session().runs()).contains("diverged at step 200"));
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
    page.shoot("live-narrow");
    page.widget().resize(1300, 800);
    QTRY_VERIFY(top(axis) < top(loss->parentWidget()) + 20);
    QVERIFY(page.child<FigureView>("OOD − pre-training gap")->mapTo(&page.widget(), QPoint()).x() > 700);
  }

  void a_runaway_loss_does_not_flatten_the_others() {
    PageOnRuns page("live", three_architectures());
    Figure figure = page.child<FigureView>("Pre-training and OOD loss")->figure();
    Curve away = figure.curves.at(0);
    for (size_t i = away.y.size() - 4; i < away.y.size(); ++i) away.y[i] = std::pow(10.0, static_cast<double>(i + 10 - away.y.size()));
    const auto ends = [&] {
      std::vector<std::unique_ptr<PreparedCurve>> curves;
      for (const Curve& curve : figure.curves) curves.push_back(std::make_unique<PreparedCurve>(curve, false));
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

  void an_empty_folder_says_what_to_do() {
    PageOnRuns page("live", {});
    QVERIFY(!has_data(page.child<FigureView>("Pre-training and OOD loss")->figure()));
    page.shoot("live-empty");
  }

  void dark() {
    const QPalette before = QApplication::palette();
    darken();
    PageOnRuns page("live", three_architectures());
    page.shoot("live-dark");
    QApplication::setPalette(before);
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::LiveTest)
#include "live_test.moc"
