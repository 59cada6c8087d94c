#include "ui/run_actions.h"

#include <QAction>
#include <QClipboard>
#include <QColorDialog>
#include <QDesktopServices>
#include <QFileInfo>
#include <QGuiApplication>
#include <QKeySequence>
#include <QUrl>

#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/run_trash.h"
#include "ui/session.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

constexpr auto control_shift = Qt::CTRL | Qt::SHIFT;

QString names(const QStringList& directories) {
  if (directories.size() > 3) return RunActions::tr("%1 runs").arg(directories.size());
  QStringList list;
  for (const QString& directory : directories) list << QFileInfo(directory).fileName();
  return list.join(QStringLiteral(", "));
}

}  // namespace

RunActions::RunActions(Session& session, QObject* parent)
    : QObject(parent),
      stop(add(tr("&Stop run"), QStringLiteral("stop"), tr("Saves a checkpoint, then stops. It can be resumed."),
               control_shift | Qt::Key_S)),
      resume(add(tr("&Resume run"), QStringLiteral("resume"), tr("Goes on from the last checkpoint."), control_shift | Qt::Key_R)),
      openFolder(add(tr("Open run &folder"), QStringLiteral("folder"), tr("Shows the run's files in the file manager."))),
      copyPath(add(tr("&Copy run path"), QStringLiteral("copy"), tr("Copies the path of the run's folder."), control_shift | Qt::Key_C)),
      showOnly(add(tr("Show &only these"), QString(), tr("Every page shows the marked runs and no others."), control_shift | Qt::Key_O)),
      showAll(add(tr("Show &all runs"), QString(), tr("Shows every run that passes the filter."), control_shift | Qt::Key_A)),
      baseline(add(tr("&Baseline"), QString(), tr("Others are measured against this run."), control_shift | Qt::Key_B)),
      star(add(tr("S&tar"), QString(), tr("Marks the runs for later; the filter “starred” shows these."), Qt::CTRL | Qt::Key_B)),
      colour(add(tr("Own co&lour …"), QString(), tr("Draws the marked runs in a colour of your own, with all their seeds."))),
      usual(add(tr("Colour of the architectu&re"), QString(), tr("Draws the marked runs in the colour of their architecture again."))),
      duplicate(
          add(tr("&Duplicate"), QStringLiteral("configure"), tr("Configures a run that begins as this one."), control_shift | Qt::Key_D)),
      fork(add(tr("&Fork from a checkpoint"), QStringLiteral("configure"),
               tr("Configures a run that goes on from one of this run's checkpoints with other settings."), control_shift | Qt::Key_F)),
      trash(add(tr("Move to &trash"), QString(), tr("Moves the marked runs to .trash beside the others; they can be brought back."),
                Qt::CTRL | Qt::Key_Delete)),
      restore(
          add(tr("&Undo moving to trash"), QString(), tr("Brings the runs back that were thrown away last."), control_shift | Qt::Key_Z)),
      session_(session) {
  connect(stop, &QAction::triggered, this, [this] { session_.stopRun(session_.currentRun()); });
  connect(resume, &QAction::triggered, this, [this] { session_.resumeRun(session_.currentRun()); });
  connect(openFolder, &QAction::triggered, this, [this] { QDesktopServices::openUrl(QUrl::fromLocalFile(session_.currentRun())); });
  connect(copyPath, &QAction::triggered, this, [this] { QGuiApplication::clipboard()->setText(session_.currentRun()); });
  connect(showAll, &QAction::triggered, this, [this] { session_.runs()->setHidden({}); });
  connect(showOnly, &QAction::triggered, this, [this] { session_.runs()->showOnly(these()); });
  baseline->setCheckable(true);
  connect(baseline, &QAction::triggered, this, [this](bool on) { session_.runs()->setBaseline(on ? session_.currentRun() : QString()); });
  star->setCheckable(true);
  connect(star, &QAction::triggered, this, &RunActions::setStar);
  connect(colour, &QAction::triggered, this, &RunActions::chooseColour);
  connect(usual, &QAction::triggered, this, [this] { session_.runs()->setColour(these(), {}); });
  connect(duplicate, &QAction::triggered, this, [this] { session_.duplicateRun(session_.currentRun()); });
  connect(fork, &QAction::triggered, this, [this] { session_.forkRun(session_.currentRun()); });
  connect(trash, &QAction::triggered, this, &RunActions::throwAway);
  connect(restore, &QAction::triggered, this, &RunActions::bringBack);
  connect(&session_, &Session::chosenChanged, this, &RunActions::update);
  connect(&session_, &Session::currentRunChanged, this, &RunActions::update);
  connect(session_.runs(), &RunList::changed, this, &RunActions::update);
  update();
}

