#include "ui/shell/status_bar.h"

#include <QApplication>
#include <QDir>
#include <QLabel>
#include <QPointer>
#include <QThreadPool>
#include <QTimer>
#include <QToolButton>

#include "kernels/engine/device.h"
#include "kernels/engine/parallel.h"
#include "models/training/plan.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"
#include "ui/shell/reading_bar.h"
#include "ui/threads/hand_over.h"

namespace saccade::ui {
namespace {

QString shortened(const QString& folder) {
  const QString home = QDir::homePath();
  return folder.startsWith(home + QLatin1Char('/')) ? QLatin1Char('~') + folder.mid(home.size()) : folder;
}

/// "NVIDIA H200 (cuda:0)", "CPU … , 16 threads".
QString name_of(Device device) {
  if (!device.is_cpu())
    return QStringLiteral("%1 (%2)").arg(QString::fromStdString(gpu_name(device)), QString::fromStdString(to_string(device)));
  return StatusBar::tr("CPU %1, %2 threads").arg(QString::fromStdString(cpu_name()).simplified()).arg(thread_count());
}

/// May take a moment where a GPU has to be asked.
QString describe_device() {
  const Device device = parse_device("auto");
  const MemoryState memory = device_memory(device);
  return StatusBar::tr("%1 · %2 of %3 free")
      .arg(name_of(device), formatBytes(static_cast<double>(memory.available)), formatBytes(static_cast<double>(memory.total)));
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
  addWidget(new ReadingBar(*session.runs(), this));
  addPermanentWidget(folder_);
  connect(folder_, &QToolButton::clicked, this, &StatusBar::folderClicked);
  connect(session.runs(), &RunList::changed, this, &StatusBar::updateRuns);
  connect(session.runs(), &QAbstractItemModel::modelReset, this, &StatusBar::updateRuns);
  auto* timer = new QTimer(this);
  connect(timer, &QTimer::timeout, this, &StatusBar::updateDevice);
  timer->start(5000);
  updateDevice();
  updateRuns();
}

void StatusBar::updateDevice() {
  if (asking_) return;
  asking_ = true;
  start_in(*QThreadPool::globalInstance(), [bar = QPointer<StatusBar>(this)] {
    const QString text = describe_device();
    hand_over(qApp, [bar, text] {
      if (!bar) return;
      bar->asking_ = false;
      bar->device_->setText(text);
    });
  });
}

void StatusBar::updateRuns() {
  const RunList& runs = *session_.runs();
  int active = 0;
  for (int row = 0; row < runs.rowCount(); ++row) {
    const QModelIndex run = runs.index(row);
    if (run.data(RunList::ProblemRole).toString().isEmpty() && isActive(static_cast<RunState>(run.data(RunList::StateRole).toInt())))
      ++active;
  }
  running_->setText(QStringLiteral("· ") + (active == 0   ? tr("no run at work")
                                            : active == 1 ? tr("1 run at work")
                                                          : tr("%1 runs at work").arg(active)));
  const QString folder = tr("runs in %1").arg(shortened(runs.folder()));
  folder_->setText(folder);
  folder_->setAccessibleName(folder);
}

}  // namespace saccade::ui
