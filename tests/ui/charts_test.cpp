#include <QApplication>
#include <QImage>
#include <QLabel>
#include <QPainter>
#include <QSignalSpy>
#include <QtTest>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <random>

#include "analysis/figures/palette.h"
#include "ui/charts/chart_scene.h"
#include "ui/charts/colours.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/fitting_name.h"
#include "ui/charts/map_painter.h"
#include "ui/charts/marker_painter.h"
#include "ui/charts/read_out.h"
#include "ui/charts/ticks.h"

namespace saccade::test {

using namespace saccade::ui;

class ChartsTest : public QObject {
  Q_OBJECT

  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  /// Björn Ottosson 2020, "A perceptual color space for image processing".
  static std::array<double, 3> oklab(const QColor& colour) {
    const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    const double r = linear(colour.redF()), g = linear(colour.greenF()), b = linear(colour.blueF());
    const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
  }
  static Curve noise(size_t n, unsigned seed, double gap_share = 0) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    Curve curve;
    curve.label = "noise";
    for (size_t i = 0; i < n; ++i) {
      curve.x.push_back(static_cast<double>(i));
      curve.y.push_back(uniform(random) < gap_share ? kNan : normal(random));
    }
    return curve;
  }
  static Plane plane(double x0, double x1, double y0, double y1, bool reversed = false) {
    return {QRectF(10, 20, 500, 300), {x0, x1, false, reversed}, {y0, y1, false, false}};
  }
  static QStringList labels(const AxisScale& scale, int most) {
    const Ticks ticks = ticks_for(scale, most);
    return {ticks.labels.begin(), ticks.labels.end()};
  }

 private Q_SLOTS:
  void pyramid_never_loses_an_extreme() {
    std::mt19937 random(3);
    for (const size_t n : {1U, 15U, 16U, 17U, 255U, 4097U, 10007U}) {
      const Curve curve = noise(n, static_cast<unsigned>(n), 0.02);
      const MinMaxPyramid pyramid(curve.y);
      for (int trial = 0; trial < 200; ++trial) {
        const size_t a = random() % (n + 1), b = a + random() % (n + 1 - a);
        double low = std::numeric_limits<double>::infinity(), high = -low;
        bool gap = false;
        for (size_t i = a; i < b; ++i) {
          gap = gap || std::isnan(curve.y[i]);
          if (std::isnan(curve.y[i])) continue;
          low = std::min(low, curve.y[i]);
          high = std::max(high, curve.y[i]);
        }
        const auto extent = pyramid.extent(a, b);
        QCOMPARE(extent.low, low);
        QCOMPARE(extent.high, high);
        QCOMPARE(extent.gap, gap);
      }
    }
  }

