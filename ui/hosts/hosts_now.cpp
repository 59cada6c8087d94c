#include "ui/hosts/hosts_now.h"

#include <QCoreApplication>

#include "analysis/remote/host_profile.h"
#include "analysis/remote/mirror.h"
#include "ui/mirror_text.h"

namespace saccade::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("HostsPage", text); }

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
    host.state = mirrorText(mirror);
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
