#include <QActionGroup>
#include <QApplication>
#include <QDesktopServices>
#include <QDir>
#include <QDockWidget>
#include <QMenuBar>
#include <QSettings>
#include <QShortcut>
#include <QStackedWidget>
#include <QUrl>
#include <algorithm>
#include <functional>

#include "ui/configure/config_draft.h"
#include "ui/configure/presets.h"
#include "ui/page.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/empty_state.h"
#include "ui/shell/help.h"
#include "ui/shell/main_window.h"
#include "ui/shell/palette.h"
#include "ui/shell/runs_panel.h"

namespace saccade::ui {

void MainWindow::makeMenus() {
  const auto add = [this](QMenu* menu, const QString& text, const QKeySequence& keys, auto what) {
    QAction* action = menu->addAction(text, this, what);
    action->setShortcut(keys);
    return action;
  };
  QMenu* file = menuBar()->addMenu(tr("&File"));
  QAction* configure = add(file, tr("&New run …"), QKeySequence::New, [this] { showPage(QStringLiteral("configure")); });
  configure->setIcon(themedIcon(QStringLiteral("configure")));
  configure->setIconText(tr("Configure a run"));
  QAction* open = add(file, tr("&Open runs folder …"), QKeySequence::Open, [this] { chooseFolder(); });
  open->setIcon(themedIcon(QStringLiteral("folder")));
  open->setIconText(tr("Open another folder"));
  QMenu* recent = file->addMenu(tr("Open &recent"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecent(recent); });
  add(file, tr("Show in &file manager"), {}, [this] { QDesktopServices::openUrl(QUrl::fromLocalFile(session_.runs()->folder())); });
  file->addSeparator();
  add(file, tr("&Quit"), QKeySequence(Qt::CTRL | Qt::Key_Q), [this] { close(); });

  QMenu* run = menuBar()->addMenu(tr("&Run"));
  run->addActions(actions_->all());
  actions_->takeKeys();  // here: the pages have actions of the same kind

  QMenu* view = menuBar()->addMenu(tr("&View"));
  int number = 0;
  for (const Page& page : pages()) {
    QAction* action = add(view, page.title, number < 9 ? QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + number)) : QKeySequence(),
                          [this, id = page.id] { showPage(id); });
    action->setIcon(themedIcon(page.icon));
    if (page.id == QLatin1String("studies")) show_studies_ = action;
    ++number;
  }
  view->addSeparator();
  QAction* panel = dock_->toggleViewAction();
  panel->setText(tr("&Runs panel"));
  panel->setShortcut(Qt::Key_F9);
  view->addAction(panel);
  add(view, tr("Fi&nd a run"), QKeySequence::Find, [this] {
    dock_->show();
    panel_->focusFilter();
  });
  add(view, tr("&Search or run a command …"), QKeySequence(Qt::CTRL | Qt::Key_K), [this] {
    if (!findChild<CommandPalette*>()) new CommandPalette(commands(), this);
  });
  add(view, tr("Re&fresh"), QKeySequence(Qt::Key_F5), [this] { session_.runs()->refresh(); });
  makeThemeMenu(view->addMenu(tr("&Theme")));

  QMenu* help = menuBar()->addMenu(tr("&Help"));
  add(help, tr("&Keyboard and first steps"), QKeySequence(Qt::Key_F1), [this] { showHelp(); });
  add(help, tr("&About Saccade"), {}, [this] { showAbout(); });

  auto* menu_key = new QShortcut(Qt::Key_F10, this);
  connect(menu_key, &QShortcut::activated, this, [this, file] { menuBar()->setActiveAction(file->menuAction()); });

  empty_ = new EmptyState(tr("No runs here yet"), {}, {configure, open, show_studies_}, stack_);
  stack_->addWidget(empty_);
}

/// All that the palette finds: what the menus hold, and with it every page, every run, every preset and every setting.
std::vector<Command> MainWindow::commands() {
  std::vector<Command> found;
  const std::function<void(const QMenu*)> take = [&](const QMenu* menu) {
    for (QAction* action : menu->actions()) {
      if (action->menu()) take(action->menu());
      if (action->menu() || action->isSeparator() || !action->isEnabled()) continue;
      const QString text = action->text().remove(QLatin1Char('&')).remove(QStringLiteral(" …"));
      const bool is_page = std::any_of(pages().begin(), pages().end(), [&](const Page& page) { return page.title == text; });
      found.push_back({is_page ? tr("page") : tr("action"), text, action->shortcut().toString(QKeySequence::NativeText),
                       [action] { action->trigger(); }});
    }
  };
  for (const QAction* top : menuBar()->actions()) take(top->menu());
  std::stable_sort(found.begin(), found.end(), [](const Command& a, const Command& b) { return a.kind > b.kind; });  // pages first
  for (QAction* action : stack_->currentWidget()->actions())  // of the page that is seen
    if (action->isEnabled())
      found.push_back(
          {tr("action"), action->iconText(), action->shortcut().toString(QKeySequence::NativeText), [action] { action->trigger(); }});
  const RunList& runs = *session_.runs();
  for (int row = 0; row < runs.rowCount(); ++row) {
    const QString directory = runs.index(row).data(RunList::DirectoryRole).toString();
    if (const Run* run = runs.run(directory))
      found.push_back({tr("run"), tr("%1, %2").arg(runs.label(*run), QFileInfo(directory).fileName()), {}, [this, directory] {
                         session_.setCurrentRun(directory);
                       }});
  }
  for (const Preset& preset : presets())
    found.push_back({tr("preset"), preset.title, {}, [this, path = preset.path] { session_.startFromPreset(path); }});
  for (const FormField& field : ConfigDraft().fields()) {
    const QString pointer = QString::fromStdString(field.pointer);
    found.push_back({tr("setting"),
                     pointer.mid(1).replace(QLatin1Char('/'), QLatin1Char(' ')).replace(QLatin1Char('_'), QLatin1Char(' ')),
                     {},
                     [this, pointer] { session_.showSetting(pointer); }});
  }
  return found;
}

void MainWindow::makeThemeMenu(QMenu* menu) {
  themes_ = new QActionGroup(this);
  const std::pair<Theme, QString> choices[] = {
      {Theme::system, tr("As the &desktop")}, {Theme::light, tr("&Light")}, {Theme::dark, tr("Da&rk")}};
  for (const auto& [theme, text] : choices) {
    QAction* action = menu->addAction(text, this, [this, chosen = theme] { setTheme(chosen); });
    action->setCheckable(true);
    action->setChecked(theme == theme_);
    action->setData(static_cast<int>(theme));
    themes_->addAction(action);
  }
}

void MainWindow::fillRecent(QMenu* menu) {
  menu->clear();
  const QStringList folders = settings_ ? settings_->value(QStringLiteral("folders")).toStringList() : QStringList();
  for (const QString& folder : folders) menu->addAction(folder, this, [this, folder] { openFolder(folder); });
  if (folders.isEmpty()) menu->addAction(tr("none yet"))->setEnabled(false);
}

void MainWindow::showHelp() { help::showKeyboard(this); }
void MainWindow::showAbout() { help::showAbout(this); }

}  // namespace saccade::ui
