#include <sys/stat.h>

#include <QDir>
#include <QFile>
#include <QImage>
#include <QProcess>
#include <QRegularExpression>
#include <QSet>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <QtTest>

#include "analysis/figures/palette.h"
#include "tests/support/file_size_limit.h"
#include "ui/charts/colours.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/legend.h"

namespace saccade::test {

using namespace saccade::ui;

class FigureExportTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  static Figure curves() {
    Figure figure;
    figure.id = "loss";
    figure.title = "Loss <a & b>";
    figure.x = {"training tokens", false, false, {}};
    figure.y = {"loss (nats)", false, false, {}};
    figure.provenance = {"run abc, config 1234"};
    Curve curve;
    curve.label = "Transformer++";
    for (int i = 0; i < 20000; ++i) {
      curve.x.push_back(i);
      curve.y.push_back(3 + 1.0 / (1 + i) + 0.01 * (i % 7));
    }
    figure.curves.push_back(curve);
    return figure;
  }
  static Figure two_colours() {
    Figure figure;
    figure.id = "map";
    figure.title = "Map";
    HeatMap map;
    map.rows = map.columns = 32;
    for (int i = 0; i < 32 * 32; ++i) map.values.push_back((i / 32 + i) % 2 ? 1.0F : 0.0F);
    map.value_title = "weight";
    figure.map = map;
    figure.width_mm = 89;
    figure.height_mm = 80;
    return figure;
  }
  QString write(const Figure& figure, const QString& suffix) {
    const QString path = folder_.filePath(QString::fromStdString(figure.id) + "." + suffix);
    QString reason;
    if (!exportFigure(figure, path, &reason)) qWarning("%s", qPrintable(reason));
    return path;
  }
  static QByteArray read(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }
  static QString output(const QString& program, const QStringList& arguments) {
    QProcess process;
    process.start(program, arguments);
    process.waitForFinished();
    return QString::fromUtf8(process.readAllStandardOutput());
  }
  static bool have(const char* program) { return !QStandardPaths::findExecutable(program).isEmpty(); }
  /// Colours within a part of a picture, given in shares of its size.
  static QSet<QRgb> colours(const QImage& image, const QRectF& part) {
    QSet<QRgb> found;
    for (int y = static_cast<int>(part.top() * image.height()); y < part.bottom() * image.height(); ++y)
      for (int x = static_cast<int>(part.left() * image.width()); x < part.right() * image.width(); ++x) found.insert(image.pixel(x, y));
    return found;
  }

 private Q_SLOTS:
  void pdf_has_the_size_and_its_fonts() {
    if (!have("pdfinfo") || !have("pdffonts")) QSKIP("poppler-utils is not installed");
    const QString path = write(curves(), "pdf");
    const auto size = QRegularExpression("Page size:\\s+([0-9.]+) x ([0-9.]+)").match(output("pdfinfo", {path}));
    QVERIFY(size.hasMatch());
    QVERIFY(std::abs(size.captured(1).toDouble() - 140 / 25.4 * 72) <= 0.5);  // Qt keeps page sizes in whole points
    QVERIFY(std::abs(size.captured(2).toDouble() - 90 / 25.4 * 72) <= 0.5);
    const QStringList fonts = output("pdffonts", {path}).trimmed().split('\n').mid(2);
    QVERIFY(!fonts.isEmpty());
    for (const QString& font : fonts) {
      QVERIFY2(font.contains("TrueType"), qPrintable(font));
      QVERIFY2(QRegularExpression("\\byes\\s+(yes|no)\\s+yes\\b").match(font).hasMatch(), qPrintable(font));  // embedded, to Unicode
      QVERIFY(!font.contains("Type 3"));
    }
  }

  void pdf_maps_are_lossless() {
    if (!have("pdfimages")) QSKIP("poppler-utils is not installed");
    const QString path = write(two_colours(), "pdf");
    QVERIFY(!output("pdfimages", {"-list", path}).contains("jpeg"));
    output("pdfimages", {"-png", path, folder_.filePath("image")});
    bool seen = false;
    for (const QString& name : QDir(folder_.path()).entryList({"image-*.png"})) {
      const QImage image(folder_.filePath(name));
      if (image.width() != 32) continue;
      seen = true;
      QCOMPARE(colours(image, {0, 0, 1, 1}).size(), 2);
    }
    QVERIFY(seen);
  }

  void pdf_says_where_it_comes_from() {
    if (!have("pdfdetach")) QSKIP("poppler-utils is not installed");
    const QString path = write(curves(), "pdf"), out = folder_.filePath("provenance.txt");
    output("pdfdetach", {"-save", "1", "-o", out, path});
    QVERIFY(read(out).contains("config 1234"));
  }

