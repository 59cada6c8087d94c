#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QImageWriter>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>

#include "ui/charts/colours.h"
#include "ui/charts/figure_view.h"
#include "ui/files/write_file.h"

namespace saccade::ui {

namespace {

constexpr double kMillimetre = 1 / 25.4;  // inches
constexpr int kPngDpi = 300, kPdfDpi = 1200, kSvgDpi = 1440;

QString title_of(const Figure& figure) { return QString::fromStdString(figure.title.empty() ? figure.id : figure.title); }

QString provenance_of(const Figure& figure) {
  QStringList lines;
  for (const std::string& line : figure.provenance) lines << QString::fromStdString(line);
  lines << QStringLiteral("made with Saccade " SACCADE_VERSION);
  return lines.join(QLatin1Char('\n'));
}

QRectF page(const QSizeF& mm, double dpi) { return {QPointF(), mm * kMillimetre * dpi}; }

/// False when the device takes no painting.
bool paint_page(QPaintDevice& device, const QRectF& area, const Figure& figure, const FigureStyle& style, bool ground) {
  QPainter painter;
  if (!painter.begin(&device)) return false;
  painter.setRenderHint(QPainter::LosslessImageRendering);  // else QPdfWriter makes JPEG of maps
  if (ground || style.dark) painter.fillRect(area, FigureColours::of(style.dark).ground);
  paintFigure(painter, area, figure, style);
  return painter.end();
}

bool write_pdf(QIODevice& file, const Figure& figure, const FigureStyle& style) {
  QPdfWriter writer(&file);
  writer.setResolution(kPdfDpi);
  const QSizeF size = figure_size_mm(figure, style);
  writer.setPageSize(QPageSize(size, QPageSize::Millimeter, {}, QPageSize::ExactMatch));
  writer.setPageMargins(QMarginsF());
  writer.setTitle(title_of(figure));
  writer.setCreator(QStringLiteral("Saccade " SACCADE_VERSION));
  writer.addFileAttachment(QStringLiteral("provenance.txt"), provenance_of(figure).toUtf8(), QStringLiteral("text/plain"));
  return paint_page(writer, page(size, kPdfDpi), figure, style, false);
}

bool write_svg(QIODevice& file, const Figure& figure, const FigureStyle& style) {
  QSvgGenerator generator;
  const QRectF area = page(figure_size_mm(figure, style), kSvgDpi);
  generator.setOutputDevice(&file);
  generator.setResolution(kSvgDpi);
  generator.setSize(area.size().toSize());
  generator.setViewBox(area);
  generator.setTitle(title_of(figure).toHtmlEscaped());
  generator.setDescription((figure_summary(figure) + QLatin1Char('\n') + provenance_of(figure)).toHtmlEscaped());
  return paint_page(generator, area, figure, style, false);
}

bool write_png(QIODevice& file, const Figure& figure, const FigureStyle& style) {
  const QImage image = figure_picture(figure, style, kPngDpi);
  return !image.isNull() && QImageWriter(&file, "png").write(image);
}

bool write_csv(QIODevice& file, const Figure& figure) {
  const std::string text = to_csv(figure);
  return file.write(text.data(), static_cast<qint64>(text.size())) == static_cast<qint64>(text.size());
}

bool fail(QString* reason, const QString& text) {
  if (reason) *reason = text;
  return false;
}

}  // namespace

QImage figure_picture(const Figure& figure, const FigureStyle& style, int dpi) {
  QImage image(page(figure_size_mm(figure, style), dpi).size().toSize(), QImage::Format_RGB32);
  const int per_metre = static_cast<int>(std::lround(dpi / 0.0254));
  image.setDotsPerMeterX(per_metre);
  image.setDotsPerMeterY(per_metre);
  if (!paint_page(image, QRectF(image.rect()), figure, style, true)) return {};
  image.setText(QStringLiteral("Title"), title_of(figure));
  image.setText(QStringLiteral("Description"), figure_summary(figure));
  image.setText(QStringLiteral("Source"), provenance_of(figure));
  image.setText(QStringLiteral("Software"), QStringLiteral("Saccade " SACCADE_VERSION));
  return image;
}

bool exportFigure(const Figure& figure, const QString& path, QString* reason, const FigureStyle& style) {
  const QString suffix = QFileInfo(path).suffix().toLower();
  if (!QStringList{"pdf", "svg", "png", "csv"}.contains(suffix))
    return fail(reason, QStringLiteral("%1: figures are written as .pdf, .svg, .png or .csv").arg(path));
  if (!has_data(figure)) return fail(reason, QStringLiteral("“%1” holds no data yet").arg(title_of(figure)));
  if (!(figure.width_mm > 0 && figure.height_mm > 0 && figure.width_mm < 2000 && figure.height_mm < 2000))
    return fail(reason, QStringLiteral("%1: a figure is 0 to 2000 mm wide and high").arg(path));
  QBuffer file;  // in memory: only what is whole goes to the disk, and every error there is told
  file.open(QIODevice::WriteOnly);
  const bool drawn = suffix == "pdf"   ? write_pdf(file, figure, style)
                     : suffix == "svg" ? write_svg(file, figure, style)
                     : suffix == "png" ? write_png(file, figure, style)
                                       : write_csv(file, figure);
  if (!drawn) return fail(reason, QStringLiteral("%1: could not be drawn").arg(path));
  return writeFile(path, file.data(), reason);
}

}  // namespace saccade::ui
