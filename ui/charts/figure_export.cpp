#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QImageWriter>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <functional>

#include "ui/charts/colours.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/note_lines.h"
#include "ui/charts/page_painting.h"
#include "ui/files/write_file.h"

namespace saccade::ui {

namespace {

constexpr double kMillimetre = 1 / 25.4;  // inches
constexpr int kPngDpi = 300, kPdfDpi = 1200, kSvgDpi = 1440;

/// What goes onto a page, a single figure or several, and what its file says of itself.
struct Sheet {
  QSizeF mm;
  QString title, summary, provenance;
  QColor ground = {};  ///< invalid: none but in pictures
  int dpi = kPngDpi;
  std::function<void(QPainter&, const QRectF&)> paint;
};

QString provenance_of(const std::vector<std::string>& from) {
  QStringList lines;
  for (const std::string& line : from) lines << QString::fromStdString(line);
  lines << QStringLiteral("made with Saccade " SACCADE_VERSION);
  return lines.join(QLatin1Char('\n'));
}

/// The figure with its notes below it.
void paint_noted(QPainter& painter, const QRectF& area, const Figure& figure, const FigureStyle& style) {
  const double notes = notes_height_mm(figure, style) * area.width() / figure.width_mm;
  const QRectF above = area.adjusted(0, 0, 0, -notes);
  paintFigure(painter, above, figure, style);
  paint_notes(painter, QRectF(above.bottomLeft(), area.bottomRight()), figure, style);
}

Sheet sheet_of(const Figure& figure, const FigureStyle& style) {
  QStringList summary{figure_summary(figure)};
  for (const std::string& note : figure.notes) summary << QString::fromStdString(note);
  Sheet sheet{.mm = figure_size_mm(figure, style) + QSizeF(0, notes_height_mm(figure, style)),
              .title = QString::fromStdString(figure.title.empty() ? figure.id : figure.title),
              .summary = summary.join(QLatin1Char(' ')),
              .provenance = provenance_of(figure.provenance),
              .paint = [&figure, &style](QPainter& painter, const QRectF& area) { paint_noted(painter, area, figure, style); }};
  if (style.dark) sheet.ground = FigureColours::of(true).ground;
  return sheet;
}

Sheet sheet_of(const FigurePage& page) {
  QStringList summaries{QString::fromStdString(page.caption)};
  for (const Figure& panel : page.panels) summaries << figure_summary(panel);
  return {.mm = page_size_mm(page),
          .title = QString::fromStdString(page.title),
          .summary = summaries.join(QLatin1Char('\n')),
          .provenance = provenance_of(page.provenance),
          .dpi = static_cast<int>(page.style.dpi),
          .paint = [&page](QPainter& painter, const QRectF& area) { paintPage(painter, area, page); }};
}

QRectF area_of(const QSizeF& mm, double dpi) { return {QPointF(), mm * kMillimetre * dpi}; }

/// False when the device takes no painting.
bool paint_sheet(QPaintDevice& device, const QRectF& area, const Sheet& sheet, bool ground) {
  QPainter painter;
  if (!painter.begin(&device)) return false;
  painter.setRenderHint(QPainter::LosslessImageRendering);  // else QPdfWriter makes JPEG of maps
  if (ground || sheet.ground.isValid()) painter.fillRect(area, sheet.ground.isValid() ? sheet.ground : FigureColours::of(false).ground);
  sheet.paint(painter, area);
  return painter.end();
}

bool write_pdf(QIODevice& file, const Sheet& sheet) {
  QPdfWriter writer(&file);
  writer.setResolution(kPdfDpi);
  writer.setPageSize(QPageSize(sheet.mm, QPageSize::Millimeter, {}, QPageSize::ExactMatch));
  writer.setPageMargins(QMarginsF());
  writer.setTitle(sheet.title);
  writer.setCreator(QStringLiteral("Saccade " SACCADE_VERSION));
  writer.addFileAttachment(QStringLiteral("provenance.txt"), sheet.provenance.toUtf8(), QStringLiteral("text/plain"));
  return paint_sheet(writer, area_of(sheet.mm, kPdfDpi), sheet, false);
}

bool write_svg(QIODevice& file, const Sheet& sheet) {
  QSvgGenerator generator;
  const QRectF area = area_of(sheet.mm, kSvgDpi);
  generator.setOutputDevice(&file);
  generator.setResolution(kSvgDpi);
  generator.setSize(area.size().toSize());
  generator.setViewBox(area);
  generator.setTitle(sheet.title.toHtmlEscaped());
  generator.setDescription((sheet.summary + QLatin1Char('\n') + sheet.provenance).toHtmlEscaped());
  return paint_sheet(generator, area, sheet, false);
}

QImage picture_of(const Sheet& sheet) {
  QImage image(area_of(sheet.mm, sheet.dpi).size().toSize(), QImage::Format_RGB32);
  const int per_metre = static_cast<int>(std::lround(sheet.dpi / 0.0254));
  image.setDotsPerMeterX(per_metre);
  image.setDotsPerMeterY(per_metre);
  if (!paint_sheet(image, QRectF(image.rect()), sheet, true)) return {};
  image.setText(QStringLiteral("Title"), sheet.title);
  image.setText(QStringLiteral("Description"), sheet.summary);
  image.setText(QStringLiteral("Source"), sheet.provenance);
  image.setText(QStringLiteral("Software"), QStringLiteral("Saccade " SACCADE_VERSION));
  return image;
}

bool write_png(QIODevice& file, const Sheet& sheet) {
  const QImage image = picture_of(sheet);
  return !image.isNull() && QImageWriter(&file, "png").write(image);
}

bool write_text(QIODevice& file, const std::string& text) {
  return file.write(text.data(), static_cast<qint64>(text.size())) == static_cast<qint64>(text.size());
}

bool fail(QString* reason, const QString& text) {
  if (reason) *reason = text;
  return false;
}

/// In memory first: only what is whole goes to the disk, and every error there is told.
bool write_sheet(const Sheet& sheet, const QString& suffix, const std::string& text, const QString& path, QString* reason) {
  if (!(sheet.mm.width() > 0 && sheet.mm.height() > 0 && sheet.mm.width() < 2000 && sheet.mm.height() < 2000))
    return fail(reason, QStringLiteral("%1: a figure is 0 to 2000 mm wide and high").arg(path));
  QBuffer file;
  file.open(QIODevice::WriteOnly);
  const bool drawn = suffix == QLatin1String("pdf")   ? write_pdf(file, sheet)
                     : suffix == QLatin1String("svg") ? write_svg(file, sheet)
                     : suffix == QLatin1String("png") ? write_png(file, sheet)
                                                      : write_text(file, text);
  if (!drawn) return fail(reason, QStringLiteral("%1: could not be drawn").arg(path));
  return writeFile(path, file.data(), reason);
}

}  // namespace

QImage figure_picture(const Figure& figure, const FigureStyle& style, int dpi) {
  Sheet sheet = sheet_of(figure, style);
  sheet.dpi = dpi;
  return picture_of(sheet);
}

bool exportFigure(const Figure& figure, const QString& path, QString* reason, const FigureStyle& style) {
  const QString suffix = QFileInfo(path).suffix().toLower();
  if (!QStringList{"pdf", "svg", "png", "csv"}.contains(suffix))
    return fail(reason, QStringLiteral("%1: figures are written as .pdf, .svg, .png or .csv").arg(path));
  const Sheet sheet = sheet_of(figure, style);
  if (!has_data(figure)) return fail(reason, QStringLiteral("“%1” holds no data yet").arg(sheet.title));
  return write_sheet(sheet, suffix, suffix == QLatin1String("csv") ? to_csv(figure) : std::string(), path, reason);
}

bool exportPage(const FigurePage& page, const QString& path, QString* reason) {
  const QString suffix = QFileInfo(path).suffix().toLower();
  if (!QStringList{"pdf", "svg", "png", "csv", "tex"}.contains(suffix))
    return fail(reason, QStringLiteral("%1: pages are written as .pdf, .svg, .png, .csv or .tex").arg(path));
  const bool picture = suffix == QLatin1String("pdf") || suffix == QLatin1String("svg") || suffix == QLatin1String("png");
  if (picture && !std::any_of(page.panels.begin(), page.panels.end(), has_data))
    return fail(reason, page.panels.empty() ? QStringLiteral("“%1” is a table: write .tex or .csv").arg(QString::fromStdString(page.title))
                                            : QStringLiteral("“%1” holds no data yet").arg(QString::fromStdString(page.title)));
  return write_sheet(sheet_of(page), suffix, suffix == QLatin1String("csv") ? to_csv(page) : to_latex(page), path, reason);
}

}  // namespace saccade::ui
