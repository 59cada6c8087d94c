// What the page that configures runs starts: runs, and forks of them.
#include <QPushButton>

#include "ui/configure/configure_page.h"
#include "ui/configure/fork_bar.h"
#include "ui/configure/preset_picker.h"
#include "ui/configure/problem_label.h"
#include "ui/configure/settings_form.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/where_choice.h"

namespace saccade::ui {

/// What is written becomes a fork of a run, with the run's own settings to begin with.
void ConfigurePage::fork(const QString& directory, qint64 step) {
  const Run* run = session_.runs()->run(directory);
  if (!run) return;
  if (!fork_->setRun(directory, session_.runs()->label(*run), step))
    return Q_EMIT session_.failed(tr("%1 has no checkpoint to fork from yet.").arg(session_.runs()->label(*run)));
  draft_.start(run->info().config);
  draft_.keepModel(true);
  presets_->setCurrent(PresetPicker::selected_run);
  showView(QStringLiteral("form"));
  follow();
  form_->reveal("/training/steps");
}

void ConfigurePage::endFork() {
  fork_->clear();
  draft_.keepModel(false);
  follow();
}

void ConfigurePage::start() {
  if (!config_ || !starting_.isEmpty()) return;
  QString problem;
  const QMetaObject::Connection connections[] = {
      connect(&session_, &Session::runStarted, this, [this](const QString& run) { starting_ = run; }),
      connect(&session_, &Session::failed, this, [&](const QString& why) { problem = why; })};
  const QByteArray config = QByteArray::fromStdString(to_json(*config_).dump(2));
  if (fork_->run().isEmpty())
    session_.startRun(config, where_->place());
  else
    session_.startFork(fork_->run(), fork_->step(), fork_assignments(draft_.preset(), draft_.json()), config);
  for (const QMetaObject::Connection& connection : connections) disconnect(connection);
  start_->setEnabled(starting_.isEmpty());
  starting_.isEmpty() ? outcome_->say(problem) : outcome_->note(tr("Starting: its text and its model are being prepared …"));
}

/// The run that was started stands on the disk, or never will: then this page stays, where it can be mended.
void ConfigurePage::endStart(const QString& run, const QString& problem) {
  if (run != starting_ || run.isEmpty()) return;
  starting_.clear();
  start_->setEnabled(config_.has_value());
  outcome_->say(problem);
  if (problem.isEmpty() && isVisible()) session_.showPage(QStringLiteral("live"));
}

}  // namespace saccade::ui
