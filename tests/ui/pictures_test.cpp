#include <QDir>
#include <QImage>
#include <QPainter>
#include <QtTest>

#include "analysis/figures/derived.h"
#include "analysis/figures/figure.h"
#include "tests/analysis/fixture.h"
#include "ui/charts/chart_scene.h"

namespace saccade::test {

using namespace saccade::ui;

/// Charts and maps beside pictures of them in tests/ui/pictures. Only plot areas are compared, all of one size, for what stands around them
/// depends on the fonts of the machine. SACCADE_RENEW_PICTURES=1 writes the pictures anew: look at each before it is committed.
class PicturesTest : public QObject {
  Q_OBJECT

  static constexpr QSize kArea{260, 160};
  static constexpr int kColour = 48;      ///< of 255: more is another colour; grid lines, which follow the labels, are less
  static constexpr double kShare = 0.01;  ///< of the pixels that may have another one: edges of curves

  /// The plot area, painted as on a screen.
  static QImage painted(const Figure& figure, bool dark) {
    FigureStyle style;
    style.dark = dark;
    style.compact = true;
    ChartScene scene(figure, style, 96 / 72.0);
    QSizeF size = QSizeF(kArea) * 1.3;
    for (int i = 0; i < 8 && scene.plane().area.size() != QSizeF(kArea); ++i) {
      scene.layout(size);
      size += QSizeF(kArea) - scene.plane().area.size();
    }
    const QRectF area = scene.plane().area;
    if (area.size() != QSizeF(kArea)) qFatal("the plot area has another size");
    QImage image(kArea, QImage::Format_RGB32);
    image.fill(scene.colours().ground);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.translate(-area.topLeft());
    scene.paint(painter, 1, false);
    painter.end();
    return image;
  }

  static double other_pixels(const QImage& a, const QImage& b) {
    int count = 0;
    for (int y = 0; y < a.height(); ++y)
      for (int x = 0; x < a.width(); ++x) {
        const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
        count +=
            std::abs(qRed(p) - qRed(q)) > kColour || std::abs(qGreen(p) - qGreen(q)) > kColour || std::abs(qBlue(p) - qBlue(q)) > kColour;
      }
    return count / (static_cast<double>(a.width()) * a.height());
  }

  static Curve line(const char* label, Colour colour, double height, size_t points = 60) {
    Curve curve{label, {}, {}, colour};
    const Random random(static_cast<uint64_t>(100 * height), "pictures");
    for (size_t i = 1; i <= points; ++i) {
      curve.x.push_back(static_cast<double>(20 * i));
      curve.y.push_back(height + 3 * std::exp(-static_cast<double>(i) / 15) + 0.05 * random.normal(i));
    }
    return curve;
  }

