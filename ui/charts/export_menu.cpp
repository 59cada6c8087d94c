#include "ui/charts/export_menu.h"

#include <QClipboard>
#include <QDir>
#include <QFileDialog>
#include <QGuiApplication>
#include <QMenu>
#include <QSettings>
#include <QStandardPaths>

#include "ui/charts/figure_view.h"

namespace saccade::ui {

namespace {

constexpr auto kFolderKey = "figures/folder";

void ask_and_save(FigureView& view, const QString& suffix) {
  const Figure figure = view.shownFigure();
  const QString folder = QSettings().value(kFolderKey, QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation)).toString();
  auto* dialog =
      new QFileDialog(&view, FigureView::tr("Save figure"), folder, FigureView::tr("%1 file (*.%2)").arg(suffix.toUpper(), suffix));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(suffix);
  dialog->selectFile(view.fileName() + QLatin1Char('.') + suffix);
  QObject::connect(dialog, &QFileDialog::fileSelected, &view, [&view, figure](const QString& path) {
    QSettings().setValue(kFolderKey, QFileInfo(path).absolutePath());
    QString reason;
    if (exportFigure(figure, path, &reason))
      Q_EMIT view.exported(path);
    else
      Q_EMIT view.failed(reason);
  });
  dialog->show();  // not in front of what goes on
}

}  // namespace

QMenu* make_export_menu(FigureView& view) {
  auto* menu = new QMenu(&view);
  for (const char* suffix : {"pdf", "svg", "png", "csv"}) {
    const QString name = QString::fromLatin1(suffix);
    menu->addAction(FigureView::tr("Save as %1…").arg(name.toUpper()), &view, [&view, name] { ask_and_save(view, name); });
  }
  menu->addSeparator();
  menu->addAction(FigureView::tr("Copy picture"), &view, [&view] {
    constexpr int kDpi = 300;
    QGuiApplication::clipboard()->setImage(figure_picture(view.shownFigure(), FigureStyle::forExport(), kDpi));
  });
  menu->addAction(FigureView::tr("Copy numbers"), &view,
                  [&view] { QGuiApplication::clipboard()->setText(QString::fromStdString(to_csv(view.shownFigure()))); });
  menu->addSeparator();
  menu->addAction(FigureView::tr("Show all"), &view, &FigureView::showAll);
  QObject::connect(menu, &QMenu::aboutToShow, &view, [menu, &view] {
    for (QAction* action : menu->actions()) action->setEnabled(has_data(view.figure()));
  });
  return menu;
}

}  // namespace saccade::ui