  /// Every drawable point lies on or in what is painted, however dense, gappy or reversed.
  void no_point_is_hidden_data() {
    QTest::addColumn<int>("points");
    QTest::addColumn<double>("gaps");
    QTest::addColumn<bool>("reversed");
    for (const int n : {1, 50, 1001, 20000})
      for (const double gaps : {0.0, 0.1, 0.9})
        for (const bool reversed : {false, true})
          QTest::addRow("%d points, %.0f %% gaps%s", n, 100 * gaps, reversed ? ", reversed" : "") << n << gaps << reversed;
  }
  void no_point_is_hidden() {
    QFETCH(int, points);
    QFETCH(double, gaps);
    QFETCH(bool, reversed);
    const Curve curve = noise(static_cast<size_t>(points), 7, gaps);
    const Plane p = plane(0, std::max(1, points - 1), -6, 6, reversed);
    const PreparedCurve prepared(curve, AxisScale{});
    const CurvePath path = curve_path(prepared, p, 1);
    std::vector<std::pair<double, double>> covered(502, {1e9, -1e9});  // per pixel column: what is painted
    const auto cover = [&](double x, double top, double bottom) {
      for (const int k : {-1, 0, 1}) {
        const int c = static_cast<int>(x - p.area.left()) + k;
        if (c < 0 || c > 501) continue;
        auto& column = covered[static_cast<size_t>(c)];
        column = {std::min(column.first, top), std::max(column.second, bottom)};
      }
    };
    for (const auto& bar : path.bars) cover(bar.x, bar.top, bar.bottom);
    for (const auto& dot : path.dots) cover(dot.x(), dot.y(), dot.y());
    for (const auto& line : path.lines)
      for (const QPointF& at : line) cover(at.x(), at.y(), at.y());
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (std::isnan(curve.y[i])) continue;
      const QPointF at = p.to(curve.x[i], curve.y[i]);
      const auto& column = covered[static_cast<size_t>(at.x() - p.area.left())];
      QVERIFY2(at.y() >= column.first - 1e-6 && at.y() <= column.second + 1e-6, qPrintable(QString("point %1").arg(i)));
    }
  }

  void lines_are_clipped_to_the_plot_area() {
    const Curve curve = noise(300, 5);
    const Plane p = plane(50.5, 99.5, -0.5, 0.5);
    const PreparedCurve prepared(curve, AxisScale{});
    const QRectF area = p.area.adjusted(-1e-6, -1e-6, 1e-6, 1e-6);
    const CurvePath path = curve_path(prepared, p, 1);
    QVERIFY(!path.lines.empty());
    for (const auto& line : path.lines)
      for (const QPointF& at : line) QVERIFY(area.contains(at));
  }

  void few_points_are_drawn_exactly() {
    const Curve curve = noise(100, 5);
    const Plane p = plane(0, 99, -5, 5);
    const PreparedCurve prepared(curve, AxisScale{});
    const CurvePath path = curve_path(prepared, p, 1);
    QVERIFY(path.bars.empty());
    QCOMPARE(path.lines.size(), size_t{1});
    QCOMPARE(path.lines[0].size(), curve.x.size());
    QCOMPARE(path.lines[0][42], p.to(42, curve.y[42]));
  }

  void ticks_are_round_and_labelled() {
    QCOMPARE(labels({0, 10, false, false}, 5), (QStringList{"0", "2", "4", "6", "8", "10"}));
    QCOMPARE(labels({3.1, 3.4, false, false}, 4), (QStringList{"3.1", "3.2", "3.3", "3.4"}));
    QCOMPARE(labels({0, 1e8, false, false}, 5), (QStringList{"0", "20 M", "40 M", "60 M", "80 M", "100 M"}));
    QCOMPARE(labels({1e-4, 1, true, false}, 6), (QStringList{"10⁻⁴", "0.001", "0.01", "0.1", "1"}));
    QCOMPARE(labels({1e6, 1e8, true, false}, 8), (QStringList{"1 M", "2 M", "5 M", "10 M", "20 M", "50 M", "100 M"}));
    QCOMPARE(labels({-1, 1, false, false}, 2), (QStringList{"−1", "0", "1"}));
    QVERIFY(ticks_for({1, 1, false, false}, 5).positions.empty());
    for (const auto& [low, high] : {std::pair(0.2568, 0.2992), std::pair(0.51, 0.99), std::pair(1001.0, 1003.9), std::pair(-0.9, -0.1)})
      for (const int most : {2, 3})  // in the smallest charts, too, two numbers tell the scale
        QVERIFY2(ticks_for({low, high, false, false}, most).labels.size() >= 2, qPrintable(QString::number(low)));
    QVERIFY(ticks_for({kNan, 1, false, false}, 5).positions.empty());
  }

  void numbers_are_short() {
    QCOMPARE(short_number(3.14159), QString("3.142"));
    QCOMPARE(short_number(-0.5), QString("−0.5"));
    QCOMPARE(short_number(24.1e6), QString("24.1 M"));
    QCOMPARE(short_number(0), QString("0"));
    QCOMPARE(short_number(2.5e-7), QString("2.5·10⁻⁷"));
    QCOMPARE(short_number(kNan), QString("not a number"));
  }

  void dark_curves_are_seen() {
    for (const Colour c : {Colour{0, 0, 0}, Colour{0, 0x72, 0xB2}, Colour{0xD5, 0x5E, 0}, Colour{0, 0x9E, 0x73}})
      QVERIFY(contrast(seen_colour(c, true), FigureColours::of(true).ground) >= 3);
    QCOMPARE(seen_colour({0, 0x72, 0xB2}, false), QColor(0, 0x72, 0xB2));
  }

  /// Of two curves of different architectures, whatever settings of them they are, a reader sees that they are. Distances in OKLab, in
  /// which 0.02 is just seen where two fields touch.
  void shades_are_of_one_architecture() {
    std::vector<std::pair<std::string, size_t>> hues;
    for (const char* title : {"GPT", "Transformer++", "Top-1 Element", "Top-1 Chunk exact", "Top-1 Chunk approx", "Avey", "Mamba",
                              "Mamba-2", "RWKV-5", "RWKV-6", "RWKV-7", "DeltaNet", "Gated DeltaNet", "Based"})
      hues.emplace_back(title, 0);
    for (size_t unknown = 0; unknown < 5; ++unknown) hues.emplace_back("something new", unknown);
    struct Shade {
      size_t hue, number;
      std::array<double, 3> place;
    };
    for (const bool dark : {false, true}) {
      std::vector<Shade> shades;
      for (size_t hue = 0; hue < hues.size(); ++hue)
        for (size_t n = 0; n < 5; ++n)
          shades.push_back({hue, n, oklab(seen_colour(variant_look(hues[hue].first, n, hues[hue].second).colour, dark))});
      for (const Shade& a : shades)
        for (const Shade& b : shades) {
          if (a.hue > b.hue || (a.hue == b.hue && a.number >= b.number)) continue;
          const double apart = std::hypot(a.place[0] - b.place[0], a.place[1] - b.place[1], a.place[2] - b.place[2]);
          const double least = a.hue == b.hue ? 0.055 : std::max(a.number, b.number) < 3 ? 0.045 : 0.035;
          QVERIFY2(apart >= least, qPrintable(QStringLiteral("%1 %2, shade %3, and %4 %5, shade %6, %7: %8")
                                                  .arg(QString::fromStdString(hues[a.hue].first))
                                                  .arg(hues[a.hue].second)
                                                  .arg(a.number)
                                                  .arg(QString::fromStdString(hues[b.hue].first))
                                                  .arg(hues[b.hue].second)
                                                  .arg(b.number)
                                                  .arg(dark ? "dark" : "light")
                                                  .arg(apart)));
        }
    }
  }

  void nan_is_transparent_and_the_map_grows_lighter() {
    HeatMap map;
    map.rows = 1, map.columns = 3;
    map.values = {0, static_cast<float>(kNan), 1};
    const QImage image = map_image(map);
    QCOMPARE(qAlpha(image.pixel(1, 0)), 0);
    QVERIFY(qGray(image.pixel(0, 0)) < qGray(image.pixel(2, 0)));
    int before = -1;
    for (const QRgb c : colour_map(false)) {
      QVERIFY(qGray(c) >= before - 1);
      before = qGray(c);
    }
  }

  void a_million_points_are_painted_in_time() {
    Figure figure;
    figure.curves.push_back(noise(1'000'000, 1));
    ChartScene scene(figure, {}, 96 / 72.0);
    scene.layout({1000, 600});
    QImage image(1000, 600, QImage::Format_RGB32);
    std::clock_t best = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 5; ++i) {
      const std::clock_t start = std::clock();
      QPainter painter(&image);
      scene.paint(painter, 1, false);
      painter.end();
      best = std::min(best, std::clock() - start);
    }
    const double ms = 1e3 * static_cast<double>(best) / CLOCKS_PER_SEC;
    qInfo("10^6 points: %.1f ms of processor time", ms);
    QVERIFY2(ms < 100, "the budget is 16 ms on a quiet machine");
  }

  /// Every entry has a place of its own over the plot; what does not fit is counted.
  /// Qt Charts gives an axis a part of the height: where its title would be dots, the curves have the room.
  void a_low_chart_has_no_dots_for_a_title() {
    Figure figure{.id = "f", .title = "f", .x = {"training tokens"}, .y = {}};
    figure.curves.push_back(noise(100, 1));
    const auto plot_height = [&](double height, const char* title) {
      figure.x.title = title;
      FigureStyle style;
      style.whole_legend = false;  // as on screen
      ChartScene scene(figure, style, 96 / 72.0);
      scene.layout({300, height});
      return scene.plane().area.height();
    };
    QVERIFY(plot_height(400, "training tokens") < plot_height(400, ""));
    for (const double low : {100, 110, 120}) QCOMPARE(plot_height(low, "training tokens"), plot_height(low, ""));
  }

  /// A page has several such cards: each is made ready in an event of its own, and what takes long is drawn by a thread.
  void means_with_bands_are_drawn_beside_the_window() {
    const auto means = [](size_t points) {
      Figure figure;
      for (int k = 0; k < 10; ++k) {
        Curve curve;
        for (size_t i = 0; i < points; ++i) {
          curve.x.push_back(static_cast<double>(i));
          curve.y.push_back(std::sin(0.1 * static_cast<double>(i)) + k);
          curve.low.push_back(curve.y.back() - 0.5);
          curve.high.push_back(curve.y.back() + 0.5);
        }
        figure.curves.push_back(std::move(curve));
      }
      return figure;
    };
    FigureView view;
    view.resize(700, 300);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    const auto make_ready = [&] { QCoreApplication::sendPostedEvents(&view, QEvent::MetaCall); };
    view.setFigure(means(20));
    view.repaint();
    QVERIFY2(view.drawing(), "the window was painted in the event that made the chart ready");
    make_ready();
    QVERIFY2(!view.drawing(), "few points are drawn at once");
    view.setFigure(means(500));
    make_ready();
    QVERIFY2(view.drawing(), "bands of 500 points were filled in the event loop");
    QTRY_VERIFY(!view.drawing());
  }

  /// Whoever takes a picture of a chart that was changed just now gets it as it is now.
  void a_picture_is_of_the_present() {
    const auto figure = [](unsigned seed) {
      Figure made;
      made.curves.push_back(noise(50, seed));
      return made;
    };
    FigureView view;
    view.resize(400, 300);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    view.setFigure(figure(1));
    QTRY_VERIFY(!view.drawing());
    const QImage before = view.grab().toImage();
    view.setFigure(figure(2));
    const QImage now = view.grab().toImage();
    QVERIFY(now != before);
    QTRY_VERIFY(!view.drawing());
    QCOMPARE(view.grab().toImage(), now);
    view.resize(300, 200);
    const QImage small = view.grab().toImage();
    QTRY_VERIFY(!view.drawing());
    QCOMPARE(view.grab().toImage(), small);
  }

  void the_legend_covers_nothing_data() {
    QTest::addColumn<int>("curves");
    QTest::addColumn<QSize>("size");
    for (const int curves : {1, 8, 14, 40})
      for (const QSize size : {QSize(1000, 600), QSize(420, 300), QSize(200, 160)})
        QTest::addRow("%d in %d x %d", curves, size.width(), size.height()) << curves << size;
  }
  void the_legend_covers_nothing() {
    QFETCH(int, curves);
    QFETCH(QSize, size);
    Figure figure;
    for (int i = 0; i < curves; ++i) {
      figure.curves.push_back(noise(10, static_cast<unsigned>(i)));
      figure.curves.back().label = "architecture " + std::string(static_cast<size_t>(i % 9), 'x') + std::to_string(i);
    }
    ChartScene scene(figure, {}, 96 / 72.0);
    scene.layout(size);
    const Legend& legend = scene.legend();
    QVERIFY(scene.plane().area.top() >= legend.height && scene.plane().area.height() > 20);
    const QFontMetricsF metrics(legend_font(legend, scene.font()));
    std::vector<QRectF> boxes;
    for (const Legend::Entry& entry : legend.entries) {
      const double sample = entry.curve ? 26 * scene.unit() : 0;
      const QRectF box(entry.at, QSizeF(sample + metrics.horizontalAdvance(entry.text), metrics.height()));
      QVERIFY(QRectF(QPointF(), size).contains(box));
      for (const QRectF& other : boxes) QVERIFY(!box.intersects(other));
      boxes.push_back(box);
    }
    const auto named = std::count_if(legend.entries.begin(), legend.entries.end(), [](const auto& e) { return e.curve; });
    if (named < curves) QCOMPARE(legend.entries.back().text, QString("and %1 more").arg(curves - named));
    ChartScene shown(figure, FigureStyle::fromPalette(QPalette(), QFont()), 96 / 72.0);
    shown.layout(size);
    QVERIFY2(shown.legend().height <= 0.4 * size.height() || shown.legend().entries.size() == 1,
             "on screen the curves keep most of the height");
  }

  void sparse_markers_stand_on_the_curve() {
    Curve curve = noise(5000, 3);
    curve.marker = Marker::square;
    curve.sparse = true;
    const Plane p = plane(0, 4999, -6, 6);
    const PreparedCurve prepared(curve, AxisScale{});
    const std::vector<QPointF> places = sparse_places(prepared, p, 1);
    QVERIFY(places.size() >= 5 && places.size() <= 8);
    for (const QPointF& at : places) {
      const auto i = prepared.nearest(p.from(at).x());
      QVERIFY(i && std::abs(p.to(curve.x[*i], curve.y[*i]).y() - at.y()) < 1e-6);
    }
    QCOMPARE(places.back(), p.to(4999, curve.y.back()));
  }

  void every_marker_shows() {
    for (const Marker marker : {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::wedge, Marker::cross}) {
      QImage image(40, 40, QImage::Format_RGB32);
      image.fill(Qt::white);
      QPainter painter(&image);
      paint_marker(painter, marker, {20, 20}, 10, Qt::black);
      painter.end();
      QCOMPARE(image.pixelColor(20, 20), QColor(Qt::black));
      QCOMPARE(image.pixelColor(1, 20), QColor(Qt::white));
    }
  }

  void wheel_zooms_and_double_click_shows_all() {
    FigureView view;
    Figure figure;
    figure.curves.push_back(noise(100, 1));
    view.resize(400, 300);
    view.setFigure(figure);
    view.show();
    view.grab();
    QVERIFY(!view.shownFigure().x.range);
    const QPointF middle(220, 130);
    QWheelEvent wheel(middle, view.mapToGlobal(middle), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(&view, &wheel);
    const auto range = view.shownFigure().x.range;
    QVERIFY(range);
    QVERIFY((*range)[0] > 0 && (*range)[1] < 99 && (*range)[0] < (*range)[1]);
    QTest::mouseDClick(&view, Qt::LeftButton, {}, middle.toPoint());
    QVERIFY(!view.shownFigure().x.range);
  }

  /// The values of all curves at the very x that the heading names, with as many decimals each.
  void the_read_out_is_of_one_place() {
    Figure figure{.id = "f", .title = "f", .x = {"step"}, .y = {"loss (nats)"}};
    Curve coarse{"coarse", {0, 100}, {3, 4}, {}}, fine{"fine", {0, 40, 60, 100}, {2.878, 2.878, 2.878, 2.878}, {}};
    figure.curves = {coarse, fine};
    const Figure asked = figure;
    ChartScene scene(prepare_figure(std::move(figure), {}), FigureStyle::forExport(), 1);
    scene.layout({600, 400}, {});
    const QPointF at = scene.plane().to(50, 3.2);
    const auto out = read_out(asked, scene, at, false);
    QVERIFY(out && out->lines.size() == 2);
    QCOMPARE(out->heading, QStringLiteral("50 step"));
    QStringList texts{out->lines[0].text, out->lines[1].text};
    texts.sort();
    QCOMPARE(texts, (QStringList{QStringLiteral("coarse  3.500"), QStringLiteral("fine  2.878")}));
    Figure large{.id = "l", .title = "l", .x = {"step"}, .y = {"tokens/s"}};
    large.curves = {{"a", {0, 100}, {19218, 19218}, {}}, {"b", {0, 100}, {18800, 18800}, {}}, {"c", {0, 100}, {900, 900}, {}}};
    ChartScene of_large(prepare_figure(large, {}), FigureStyle::forExport(), 1);
    of_large.layout({600, 400}, {});
    const auto told = read_out(large, of_large, of_large.plane().to(50, 15000), false);
    QVERIFY(told && told->lines.size() == 3);
    QCOMPARE(told->lines[0].text, QStringLiteral("a  19.22 k"));
    QCOMPARE(told->lines[1].text, QStringLiteral("b  18.80 k"));
    QCOMPARE(told->lines[2].text, QStringLiteral("c  0.90 k"));
  }

  /// Pointed at elsewhere, a small chart tells its values, and is not covered by their names.
  void a_linked_chart_stays_to_be_seen() {
    FigureView view;
    Figure figure{.id = "f", .title = "f", .x = {"step"}, .y = {"loss (nats)"}};
    for (const int k : {1, 2, 3}) figure.curves.push_back({"Top-1 Chunk exact, width 9" + std::to_string(k), {0, 1000}, {0, 1.0 * k}, {}});
    view.setCompact(true);
    view.resize(230, 150);
    view.setFigure(figure);
    view.show();
    const auto changed = [&](const QImage& a, const QImage& b) {
      int pixels = 0;
      for (int y = 0; y < a.height(); ++y)
        for (int x = 0; x < a.width(); ++x) pixels += a.pixel(x, y) != b.pixel(x, y);
      return pixels;
    };
    view.grab();
    const QImage before = view.grab().toImage();
    view.setLinkedX(500);
    const QImage linked = view.grab().toImage();
    QVERIFY(changed(before, linked) > 100);
    QVERIFY2(changed(before, linked) < before.width() * before.height() / 8, qPrintable(QString::number(changed(before, linked))));
    QTest::mouseMove(&view, view.plotArea().center().toPoint());
    QTRY_VERIFY(changed(before, view.grab().toImage()) > changed(before, linked));  // with names, where it is pointed at
  }

  /// What is told stands where no curve is, as long as there is such a place, and says in what names differ.
  void the_read_out_covers_no_curve() {
    Figure figure{.id = "f", .title = "f", .x = {"step"}, .y = {"loss (nats)"}};
    figure.y.range = {0, 10};
    for (const int k : {1, 2, 3})
      figure.curves.push_back({"Top-1 Chunk exact of a long name, learning rate 0.00" + std::to_string(k), {0, 1000}, {0, 0}, {}});
    const auto box = [](const Figure& asked, double x, double y) {
      ChartScene scene(prepare_figure(asked, {}), FigureStyle::forExport(), 1);
      scene.layout({700, 400}, {});
      const QPointF at = scene.plane().to(x, y);
      const auto out = read_out(asked, scene, at, false);
      if (!out) return std::pair(QRectF(), QRectF());
      for (const ReadOut::Line& line : out->lines)
        if (!line.text.contains("learning rate 0.00")) return std::pair(QRectF(), QRectF());
      const QRectF own = read_out_box(*out, scene, at);
      return std::pair(own, scene.plane().area);
    };
    for (const bool low : {true, false}) {
      for (size_t k = 0; k < figure.curves.size(); ++k)
        figure.curves[k].y = Column(std::vector<double>(2, (low ? 1 : 8) + 0.2 * static_cast<double>(k)));
      for (const double x : {100.0, 500.0, 900.0}) {
        const auto [own, area] = box(figure, x, low ? 1.1 : 8.1);  // the pointer is on the curves
        QVERIFY(own.isValid());
        QVERIFY2(low ? own.bottom() < area.center().y() : own.top() > area.center().y(), qPrintable(QString::number(x)));
      }
    }
  }

  /// Where the list beside it names the runs, the legend takes a line, however many there are.
  void a_legend_of_keys_takes_little() {
    Figure figure{.id = "f", .title = "f", .x = {"step"}, .y = {"loss (nats)"}};
    for (int i = 0; i < 40; ++i) figure.curves.push_back({"Transformer++, width " + std::to_string(i), {0, 1}, {0, 1.0 + i}, {}});
    figure.curves.push_back({"validation", {}, {}, {}});
    FigureStyle style = FigureStyle::forExport();
    style.legend = LegendKind::keys_only;
    ChartScene scene(prepare_figure(std::move(figure), {}), style, 1);
    scene.layout({900, 500}, {});
    QVERIFY2(scene.plane().area.height() > 400, qPrintable(QString::number(scene.plane().area.height())));
  }

  /// A long name is cut only where it would take the room of others.
  void one_row_of_a_legend_has_whole_names() {
    Figure figure{.id = "f", .title = "f", .x = {"step"}, .y = {"loss (nats)"}};
    for (const char* name : {"validation", "OOD", "training (Avey, width 64, initialisation uniform)"})
      figure.curves.push_back({name, {}, {}, {}});
    FigureStyle style = FigureStyle::forExport();
    style.legend = LegendKind::keys_only;
    ChartScene scene(prepare_figure(std::move(figure), {}), style, 1);
    scene.layout({500, 300}, {});
    QCOMPARE(scene.legend().entries.size(), size_t{3});
    QCOMPARE(scene.legend().entries[2].text, QStringLiteral("training (Avey, width 64, initialisation uniform)"));
    scene.layout({260, 300}, {});
    QVERIFY(scene.legend().entries[2].text.contains(QChar(0x2026)));
  }

  /// Names of cells stand at the axis where they fit, else numbers with the names in the title; never half places between them.
  void an_axis_of_names() {
    Figure figure{.id = "f", .title = "f", .x = {"length (tokens)"}, .y = {"depth (%)"}};
    figure.x.names = {"1000", "2000", "4000"}, figure.y.names = {"0–10", "50–60"};
    figure.map = HeatMap{.rows = 2, .columns = 3, .values = {0, 1, 0, 1, 0, 1}, .row_extent = {0.5, 2.5}, .column_extent = {0.5, 3.5}};
    QCOMPARE(named_ticks({1.5, 2.5}, figure.x.names, false).positions, (std::vector<double>{2}));
    QCOMPARE(cell_text(figure, {1, 2}), QStringLiteral("depth (%) 50–60, length (tokens) 4000:  1"));
    ChartScene scene(prepare_figure(std::move(figure), {}), FigureStyle::forExport(), 1);
    scene.layout({500, 300}, {});
    QCOMPARE(scene.labels(Qt::Horizontal), (QStringList{"1000", "2000", "4000"}));
    QCOMPARE(scene.labels(Qt::Vertical), (QStringList{"0–10", "50–60"}));
    scene.layout({120, 300}, {});
    QCOMPARE(scene.labels(Qt::Horizontal), (QStringList{"1", "2", "3"}));
  }

  /// Names of one kind that do not fit lose what all have, which the title says; numbers tell nothing.
  void names_of_an_axis_lose_what_all_have() {
    const std::vector<std::string> names{"mqar-length-32-pairs-4-vocabulary-64 (part)", "mqar-length-32-pairs-8-vocabulary-64 (part)",
                                         "mqar-length-64-pairs-8-vocabulary-64 (part)"};
    Figure figure{.id = "f", .title = "f", .x = {}, .y = {"share right"}};
    figure.x.names = names, figure.x.range = {{0.5, 3.5}};
    figure.curves.push_back({"c", {1, 2, 3}, {0.1, 0.2, 0.3}, {}});
    ChartScene scene(figure, FigureStyle::forExport(), 1);
    scene.layout({400, 300}, {});
    QCOMPARE(scene.labels(Qt::Horizontal), (QStringList{"32-pairs-4", "32-pairs-8", "64-pairs-8"}));
    scene.layout({1200, 300}, {});
    QCOMPARE(scene.labels(Qt::Horizontal).at(0), QString::fromStdString(names[0]));
    QCOMPARE(what_differs(names).common, std::string("mqar-length-…-vocabulary-64 (part)"));
    QCOMPARE(what_differs({"a-1", "a"}).common, std::string());
    QCOMPARE(what_differs({"copy", "sort"}).names, (std::vector<std::string>{"copy", "sort"}));
    QCOMPARE(what_differs({"a-1"}).names, (std::vector<std::string>{"a-1"}));
    QCOMPARE(what_differs({"1-1", "1-1-1"}).names, (std::vector<std::string>{"1-1", "1-1-1"}));
  }

  /// Names of several kinds that do not fit stand in several lines, before there are numbers alone.
  void names_of_an_axis_stand_in_lines() {
    Figure figure{.id = "f", .title = "f", .x = {}, .y = {"share right"}};
    figure.x.names = {"mqar-length-32-pairs-8-vocabulary-64", "mqar-length-60-pairs-8-vocabulary-64", "passkey-267"};
    figure.x.range = {{0.5, 3.5}};
    figure.curves.push_back({"c", {1, 2, 3}, {0.1, 0.2, 0.3}, {}});
    ChartScene scene(figure, FigureStyle::forExport(), 1);
    scene.layout({420, 300}, {});
    const QFontMetricsF metrics(scene.font());
    for (qsizetype i = 0; i < 3; ++i) {
      const QString label = scene.labels(Qt::Horizontal).at(i);
      QCOMPARE(QString(label).remove(QStringLiteral("<br>")), QString::fromStdString(figure.x.names[static_cast<size_t>(i)]));
      for (const QString& line : label.split(QStringLiteral("<br>"))) QVERIFY(metrics.horizontalAdvance(line) < 120);
    }
    QCOMPARE(scene.labels(Qt::Horizontal).at(2), QStringLiteral("passkey-267"));
    QVERIFY(scene.labels(Qt::Horizontal).at(0).contains(QStringLiteral("<br>")));
    scene.layout({130, 300}, {});
    QCOMPARE(scene.labels(Qt::Horizontal), (QStringList{"1", "2", "3"}));
    figure.x.names = {"loss < 3", "loss > 3", "passkey"};  // labels are HTML
    ChartScene marked(figure, FigureStyle::forExport(), 1);
    marked.layout({420, 300}, {});
    QCOMPARE(marked.labels(Qt::Horizontal), (QStringList{"loss &lt; 3", "loss &gt; 3", "passkey"}));
    QCOMPARE(lines_of_name("a b", metrics, 1000), QStringList{"a b"});
    QCOMPARE(lines_of_name("a b", metrics, metrics.horizontalAdvance("b")), (QStringList{"a ", "b"}));
    QCOMPARE(lines_of_name("a b c d", metrics, metrics.horizontalAdvance("b")), QStringList());
  }

  /// On a logarithmic axis of less than a decade labels come ever closer: none stands on another.
  void labels_do_not_touch() {
    Figure figure{.id = "f", .title = "f", .x = {"training FLOPs", true, false, {}}, .y = {"loss"}};
    figure.curves.push_back({"c", {1.05e11, 5.3e11}, {1, 2}, {}});
    FigureStyle style = FigureStyle::forExport();
    style.font_points = 11;
    for (double width = 150; width < 420; width += 3) {
      ChartScene scene(figure, style, 1);
      scene.layout({width, 160});
      const QFontMetricsF metrics(scene.font());
      const AxisScale& x = scene.plane().x;
      const QStringList labels = scene.labels(Qt::Horizontal);
      QVERIFY(!labels.isEmpty());
      double taken = -1e9;
      for (const QString& label : labels) {
        const double value = label.section(QRegularExpression("[^0-9.]"), 0, 0).toDouble() * 1e9;
        const double place = std::log(value / x.low) / std::log(x.high / x.low) * scene.plane().area.width();
        const double half = metrics.horizontalAdvance(label) / 2;
        QVERIFY2(place - half > taken, qPrintable(labels.join(", ") + QString(" in %1").arg(width)));
        taken = place + half;
      }
    }
  }

  /// A title loses letters of its settings, then of the name, which its colour tells too; values stay.
  void titles_keep_what_differs() {
    const QFontMetricsF metrics(QApplication::font());
    const auto fitted = [&](const char* whole, const char* as_wide_as) {
      return fittingTitle(whole, metrics, metrics.horizontalAdvance(QString::fromUtf8(as_wide_as)) + 1);
    };
    const char* const title = "Top-1 Chunk exact, width 80, heads 4";
    QCOMPARE(fitted(title, title), QString(title));
    const QString narrow = fitted(title, "Top-1… exact, width 80, heads 4");
    QVERIFY2(narrow.startsWith("Top-1") && narrow.endsWith("exact, width 80, heads 4") && narrow.contains("…"), qPrintable(narrow));
    QCOMPARE(fitted(title, "… width 80, heads 4"), QString("… width 80, heads 4"));
    QVERIFY(fitted(title, "… width 80").startsWith("…"));
    const char* const rates = "Gated DeltaNet, learning rate 0.003, expansion 4";
    QCOMPARE(fitted(rates, "Gated DeltaNet, lr 0.003, expansion 4"), QString("Gated DeltaNet, lr 0.003, expansion 4"));
    const QString values = fitted(rates, "Gate…Net, lr 0.003, exp… 4");
    QVERIFY2(values.startsWith("Gat") && values.contains("Net, lr 0.003, e") && values.endsWith("… 4"), qPrintable(values));
    const QString least = fitted(rates, "… lr 0.003, exp… 4");
    QVERIFY2(least.startsWith("… lr 0.003, exp") && least.endsWith("… 4"), qPrintable(least));
    const char* const name = "attention, learning_rate 0.003";  // what a person called a run: no colour tells any of it
    QCOMPARE(fitted(name, "attention, lr 0.003"), QString("attention, lr 0.003"));
    QCOMPARE(fitted(name, "atten…, lr 0.003"), QString("atten…, lr 0.003"));
    QCOMPARE(fitted("Avey", "Avey, width 80"), QString("Avey"));
    const char* const window = "Transformer++ window 64, learning rate 0.001";  // what it differs in stands in the name, too
    QCOMPARE(fitted(window, "Transformer++ window 64, lr 0.001"), QString("Transformer++ window 64, lr 0.001"));
    QCOMPARE(fitted(window, "… window 64, lr 0.001"), QString("… window 64, lr 0.001"));
    const char* const task = "RWKV-7, learning rate 0.027, task s-niah-1-bytes";  // a value that is a word gives way to the name
    QCOMPARE(fitted(task, "RWKV-7, lr 0.027, t… s-niah-1-bytes"), QString("RWKV-7, lr 0.027, t… s-niah-1-bytes"));
    QCOMPARE(fitted(task, "RWKV-7, lr 0.027, t… s-nia…"), QString("RWKV-7, lr 0.027, t… s-nia…"));
    QCOMPARE(fitted(task, "RWKV-7, lr 0.027"), QString("… lr 0.027"));
    QCOMPARE(fitted(window, "… lr 0.001, "), QString("… lr 0.001"));  // the rate rather than the first of the settings
  }

  /// Beside a title what matters most stays longest, and no word is cut in two.
  void words_beside_a_title_go_whole() {
    const QFontMetricsF metrics(QApplication::font());
    const QString whole("Avey, width 80 · step 200 · 1 = evenly spread");
    const auto fitted = [&](const QString& as_wide_as) { return fittingWords(whole, metrics, metrics.horizontalAdvance(as_wide_as) + 1); };
    QCOMPARE(fitted(whole), whole);
    QCOMPARE(fitted("Avey, width 80 · step 200 · 1 = even"), QString("Avey, width 80 · step 200 · …"));
    QCOMPARE(fitted("Avey, width 80 · st…"), QString("Avey, width 80 · …"));
    QCOMPARE(fitted("Avey, width 80"), QString("Avey, width 80"));
    QCOMPARE(fitted("A…, width 80"), QString("Avey, wi… 80"));
    Card card("Entropy by layer", whole, new FigureView);
    card.resize(260, 200);
    card.show();
    QVERIFY(QTest::qWaitForWindowExposed(&card));
    const QList<QLabel*> labels = card.findChildren<QLabel*>();
    QTRY_VERIFY(std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->toolTip() == whole; }));
  }

  void a_click_names_the_cell() {
    FigureView view;
    Figure figure;
    HeatMap map;
    map.rows = map.columns = 2;
    map.values = {0, 1, 2, 3};
    figure.map = map;
    view.resize(400, 300);
    view.setFigure(figure);
    view.show();
    view.grab();
    QSignalSpy clicks(&view, &FigureView::cellClicked);
    QTest::mouseClick(&view, Qt::LeftButton, {}, QPoint(90, 60));
    QCOMPARE(clicks.size(), 1);
    QCOMPARE(clicks[0], (QVariantList{0, 0}));
  }

  void the_summary_says_what_is_shown() {
    Figure figure;
    QCOMPARE(figure_summary(figure), QString("No data."));
    Curve curve;
    curve.label = "Avey";
    curve.x = {1, 2, 3};
    curve.y = {6, 2, 4};
    figure.curves.push_back(curve);
    figure.x.title = "step", figure.y.title = "loss (nats)";
    QCOMPARE(figure_summary(figure), QString("loss (nats) against step. Avey: from 6 at 1 to 4 at 3, least 2."));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::ChartsTest)
#include "charts_test.moc"