  /// A solid, a dashed, a dotted curve with a band, and markers.
  static Figure losses() {
    Figure figure{.id = "losses", .title = "losses"};
    figure.x.logarithmic = true;
    figure.curves = {line("a", {0x1f, 0x6f, 0xb4}, 2), line("b", {0xd5, 0x5e, 0x00}, 2.6), line("c", {0x00, 0x7a, 0x5a}, 3.2)};
    figure.curves[0].width = 2.5;
    figure.curves[1].dash = Dash::dash, figure.curves[1].marker = Marker::square, figure.curves[1].sparse = true;
    figure.curves[2].dash = Dash::dot;
    for (const double y : figure.curves[2].y) figure.curves[2].low.push_back(y - 0.3), figure.curves[2].high.push_back(y + 0.3);
    return figure;
  }
  /// Of many more points than pixels, with a gap and a spike.
  static Figure envelope() {
    Figure figure{.id = "envelope", .title = "envelope"};
    figure.curves = {line("a", {0x1f, 0x6f, 0xb4}, 2, 20'000)};
    for (size_t i = 8000; i < 11'000; ++i) figure.curves[0].y.edit()[i] = std::nan("");
    figure.curves[0].y.edit()[15'000] = 4.5;
    return figure;
  }
  /// Both sides of zero, with a line at a step.
  static Figure symmetric() {
    Figure figure{.id = "symmetric", .title = "symmetric"};
    figure.curves = {line("a", {0x1f, 0x6f, 0xb4}, -1), line("b", {0xd5, 0x5e, 0x00}, 100)};
    for (double& y : figure.curves[0].y.edit()) y = -10 * y;
    make_symmetric(figure, false, true);
    figure.vertical_line = 400;
    return figure;
  }
  static Figure map(const FixtureOptions& options, MapKind kind) {
    return capture_figure(fixture_capture(options, 100, 0, "prose"), kind, 1, 0);
  }
  static Figure difference() {
    Figure figure = map({}, MapKind::weights);
    const Figure other = map({.seed = 7}, MapKind::weights);
    figure.map->diverging = true;
    for (size_t i = 0; i < figure.map->values.size(); ++i) {
      figure.map->values[i] -= 1.3F * other.map->values[i];
      if (i / 40 % 3 == 0) figure.map->values[i] *= -1;
    }
    figure.map->range = {-0.02, 0.02};
    return figure;
  }

 private Q_SLOTS:
  void looks_as_before_data() {
    QTest::addColumn<Figure>("figure");
    QTest::newRow("losses") << losses();
    QTest::newRow("envelope") << envelope();
    QTest::newRow("symmetric") << symmetric();
    QTest::newRow("weights") << map({}, MapKind::weights);
    QTest::newRow("weights-log") << log_colours(map({}, MapKind::weights));
    QTest::newRow("one-hot") << map({.mixer = "top1_element"}, MapKind::weights);
    QTest::newRow("chunk-scores") << map({.mixer = "top1_chunk"}, MapKind::score);
    QTest::newRow("maxsim") << map({.mixer = "avey"}, MapKind::maxsim);
    QTest::newRow("difference") << difference();
  }
  void looks_as_before() {
    QFETCH(Figure, figure);
    for (const bool dark : {false, true}) {
      const QImage now = painted(figure, dark);
      const QString name = QStringLiteral("%1-%2.png").arg(QTest::currentDataTag(), dark ? "dark" : "light");
      const QString file = QDir(qEnvironmentVariable("SACCADE_SOURCE_DIR")).filePath("tests/ui/pictures/" + name);
      if (qEnvironmentVariableIsSet("SACCADE_RENEW_PICTURES")) {
        QVERIFY2(now.save(file), qPrintable(file));
        continue;
      }
      const QImage before(file);
      QVERIFY2(before.size() == kArea, qPrintable(file));
      const double share = other_pixels(now, before);
      if (share > kShare) now.save(QDir::temp().filePath(name));
      QVERIFY2(share <= kShare, qPrintable(QStringLiteral("%1: %2 % of the pixels differ; as it is now: %3")
                                               .arg(name)
                                               .arg(100 * share, 0, 'f', 2)
                                               .arg(QDir::temp().filePath(name))));
    }
  }

  /// What the limits must not let pass.
  void small_faults_are_seen() {
    const QImage light = painted(losses(), false);
    const auto share = [&](const Figure& figure) { return other_pixels(painted(figure, false), light); };
    Figure figure = losses();
    figure.curves.pop_back();  // a band and a dotted line
    QVERIFY(share(figure) > kShare);
    figure = losses();
    figure.curves[0].colour = {0xd5, 0x5e, 0x00};
    QVERIFY(share(figure) > kShare);
    figure = losses();
    for (double& y : figure.curves[0].y.edit()) y += 0.15;
    QVERIFY(share(figure) > kShare);
    figure = losses();
    figure.x.logarithmic = false;
    QVERIFY(share(figure) > kShare);
    const Figure scores = map({.mixer = "top1_chunk"}, MapKind::score);
    figure = scores;
    std::reverse(figure.map->values.begin(), figure.map->values.end());
    QVERIFY(other_pixels(painted(figure, false), painted(scores, false)) > kShare);
    figure = scores;
    figure.map->marked.clear();
    QVERIFY(other_pixels(painted(figure, false), painted(scores, false)) > kShare);
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::PicturesTest)
#include "pictures_test.moc"