  void png_has_size_resolution_text_and_two_colours() {
    const QImage image(write(two_colours(), "png"));
    QCOMPARE(image.width(), qRound(89 / 25.4 * 300));
    QCOMPARE(image.dotsPerMeterX(), 11811);
    QCOMPARE(image.text("Title"), QString("Map"));
    QVERIFY(image.text("Description").startsWith("Map of 32 rows"));
    QCOMPARE(colours(image, {0.3, 0.3, 0.2, 0.2}).size(), 2);
  }

  void the_page_grows_with_its_legend() {
    Figure figure = curves();
    QCOMPARE(figure_size_mm(figure, {}), QSizeF(140, 90));
    figure.curves[0].x.resize(3);
    for (int i = 0; i < 40; ++i) {
      figure.curves.push_back(figure.curves[0]);
      figure.curves.back().label = "our architecture " + std::to_string(i);
    }
    figure.id = "many";
    const QSizeF size = figure_size_mm(figure, {});
    QVERIFY(size.width() == 140 && size.height() > 110);
    const QByteArray svg = read(write(figure, "svg"));
    for (const Curve& curve : figure.curves)
      QVERIFY2(svg.contains(">" + QByteArray::fromStdString(curve.label) + "<"), curve.label.c_str());
    QCOMPARE(QImage(write(figure, "png")).height(), qRound(size.height() / 25.4 * 300));
  }

  void svg_is_well_formed_and_titled() {
    QXmlStreamReader xml(read(write(curves(), "svg")));
    QString title, description, width;
    int text = 0;
    while (!xml.atEnd()) {
      if (xml.readNext() != QXmlStreamReader::StartElement) continue;
      if (xml.name() == QLatin1String("svg")) width = xml.attributes().value("width").toString();
      if (xml.name() == QLatin1String("title"))
        title = xml.readElementText();
      else if (xml.name() == QLatin1String("desc"))
        description = xml.readElementText();
      else if (xml.name() == QLatin1String("text"))
        ++text;
    }
    QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
    QCOMPARE(title, QString("Loss <a & b>"));
    QVERIFY(description.contains("Transformer++: from 4") && description.contains("config 1234"));
    QCOMPARE(width, QString("140mm"));
    QVERIFY(text > 8);
  }

  void csv_holds_every_point() {
    const QByteArray csv = read(write(curves(), "csv"));
    QCOMPARE(QString::fromUtf8(csv), QString::fromStdString(to_csv(curves())));
    QVERIFY(csv.count('\n') > 20000);
  }

  /// The umask decides, as for any file that a person may give away; a run's own files are private.
  void others_may_read_what_the_umask_lets_them() {
    const mode_t before = ::umask(022);
    const QString file = write(curves(), "pdf");
    ::umask(before);
    QVERIFY(QFileInfo(file).permission(QFile::ReadGroup | QFile::ReadOther));
  }

