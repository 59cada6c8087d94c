#include "ui/shell/help.h"

#include <QAction>
#include <QCoreApplication>
#include <QDialog>
#include <QDialogButtonBox>
#include <QMainWindow>
#include <QMenu>
#include <QMenuBar>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "ui/fitting_dialog.h"

namespace saccade::ui::help {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("Help", text); }

/// Shown beside the window, never in front of its work.
void show_text(QMainWindow* window, const QString& title, const QString& html, const QSize& size) {
  auto* dialog = new QDialog(window);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  auto* text = new QTextBrowser(dialog);
  text->setHtml(html);
  text->setOpenExternalLinks(true);
  text->setFrameShape(QFrame::NoFrame);
  text->setAccessibleName(title);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::close);
  auto* column = new QVBoxLayout(dialog);
  column->addWidget(text);
  column->addWidget(buttons);
  resize_within_window(*dialog, size);
  dialog->show();
}

QString plain(QString text) { return text.remove(QLatin1Char('&')).remove(QStringLiteral(" …")).toHtmlEscaped(); }

QString line(const QString& keys, const QString& what) {
  return QStringLiteral("<tr><td style='padding:2px 18px 2px 0'><b>%1</b></td><td style='padding:2px 0'>%2</td></tr>")
      .arg(keys.toHtmlEscaped(), what);
}

QString shortcuts_of(const QMenu* menu) {
  QString rows;
  for (const QAction* action : menu->actions()) {
    if (action->menu()) rows += shortcuts_of(action->menu());
    if (!action->shortcut().isEmpty()) rows += line(action->shortcut().toString(QKeySequence::NativeText), plain(action->text()));
  }
  return rows;
}

}  // namespace

void showKeyboard(QMainWindow* window) {
  QString html =
      QStringLiteral("<h3>%1</h3><ol><li>%2</li><li>%3</li><li>%4</li></ol><h3>%5</h3><table>")
          .arg(tr("First steps"), tr("Configure a run and start it. It is a process of its own: closing this window leaves it alone."),
               tr("Follow it on Live; filter, tick and open in the runs panel what every page shows."),
               tr("See where a query reads from on Inspect, and what generalises better on Compare."), tr("Keyboard"));
  for (const QAction* action : window->menuBar()->actions())
    if (action->menu()) html += shortcuts_of(action->menu());
  html += line(QStringLiteral("F10"), tr("Open the menu"));
  html += line(QStringLiteral("Space"), tr("In the runs panel: show or hide the marked runs, on every page"));
  html += line(tr("Right, Left"), tr("In the runs panel: open seeds one by one, or draw their mean and deviation"));
  html += line(tr("+, −, Home"), tr("On a chart: look closer, less close, at all of it again; the wheel does so too"));
  html += line(tr("Left, Right, Return"), tr("On a chart: read values along it, open what is pointed at in Inspect"));
  html += line(tr("Ctrl+Left, Ctrl+Right"), tr("On a chart with a line: move the line"));
  html += line(tr("L, Shift+L"), tr("On Live: scale of the losses, of the x axis"));
  html += line(tr("Left, Right, Home, End"), tr("On Inspect: the query"));
  html += line(tr("Page Up, Page Down, Shift+arrows"), tr("On Inspect: layer and head"));
  html += line(tr("Ctrl+arrows"), tr("On Inspect: the step of training"));
  html += line(tr("Comma, period, W, Escape"), tr("On Inspect: source of a what-if, try it, drop it"));
  html += line(QStringLiteral("Return"), tr("In the runs panel: follow the run on Live"));
  html += line(QStringLiteral("Ctrl+Return"), tr("On Configure: start the run"));
  show_text(window, tr("Keyboard and first steps"), html + QStringLiteral("</table>"), {560, 680});
}

void showAbout(QMainWindow* window) {
  const QString html = QStringLiteral("<h3>Saccade " SACCADE_VERSION "</h3><p>%1</p><p>%2</p><p>%3</p>")
                           .arg(tr("A desktop workbench for people who design sequence-model architectures."),
                                tr("A saccade is the quick jump of the eye that picks where to look next."),
                                tr("Licensed under Apache-2.0. Built with Qt %1 (LGPL), HDF5 (BSD), Eigen (MPL-2.0), OpenBLAS (BSD), "
                                   "SentencePiece (Apache-2.0), "
                                   "nlohmann/json (MIT), zlib and zstd.")
                                    .arg(QString::fromLatin1(qVersion())));
  show_text(window, tr("About Saccade"), html, {440, 280});
}

}  // namespace saccade::ui::help
