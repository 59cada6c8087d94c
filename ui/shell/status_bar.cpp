#include "ui/shell/status_bar.h"

#include <QApplication>
#include <QDir>
#include <QLabel>
#include <QPointer>
#include <QThreadPool>
#include <QTimer>
#include <QToolButton>

#include "kernels/device.h"
#include "kernels/parallel.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

QString shortened(const QString& folder) {
  const QString home = QDir::homePath();
  return folder.startsWith(home + QLatin1Char('/')) ? QLatin1Char('~') + folder.mid(home.size()) : folder;
}

/// May take a moment where a GPU has to be asked.
QString name_of_device() {
  try {
    const Device device = parse_device("auto");
    if (!device.is_cpu()) return QString::fromStdString(to_string(device));
    return StatusBar::tr("CPU %1, %2 threads").arg(QString::fromStdString(cpu_name()).simplified()).arg(thread_count());
  } catch (const std::exception& error) {
    return QString::fromUtf8(error.what());
  }
}

}  // namespace

StatusBar::StatusBar(Session& session, QWidget* parent)
    : QStatusBar(parent), session_(session), device_(new QLabel(this)), running_(new QLabel(this)), folder_(new QToolButton(this)) {
  setSizeGripEnabled(false);
  setContentsMargins(8, 0, 4, 0);
  device_->setToolTip(tr("Where runs are trained, and the memory free there"));
  folder_->setAutoRaise(true);
  folder_->setToolTip(tr("Open another folder of runs (Ctrl+O)"));
  addWidget(device_);
  addWidget(running_);
  addPermanentWidget(folder_);
  connect(folder_, &QToolButton::clicked, this, &StatusBar::folderClicked);
  connect(session.runs(), &RunList::changed, this, &StatusBar::updateRuns);
  connect(session.runs(), &QAbstractItemModel::modelReset, this, &StatusBar::updateRuns);
  auto* timer = new QTimer(this);
  connect(timer, &QTimer::timeout, this, &StatusBar::updateDevice);
  timer->start(5000);
  QThreadPool::globalInstance()->start([bar = QPointer<StatusBar>(this)] {
    const QString name = name_of_device();
    QMetaObject::invokeMethod(
        qApp,
        [bar, name] {
          if (!bar) return;
          bar->device_name_ = name;
          bar->updateDevice();
        },
        Qt::QueuedConnection);
  });
  updateRuns();
}

void StatusBar::updateDevice() {
  const MemoryState memory = cpu_memory();
  device_->setText(
      tr("%1 · %2 of %3 free")
          .arg(device_name_, formatBytes(static_cast<double>(memory.available)), formatBytes(static_cast<double>(memory.total))));
}

void StatusBar::updateRuns() {
  const RunList& runs = *session_.runs();
  int active = 0;
  for (int row = 0; row < runs.rowCount(); ++row) {
    const QModelIndex run = runs.index(row);
    if (run.data(RunList::ProblemRole).toString().isEmpty() && isActive(static_cast<RunState>(run.data(RunList::StateRole).toInt())))
      ++active;
  }
  running_->setText(active == 0 ? tr("no run at work") : active == 1 ? tr("1 run at work") : tr("%1 runs at work").arg(active));
  const QString folder = tr("runs in %1").arg(shortened(runs.folder()));
  folder_->setText(folder);
  folder_->setAccessibleName(folder);
}

}  // namespace saccade::ui