  void vector_files_stay_small() { QVERIFY(QFileInfo(write(curves(), "pdf")).size() < 400'000); }

  /// A disk that is full at any size of the file, also where only the last buffer does not fit: told with the system's reason, and
  /// neither a part of the figure nor a file aside remains.
  void a_full_disk_is_told_data() {
    QTest::addColumn<QString>("suffix");
    for (const char* suffix : {"pdf", "svg", "png", "csv"}) QTest::newRow(suffix) << suffix;
  }
  void a_full_disk_is_told() {
    QFETCH(QString, suffix);
    Figure small = curves();
    for (Curve& curve : small.curves) curve.x.resize(20), curve.y.resize(20);
    const qint64 whole = QFileInfo(write(small, suffix)).size();
    const QTemporaryDir folder;
    const QString path = folder.filePath("figure." + suffix);
    for (const qint64 left : {qint64{0}, qint64{1}, whole / 2, whole - 5000, whole - 1}) {
      if (left < 0) continue;
      QString reason;
      bool written = true;
      {
        const FileSizeLimit limit(static_cast<rlim_t>(left));
        written = exportFigure(small, path, &reason);
      }
      QVERIFY2(!written && reason.contains(path) && reason.contains("File too large"), qPrintable(QString::number(left) + reason));
      QVERIFY(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden).isEmpty());
    }
    QString reason;
    QVERIFY2(exportFigure(small, path, &reason), qPrintable(reason));
    QCOMPARE(QFileInfo(path).size(), whole);
  }

  /// Below the curves, which keep their room, and in what the file says of itself.
  void notes_stand_below() {
    Figure noted = curves();
    const QSizeF before = figure_picture(noted, FigureStyle::forExport(), 100).size();
    noted.id = "noted";
    noted.notes = {"One rate only: Transformer++; Avey.",
                   "A second sentence that is so long that no line of the page holds all of it, as "
                   "those are that name fourteen architectures and what their searches found."};
    const QImage picture = figure_picture(noted, FigureStyle::forExport(), 100);
    QCOMPARE(picture.width(), static_cast<int>(before.width()));
    const double lines = (picture.height() - before.height()) / 100.0 * 72 / (0.85 * 9);  // of the type
    QVERIFY2(lines > 3 && lines < 6, qPrintable(QString::number(lines)));                 // three, and a margin
    const QRectF below(0, before.height() / picture.height(), 1, 1 - before.height() / picture.height());
    QVERIFY(colours(picture, below).size() > 4);  // grey type on the ground
    QVERIFY(read(write(noted, "svg")).contains("One rate only: Transformer++; Avey."));
  }

  void a_band_does_not_cover_the_label_of_a_line() {
    Figure figure = curves();
    Curve& curve = figure.curves[0];
    figure.vertical_line = 10000, figure.vertical_label = "trained length 10000";
    for (size_t i = 0; i < curve.x.size(); ++i) curve.low.push_back(2), curve.high.push_back(9);
    figure.y.range = std::array<double, 2>{3, 4};
    const QImage picture = figure_picture(figure, FigureStyle::forExport(), 150);
    const QRgb accent = FigureColours::of(false).accent.rgb();
    QVERIFY(colours(picture, {0.3, 0, 0.4, 0.4}).contains(accent));
  }

  /// What was measured at a few places says nothing of what lies between: there, no ink but the line's.
  void bars_stand_at_their_points_alone() {
    Figure figure;
    Curve curve{.label = "a", .x = {1, 2}, .y = {5, 5}, .colour = {0, 0, 0}, .marker = Marker::circle, .low = {2, 2}, .high = {8, 8}};
    figure.curves = {curve};
    figure.x.range = std::array<double, 2>{0, 3}, figure.y.range = std::array<double, 2>{0, 10};
    /// Dark columns of a strip at 7, between the line and the end of the bars, from x = 0.5 to 2.5.
    const auto inked = [&] {
      const QImage picture = figure_picture(figure, FigureStyle::forExport(), 150);
      int count = 0;
      for (int x = picture.width() / 5; x < picture.width() * 9 / 10; ++x)
        count += qGray(picture.pixel(x, picture.height() * 3 / 10)) < 235;
      return std::pair(count, picture.width());
    };
    const auto [band, width] = inked();
    QVERIFY2(band > width / 5, qPrintable(QString::number(band)));
    figure.curves[0].bars = 0;
    const int bars = inked().first;
    QVERIFY2(bars >= 2 && bars < 20, qPrintable(QString::number(bars)));
    figure.curves[0].low = {5, 5}, figure.curves[0].high = {5, 5};
    QCOMPARE(inked().first, 0);
    curve.low = {}, curve.high = {}, curve.bars = 0, figure.curves = {curve};  // without numbers
    QCOMPARE(inked().first, 0);
  }

  /// A line without a name would pass for a curve, Avey's for instance, whose colour a named one has.
  void a_line_without_a_name_has_no_colour() {
    Figure figure = curves();
    figure.vertical_line = 10000;
    const QRgb accent = FigureColours::of(false).accent.rgb();
    const auto has_accent = [&] { return colours(figure_picture(figure, FigureStyle::forExport(), 150), {0, 0, 1, 1}).contains(accent); };
    for (Curve& curve : figure.curves) curve.colour = {0, 0, 0};
    QVERIFY(!has_accent());
    figure.vertical_label = "trained length 10000";
    QVERIFY(has_accent());
  }

  /// As that of a fit: the others do not stand one below the other because of it.
  void one_long_name_does_not_widen_the_columns_of_a_legend() {
    Figure figure;
    const auto add = [&](const std::string& label) {
      Curve curve;
      curve.label = label, curve.x = std::vector<double>{1, 2}, curve.y = std::vector<double>{1, 2};
      figure.curves.push_back(curve);
    };
    for (int i = 0; i < 8; ++i) add("Architecture " + std::to_string(i));
    const auto rows = [&] {
      const QFontMetricsF metrics{QFont("Liberation Sans")};
      const Legend legend = legend_of(figure, metrics, {40 * metrics.horizontalAdvance("Archi"), 1e6}, 2, LegendKind::whole);
      return legend.height / (1.25 * metrics.height());
    };
    const double without = rows();
    add("x^−0.345 (0.301 to 0.389) + 1.234, Architecture 3 with a long name that says its settings");
    QVERIFY2(rows() <= without + 2, qPrintable(QString("%1 %2").arg(without).arg(rows())));
  }

  /// A page is made as high as its legend, and then has it whole.
  void a_long_legend_is_whole() {
    for (const int count : {12, 16, 17, 18, 23}) {
      Figure figure = curves();
      for (int i = 1; i < count; ++i) {
        figure.curves.push_back(figure.curves[0]);
        figure.curves.back().label = "Transformer++ window 32, weight decay 0.0007197, seed " + std::to_string(i);
      }
      figure.id = "long-legend";
      const QByteArray svg = read(write(figure, "svg"));
      QVERIFY2(svg.contains(QByteArray::number(count - 1) + "<") && !svg.contains(" more<"), QByteArray::number(count).constData());
    }
  }

  /// Fourteen long names: two columns of smaller type in place of one.
  void a_tall_legend_has_smaller_type() {
    Figure figure = curves();
    for (int i = 1; i < 14; ++i) {
      figure.curves.push_back(figure.curves[0]);
      figure.curves.back().label = "Transformer++ window 32, weight decay 0.0007" + std::to_string(10 + i);
    }
    QFont font("Liberation Sans");
    font.setPixelSize(18);
    const QFontMetricsF metrics(font);
    const double width = 26 * 2 + metrics.horizontalAdvance(QString::fromStdString(figure.curves.back().label));
    const auto legend = [&](double names) { return legend_of(figure, metrics, {names * width, 1e6}, 2, LegendKind::whole); };
    QVERIFY(legend(1.8).type < 1 && legend(1.8).entries.size() == 14);
    QVERIFY(legend(1.8).height < 0.5 * legend(1.2).height);
    QCOMPARE(legend(1.2).type, 1.0);  // not where it saves a fifth
    QCOMPARE(legend(3.5).type, 1.0);  // nor where it is low
  }

  /// Of many settings a legend names the architectures, in their own hues, but where there is one architecture only.
  void a_legend_of_many_settings_names_architectures() {
    const QFontMetricsF metrics{QFont("Liberation Sans")};
    Figure figure;
    const auto texts = [&](LegendKind kind) {
      QStringList all;
      for (const Legend::Entry& entry : legend_of(figure, metrics, {4000, 1e6}, 2, kind).entries) all << entry.text;
      return all;
    };
    const auto add = [&](const std::string& label) { figure.curves.push_back({label, {1, 2}, {1, 2}, {1, 2, 3}}); };
    for (int i = 0; i < 29; ++i) add("Gated DeltaNet, learning rate " + std::to_string(i));
    add("Avey, mean of 2");
    QCOMPARE(texts(LegendKind::whole).size(), 30);
    add("Gated DeltaNet, width 80");
    add("OOD");
    const QStringList named{"Gated DeltaNet, 30 curves", "Avey, mean of 2", "OOD"};
    QCOMPARE(texts(LegendKind::whole), named);
    const Legend legend = legend_of(figure, metrics, {4000, 1e6}, 2, LegendKind::whole);
    QCOMPARE(legend.entries[0].colour, architecture_colour("Gated DeltaNet"));
    QVERIFY(legend.entries[1].colour == figure.curves[29].colour);
    QCOMPARE(texts(LegendKind::fitting).size(), 32);
    figure.curves.erase(figure.curves.begin() + 29);
    add("Gated DeltaNet, width 96");
    QCOMPARE(texts(LegendKind::whole).size(), 32);
  }

  void failures_leave_nothing_behind() {
    QString reason;
    QVERIFY(!exportFigure(curves(), folder_.filePath("no/such/folder/a.pdf"), &reason));
    QVERIFY(reason.contains("no/such/folder"));
    QVERIFY(!exportFigure(curves(), folder_.filePath("a.gif"), &reason));
    QVERIFY(reason.contains(".pdf, .svg, .png or .csv"));
    QFile kept(folder_.filePath("kept.png"));
    QVERIFY(kept.open(QIODevice::WriteOnly) && kept.write("before") == 6);
    kept.close();
    QVERIFY(!exportFigure({}, kept.fileName(), &reason));
    QVERIFY(reason.contains("no data"));
    QCOMPARE(read(kept.fileName()), QByteArray("before"));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::FigureExportTest)
#include "figure_export_test.moc"
