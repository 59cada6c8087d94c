#include "app/workbench/render.h"

#include <QFile>
#include <QFileInfo>
#include <QStringList>
#include <cstdio>

#include "ui/charts/figure_view.h"

namespace saccade::workbench {
namespace {

int fail(int code, const QString& text) {
  std::fprintf(stderr, "saccade-workbench: %s\n", qPrintable(text));
  return code;
}

}  // namespace

int render_figure(const QString& figure, const QString& out, bool dark) {
  const QString suffix = QFileInfo(out).suffix().toLower();
  if (!QStringList{QStringLiteral("pdf"), QStringLiteral("svg"), QStringLiteral("png"), QStringLiteral("csv")}.contains(suffix))
    return fail(2, QStringLiteral("--out %1: the name must end in .pdf, .svg, .png or .csv").arg(out));
  QFile file(figure);
  if (!file.open(QIODevice::ReadOnly)) return fail(3, QStringLiteral("%1: %2").arg(figure, file.errorString()));
  const QByteArray text = file.readAll();
  Figure read;
  try {
    read = figure_from_json(nlohmann::json::parse(text.begin(), text.end()));
  } catch (const std::exception& error) {
    return fail(3, QStringLiteral("%1: %2").arg(figure, QString::fromUtf8(error.what())));
  }
  ui::FigureStyle style = ui::FigureStyle::forExport();
  style.dark = dark;
  QString reason;
  return ui::exportFigure(read, out, &reason, style) ? 0 : fail(1, reason);
}

}  // namespace saccade::workbench