QAction* RunActions::add(const QString& text, const QString& icon, const QString& help, const QKeySequence& keys) {
  auto* action = new QAction(themedIcon(icon), text, this);
  action->setToolTip(keys.isEmpty() ? help : QStringLiteral("%1 (%2)").arg(help, keys.toString(QKeySequence::NativeText)));
  action->setStatusTip(help);
  action->setData(keys);
  return action;
}

void RunActions::takeKeys() {
  for (QAction* action : all()) action->setShortcut(action->data().value<QKeySequence>());
}

/// The marked runs, else the current one.
QStringList RunActions::these() const { return session_.chosen().isEmpty() ? QStringList(session_.currentRun()) : session_.chosen(); }

void RunActions::setStar(bool starred) {
  const QStringList directories = these();
  for (const QString& directory : directories) {
    const Run* run = session_.runs()->run(directory);
    if (!run || run->notes().starred == starred) continue;
    RunNotes notes = run->notes();
    notes.starred = starred;
    try {
      session_.runs()->setNotes(directory, notes);
    } catch (const std::exception& error) {
      Q_EMIT session_.failed(QString::fromUtf8(error.what()));
    }
  }
}

void RunActions::chooseColour() {
  const QStringList chosen = these();
  const Run* run = session_.runs()->run(chosen.first());
  if (!run) return;
  const Colour now = session_.runs()->selection().look(*run).colour;
  auto* dialog = new QColorDialog(QColor(now.r, now.g, now.b), qobject_cast<QWidget*>(parent()));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Colour of %1").arg(session_.runs()->label(*run)));
  connect(dialog, &QColorDialog::colorSelected, this, [this, chosen](const QColor& own) { session_.runs()->setColour(chosen, own); });
  dialog->show();  // runs go on meanwhile
}

void RunActions::throwAway() {
  QString reason;
  const QStringList moved = trash_runs(these(), &reason);
  if (!reason.isEmpty()) Q_EMIT session_.failed(reason);
  if (!moved.isEmpty()) Q_EMIT session_.offered(tr("Moved to the trash: %1").arg(names(moved)), {tr("Undo"), [this] { bringBack(); }});
  session_.runs()->refresh();
  update();  // what can be brought back changed now; the list follows when it has been read
}

void RunActions::bringBack() {
  QString reason;
  const QStringList back = restore_runs(session_.runs()->folder(), &reason);
  if (!reason.isEmpty()) Q_EMIT session_.failed(reason);
  if (!back.isEmpty()) Q_EMIT session_.noted(tr("Back again: %1").arg(names(back)));
  session_.runs()->refresh();
  update();
}

void RunActions::update() {
  const Run* run = session_.runs()->run(session_.currentRun());
  stop->setEnabled(run && isActive(run->info().state));
  resume->setEnabled(run && canResume(run->info().state));
  for (QAction* action : {openFolder, copyPath}) action->setEnabled(!session_.currentRun().isEmpty());
  showOnly->setEnabled(run && session_.runs()->rowCount() > 1);
  baseline->setEnabled(run);
  baseline->setChecked(run && session_.runs()->selection().baseline() == session_.currentRun());
  star->setEnabled(run);
  star->setChecked(run && run->notes().starred);
  colour->setEnabled(run);
  const RunSelection& selection = session_.runs()->selection();
  usual->setEnabled(run && !selection.colours().isEmpty() && selection.colours().contains(selection.key(*run)));
  for (QAction* action : {duplicate, fork}) action->setEnabled(run);
  trash->setEnabled(!these().isEmpty() && !these().first().isEmpty());
  restore->setEnabled(trashed_runs(session_.runs()->folder()) > 0);
  showAll->setEnabled(!session_.runs()->hidden().isEmpty());
}

}  // namespace saccade::ui
