#include "ui/run_actions.h"

#include <QAction>
#include <QClipboard>
#include <QDesktopServices>
#include <QGuiApplication>
#include <QUrl>

#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"
#include "ui/theme.h"

namespace saccade::ui {

RunActions::RunActions(Session& session, QObject* parent)
    : QObject(parent),
      stop(add(tr("&Stop run"), QStringLiteral("stop"), tr("Saves a checkpoint, then stops. It can be resumed."))),
      resume(add(tr("&Resume run"), QStringLiteral("resume"), tr("Goes on from the last checkpoint."))),
      openFolder(add(tr("Open run &folder"), QStringLiteral("folder"), tr("Shows the run's files in the file manager."))),
      copyPath(add(tr("&Copy run path"), QStringLiteral("copy"), tr("Copies the path of the run's folder."))),
      showOnly(add(tr("Show &only this run"), QString(), tr("Hides every other run in the charts."))),
      showAll(add(tr("Show &all runs"), QString(), tr("Shows every run in the charts."))),
      session_(session) {
  connect(stop, &QAction::triggered, this, [this] { session_.stopRun(session_.currentRun()); });
  connect(resume, &QAction::triggered, this, [this] { session_.resumeRun(session_.currentRun()); });
  connect(openFolder, &QAction::triggered, this, [this] { QDesktopServices::openUrl(QUrl::fromLocalFile(session_.currentRun())); });
  connect(copyPath, &QAction::triggered, this, [this] { QGuiApplication::clipboard()->setText(session_.currentRun()); });
  connect(showAll, &QAction::triggered, this, [this] { session_.runs()->setHidden({}); });
  connect(showOnly, &QAction::triggered, this, [this] {
    QStringList others;
    const RunList& runs = *session_.runs();
    for (int row = 0; row < runs.rowCount(); ++row) others << runs.index(row).data(RunList::DirectoryRole).toString();
    others.removeAll(session_.currentRun());
    session_.runs()->setHidden(others);
  });
  connect(&session_, &Session::currentRunChanged, this, &RunActions::update);
  connect(session_.runs(), &RunList::changed, this, &RunActions::update);
  update();
}

QAction* RunActions::add(const QString& text, const QString& icon, const QString& help) {
  auto* action = new QAction(themedIcon(icon), text, this);
  action->setToolTip(help);
  action->setStatusTip(help);
  return action;
}

void RunActions::update() {
  const Run* run = session_.runs()->run(session_.currentRun());
  stop->setEnabled(run && isActive(run->info().state));
  resume->setEnabled(run && canResume(run->info().state));
  for (QAction* action : {openFolder, copyPath}) action->setEnabled(!session_.currentRun().isEmpty());
  showOnly->setEnabled(run && session_.runs()->rowCount() > 1);
  showAll->setEnabled(!session_.runs()->hidden().isEmpty());
}

}  // namespace saccade::ui
