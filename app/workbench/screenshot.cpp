#include "app/workbench/screenshot.h"

#include <QApplication>
#include <QBuffer>
#include <QFileInfo>
#include <QPixmap>
#include <QTimer>
#include <QWidget>
#include <cstdio>

#include "ui/files/write_file.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::workbench {

int take_screenshot(QApplication& application, QWidget& window, ui::Session& session, const QString& file) {
  constexpr int drawing_ms = 2500;  // pages read captures and plan in worker threads; nobody signals that all have drawn
  const auto save = [&] {
    QBuffer picture;
    picture.open(QIODevice::WriteOnly);
    QString reason = QStringLiteral("%1: no picture of that kind can be made").arg(file);
    const QByteArray kind = QFileInfo(file).suffix().toLatin1();
    const bool saved = window.grab().save(&picture, kind.constData()) && ui::writeFile(file, picture.data(), &reason);
    if (!saved) std::fprintf(stderr, "saccade-workbench: %s\n", qPrintable(reason));
    QApplication::exit(saved ? 0 : 1);
  };
  QTimer looks;
  QObject::connect(&looks, &QTimer::timeout, &window, [&] {  // curves are read after the list
    if (session.runs()->loading() || session.runs()->unread() > 0) return;
    looks.stop();
    QTimer::singleShot(drawing_ms, &window, save);
  });
  looks.start(50);
  return application.exec();
}

}  // namespace saccade::workbench
