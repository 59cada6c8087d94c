#include "ui/configure/fork_bar.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>

#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "analysis/training/training_run.h"
#include "kernels/engine/error.h"
#include "ui/calm_wheel.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

void add_assignments(const Json& parent, const Json& draft, const std::string& section, QStringList& list) {
  for (const auto& [name, value] : draft.items()) {
    const std::string path = section.empty() ? name : section + "." + name;
    const Json before = parent.is_object() && parent.contains(name) ? parent.at(name) : Json();
    if (section.empty() && value.is_object())
      add_assignments(before, value, path, list);
    else if (value != before)
      list << QString::fromStdString(path + "=" + value.dump());
  }
}

}  // namespace

ForkBar::ForkBar(QWidget* parent) : QFrame(parent), title_(new QLabel(this)), steps_(new QComboBox(this)), close_(new QToolButton(this)) {
  setFrameShape(QFrame::StyledPanel);
  title_->setWordWrap(true);
  title_->setBuddy(steps_);
  steps_->setAccessibleName(tr("Checkpoint to fork from"));
  steps_->setToolTip(tr("Weights, the optimizer's state and the place in the text are taken from this checkpoint."));
  calm_wheel(steps_);
  close_->setText(tr("No fork"));
  close_->setAccessibleName(tr("No fork: a run from the beginning"));
  close_->setToolTip(tr("Keeps the settings, for a run that begins at step 0."));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 4, 4, 4);
  row->addWidget(title_, 1);
  row->addWidget(steps_);
  row->addWidget(close_);
  hide();
  connect(steps_, &QComboBox::currentIndexChanged, this, &ForkBar::stepChanged);
  connect(close_, &QToolButton::clicked, this, &ForkBar::closed);
}

bool ForkBar::setRun(const QString& directory, const QString& name, qint64 step) {
  const std::vector<int64_t> steps = checkpoint_steps(directory.toStdString());
  if (steps.empty()) return false;
  const QSignalBlocker quiet(steps_);
  run_ = directory;
  title_->setText(tr("Fork of %1. Model, tokenizer, precision and optimizer stay; goes on from").arg(name));
  steps_->clear();
  for (const int64_t each : steps) steps_->addItem(tr("step %1").arg(each), static_cast<qlonglong>(each));
  const int at = steps_->findData(static_cast<qlonglong>(step));
  steps_->setCurrentIndex(at >= 0 ? at : steps_->count() - 1);
  show();
  return true;
}

void ForkBar::clear() {
  run_.clear();
  hide();
}

qint64 ForkBar::step() const { return steps_->currentData().toLongLong(); }

QWidgetList ForkBar::stops() const { return {steps_, close_}; }

QStringList fork_assignments(const Json& parent, const Json& draft) {
  QStringList list;
  add_assignments(parent, draft, "", list);
  return list;
}

std::optional<RunConfig> resolve_fork(const QString& run, qint64 step, const ConfigDraft& draft, ConfigProblem* problem) {
  Fork fork{run.toStdString(), step, {}};
  for (const QString& each : fork_assignments(draft.preset(), draft.json())) fork.overrides.push_back(each.toStdString());
  try {
    return fork_config(fork);
  } catch (const Error& error) {
    std::string message = error.what();
    if (const std::string origin = (fork.parent / "run.json").string() + ": "; message.rfind(origin, 0) == 0)
      message.erase(0, origin.size());
    *problem = {message, pointer_in(message, draft.fields())};
    return {};
  }
}

}  // namespace saccade::ui
