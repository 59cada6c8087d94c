#include "ui/mirror_text.h"

#include <QCoreApplication>
#include <QDateTime>

namespace saccade::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("HostsPage", text); }

}  // namespace

QString mirrorText(const std::optional<MirrorState>& mirror) {
  if (!mirror || mirror->seen.empty()) return mirror && !mirror->problem.empty() ? tr("not reached") : tr("not connected yet");
  if (mirror->connected) return tr("connected");
  const QDateTime seen = QDateTime::fromString(QString::fromStdString(mirror->seen), Qt::ISODate).toLocalTime();
  return tr("offline, as of %1").arg(seen.toString(QStringLiteral("d MMM HH:mm")));
}

}  // namespace saccade::ui
