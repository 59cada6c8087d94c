#include "ui/shell/reading_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include "ui/run_list.h"

namespace saccade::ui {
namespace {

constexpr int kLookMs = 100, kPatienceMs = 400;  ///< what is read within the second is not worth a word

}  // namespace

ReadingBar::ReadingBar(RunList& runs, QWidget* parent)
    : QWidget(parent), runs_(runs), words_(new QLabel(this)), bar_(new QProgressBar(this)), button_(new QToolButton(this)) {
  bar_->setTextVisible(false);
  bar_->setFixedSize(90, std::max(6, fontMetrics().height() / 2));
  bar_->setAccessibleName(tr("How many runs have been read"));
  button_->setAccessibleName(tr("Cancel the reading of runs"));
  button_->setAutoRaise(true);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 0, 0, 0);
  row->setSpacing(6);
  row->addWidget(words_);
  row->addWidget(bar_);
  row->addWidget(button_);
  hide();
  connect(button_, &QToolButton::clicked, this, [this] {
    halted_ ? runs_.readOn() : runs_.halt();
    since_.start();
    timer_.start();
    look();
  });
  timer_.setInterval(kLookMs);
  connect(&timer_, &QTimer::timeout, this, &ReadingBar::look);
  const auto begin = [this] {
    if (!timer_.isActive() && !runs_.progress().done()) since_.start(), timer_.start();
    if (runs_.progress().done() || runs_.progress().halted != halted_) look();
  };
  connect(&runs_, &RunList::changed, this, begin);
  connect(&runs_, &QAbstractItemModel::modelReset, this, begin);
  connect(&runs_, &QAbstractItemModel::rowsInserted, this, begin);
  since_.start();
  timer_.start();
}

void ReadingBar::look() {
  const ReadingProgress progress = runs_.progress();
  const bool reading = runs_.loading() || !progress.done();
  halted_ = progress.halted;
  if (!reading || halted_) timer_.stop();
  setVisible(reading && (halted_ || isVisible() || since_.elapsed() >= kPatienceMs));
  if (!isVisible()) return;
  bar_->setVisible(!halted_);
  bar_->setRange(0, progress.all);  // none known yet: to and fro
  bar_->setValue(progress.read);
  words_->setText(halted_             ? tr("%1 of %2 runs not read").arg(progress.all - progress.read).arg(progress.all)
                  : progress.all == 0 ? tr("Reading runs")
                                      : tr("Reading runs: %1 of %2").arg(progress.read).arg(progress.all));
  button_->setText(halted_ ? tr("Read on") : tr("Cancel"));
  button_->setAccessibleName(halted_ ? tr("Read the other runs") : tr("Cancel the reading of runs"));
  button_->setToolTip(halted_ ? tr("Read the runs that are left") : tr("Read no more runs; those that are there stay"));
}

}  // namespace saccade::ui
