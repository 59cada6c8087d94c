#include "app/workbench/render.h"

#include <QFile>
#include <QFileInfo>
#include <QStringList>
#include <cstdio>

#include "ui/charts/figure_view.h"
#include "ui/charts/page_painting.h"

namespace saccade::workbench {
namespace {

int fail(int code, const QString& text) {
  std::fprintf(stderr, "saccade-workbench: %s\n", qPrintable(text));
  return code;
}

}  // namespace

int render_figure(const QString& figure, const QString& out, bool dark) {
  const QString suffix = QFileInfo(out).suffix().toLower();
  if (!QStringList{QStringLiteral("pdf"), QStringLiteral("svg"), QStringLiteral("png"), QStringLiteral("csv"), QStringLiteral("tex")}
           .contains(suffix))
    return fail(2, QStringLiteral("--out %1: the name must end in .pdf, .svg, .png, .csv or .tex").arg(out));
  QFile file(figure);
  if (!file.open(QIODevice::ReadOnly)) return fail(3, QStringLiteral("%1: %2").arg(figure, file.errorString()));
  const QByteArray text = file.readAll();
  Figure read;
  FigurePage page;
  bool is_page = false;
  try {
    const nlohmann::json object = nlohmann::json::parse(text.begin(), text.end());
    is_page = object.is_object() && object.contains("panels");
    is_page ? static_cast<void>(page = page_from_json(object)) : static_cast<void>(read = figure_from_json(object));
  } catch (const std::exception& error) {
    return fail(3, QStringLiteral("%1: %2").arg(figure, QString::fromUtf8(error.what())));
  }
  ui::FigureStyle style = ui::FigureStyle::forExport();
  style.dark = dark;
  QString reason;
  if (is_page) return ui::exportPage(page, out, &reason) ? 0 : fail(1, reason);
  return ui::exportFigure(read, out, &reason, style) ? 0 : fail(1, reason);
}

}  // namespace saccade::workbench
