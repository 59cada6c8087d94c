#include "ui/hosts/hosts_now.h"

#include <QCoreApplication>
#include <QDateTime>

#include "analysis/remote/host_profile.h"
#include "analysis/remote/mirror.h"

namespace saccade::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("HostsPage", text); }

QString state_text(const std::optional<MirrorState>& mirror) {
  if (!mirror || mirror->seen.empty()) return mirror && !mirror->problem.empty() ? tr("not reached") : tr("not connected yet");
  if (mirror->connected) return tr("connected");
  const QDateTime seen = QDateTime::fromString(QString::fromStdString(mirror->seen), Qt::ISODate).toLocalTime();
  return tr("offline, as of %1").arg(seen.toString(QStringLiteral("d MMM HH:mm")));
}

HostNow read_host(const std::string& name) {
  HostNow host{QString::fromStdString(name), {}};
  try {
    host.profile = host_schema().write(load_host(name));
  } catch (const std::exception& error) {
    host.problem = QString::fromUtf8(error.what());
  }
  try {
    const auto folder = mirror_folder(name);
    std::error_code none;
    host.mirrored = std::filesystem::exists(folder, none);
    const std::optional<MirrorState> mirror = read_mirror(folder);
    host.state = state_text(mirror);
    if (!mirror) return host;
    if (!mirror->folder.empty()) host.details += tr(" · serves %1").arg(QString::fromStdString(mirror->folder));
    if (!mirror->connected && !mirror->problem.empty()) host.details += QStringLiteral("\n") + QString::fromStdString(mirror->problem);
    host.details += tr("\nmirrored in %1").arg(QString::fromStdString(mirror->root.string()));
  } catch (const std::exception& error) {
    host.state = QString::fromUtf8(error.what());
  }
  return host;
}

}  // namespace

std::vector<HostNow> read_hosts() {
  std::vector<HostNow> hosts;
  for (const std::string& name : host_names()) hosts.push_back(read_host(name));
  return hosts;
}

}  // namespace saccade::ui
