#include "ui/shell/main_window.h"

#include <QActionGroup>
#include <QCloseEvent>
#include <QCoreApplication>
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QLayout>
#include <QMimeData>
#include <QResizeEvent>
#include <QScreen>
#include <QSettings>
#include <QStackedWidget>
#include <QTimer>
#include <QToolBar>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/mirror_keeper.h"
#include "ui/page.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/empty_state.h"
#include "ui/shell/message_bar.h"
#include "ui/shell/rail.h"
#include "ui/shell/runs_panel.h"
#include "ui/shell/status_bar.h"

namespace saccade::ui {
namespace {
constexpr int kPanelWidth = 310, kWidePanel = 420;  // until another is chosen, in narrow and in wide windows
constexpr int layout_version = 1;                   // of docks and bars; raise it when their names change

QString startedText(const QString& directory) {
  return MainWindow::tr("%1 was started. It goes on when this window is closed.").arg(QFileInfo(directory).fileName());
}
}  // namespace

MainWindow::MainWindow(Session& session, QSettings* settings, QWidget* parent)
    : QMainWindow(parent),
      session_(session),
      settings_(settings),
      actions_(new RunActions(session, this)),
      rail_(new Rail),
      panel_(new RunsPanel(session, *actions_)),
      dock_(new QDockWidget(tr("Runs"), this)),
      messages_(new MessageBar),
      stack_(new QStackedWidget) {
  session_.remember(settings_);
  setWindowIcon(QIcon(QStringLiteral(":/icons/io.github.saccade.Workbench.svg")));
  setAcceptDrops(true);
  setContextMenuPolicy(Qt::NoContextMenu);

  auto* bar = new QToolBar(tr("Pages"), this);
  bar->setObjectName(QStringLiteral("pages"));
  bar->setMovable(false);
  bar->layout()->setContentsMargins(0, 0, 0, 0);
  rail_->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
  bar->addWidget(rail_);
  addToolBar(Qt::LeftToolBarArea, bar);

  dock_->setObjectName(QStringLiteral("runs"));
  dock_->setWidget(panel_);
  dock_->setAllowedAreas(Qt::LeftDockWidgetArea | Qt::RightDockWidgetArea);
  dock_->setFeatures(QDockWidget::DockWidgetClosable);
  dock_->setTitleBarWidget(new QWidget(dock_));  // the panel speaks for itself; View shows and hides it
  addDockWidget(Qt::LeftDockWidgetArea, dock_);
  panel_width_ = settings ? settings->value(QStringLiteral("panel")).toInt() : 0;

  auto* centre = new QWidget(this);
  auto* column = new QVBoxLayout(centre);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(messages_);
  column->addWidget(stack_, 1);
  setCentralWidget(centre);

  auto* status = new StatusBar(session, this);
  setStatusBar(status);
  makeMenus();

  connect(rail_, &Rail::chosen, this, &MainWindow::showPage);
  connect(status, &StatusBar::folderClicked, this, &MainWindow::chooseFolder);
  connect(&session, &Session::pageRequested, this, &MainWindow::showPage);
  connect(&session, &Session::folderRequested, this, &MainWindow::openFolder);
  connect(&session, &Session::failed, messages_, &MessageBar::showError);
  connect(&session, &Session::noted, messages_, &MessageBar::showNote);
  connect(&session, &Session::offered, messages_, &MessageBar::showOffer);
  connect(&session, &Session::currentRunChanged, this, &MainWindow::updateTitle);
  connect(session.runs(), &RunList::changed, this, &MainWindow::showCurrent,
          Qt::QueuedConnection);  // a page is made in an event of its own
  connect(session.runs(), &RunList::changed, this, &MainWindow::updateTitle);
  connect(&session, &Session::runStarted, this, [this](const QString& directory) {
    messages_->showNote(startedText(directory));
    session_.runs()->refresh();
  });
  connect(&session, &Session::runEnded, this, [this](const QString& directory) { messages_->withdraw(startedText(directory)); });
  constexpr int kStill = 300;  // ms
  save_soon_.setSingleShot(true);
  save_soon_.setInterval(kStill);
  connect(&save_soon_, &QTimer::timeout, this, &MainWindow::save);
  connect(dock_, &QDockWidget::visibilityChanged, this, [this] {
    if (isVisible()) save_soon_.start();  // not as the window comes and goes
  });
  QCoreApplication::instance()->installEventFilter(this);
  if (settings_) new MirrorKeeper(this);
  restore();
  updateTitle();
  panel_->setFocus();
}

void MainWindow::showPage(const QString& id) {
  const auto& all = pages();
  const auto wanted = std::find_if(all.begin(), all.end(), [&](const Page& page) { return page.id == id; });
  if (wanted == all.end()) return;
  page_ = id;
  rail_->setCurrent(id);
  showCurrent();
  save();
}

/// The chosen page, or what to do first when it needs runs and there are none.
void MainWindow::showCurrent() {
  const auto& all = pages();
  const auto chosen = std::find_if(all.begin(), all.end(), [&](const Page& page) { return page.id == page_; });
  if (chosen == all.end()) return;
  if (chosen->needs_runs && session_.runs()->rowCount() == 0) {
    const QString folder = session_.runs()->folder();
    const bool loading = session_.runs()->loading(), studies = !loading && session_.runs()->besideStudies();
    empty_->setText(loading   ? tr("Reading %1 …").arg(folder)
                    : studies ? tr("The folder %1 holds studies, and no run beside them. The page Studies opens their runs.").arg(folder)
                              : tr("The folder %1 holds no runs. Configure one and start it, or open a folder that has some.").arg(folder));
    empty_->offer(show_studies_, studies);
    stack_->setCurrentWidget(empty_);
    return widenPanel();
  }
  QWidget*& widget = made_[page_];
  const bool fresh = !widget;
  if (fresh) {
    widget = chosen->make(session_, stack_);
    stack_->addWidget(widget);
  }
  const auto ask_for_room = [](QWidget* page, bool room) {
    const QSizePolicy::Policy policy = room ? QSizePolicy::Preferred : QSizePolicy::Ignored;
    page->setSizePolicy(policy, policy);
  };
  // Pages that are not seen ask for none, and what has had no place yet does not know what it needs: the window would grow for it.
  for (QWidget* page : std::as_const(made_)) ask_for_room(page, page == widget && !fresh);
  stack_->setCurrentWidget(widget);
  QTimer::singleShot(0, this, [this, page = widget, ask_for_room] {  // once the page has its place
    ask_for_room(page, page == stack_->currentWidget());
    widenPanel();
  });
}

/// As it was chosen; else wide windows show longer names.
int MainWindow::panelWidth() const { return panel_width_ > 0 ? panel_width_ : std::clamp(width() * 21 / 100, kPanelWidth, kWidePanel); }

/// As wide as it is to be, where a narrow window or a wide page had taken some of that, or the window was a wider one.
void MainWindow::widenPanel() {
  const int wanted = panelWidth();
  if (dock_->isVisible() && (dock_->width() < wanted || (panel_width_ == 0 && dock_->width() > wanted)))
    resizeDocks({dock_}, {wanted}, Qt::Horizontal);
}

void MainWindow::openFolder(const QString& folder) {
  if (!QDir(folder).exists()) return messages_->showError(tr("%1 is no folder.").arg(folder));
  session_.runs()->setFolder(folder);
  rememberFolder(session_.runs()->folder());
  showCurrent();
}

void MainWindow::chooseFolder() {
  auto* dialog = new QFileDialog(this, tr("Open a folder of runs"), session_.runs()->folder());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly);
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::openFolder);
  dialog->show();  // runs go on meanwhile
}

void MainWindow::rememberFolder(const QString& folder) {
  if (!settings_) return;
  QStringList recent = settings_->value(QStringLiteral("folders")).toStringList();
  recent.removeAll(folder);
  recent.prepend(folder);
  settings_->setValue(QStringLiteral("folders"), recent.mid(0, 8));
}

void MainWindow::updateTitle() {
  const int row = session_.runs()->row(session_.currentRun());
  const QString run = row < 0 ? QString() : session_.runs()->index(row).data().toString();
  setWindowTitle(run.isEmpty() ? tr("Saccade") : tr("%1 — Saccade").arg(run));
}

void MainWindow::setTheme(Theme theme) {
  theme_ = theme;
  applyTheme(theme);
  save();
  for (QAction* action : themes_->actions()) action->setChecked(action->data().toInt() == static_cast<int>(theme));
}

void MainWindow::restore() {
  const QSize room = screen()->availableSize();
  resize(std::min(1360, room.width()), std::min(860, room.height()));
  if (!settings_) return;
  restoreGeometry(settings_->value(QStringLiteral("geometry")).toByteArray());
  restoreState(settings_->value(QStringLiteral("state")).toByteArray(), layout_version);
}

/// What is remembered of the window itself; the rest keeps itself (Place).
void MainWindow::save() {
  if (!settings_) return;
  settings_->setValue(QStringLiteral("geometry"), saveGeometry());
  settings_->setValue(QStringLiteral("state"), saveState(layout_version));
  if (panel_width_ > 0) settings_->setValue(QStringLiteral("panel"), panel_width_);
  if (!page_.isEmpty()) settings_->setValue(QStringLiteral("page"), page_);  // a theme comes first
  settings_->setValue(QStringLiteral("theme"), themeName(theme_));
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (settings_) {
    save();
    rememberFolder(session_.runs()->folder());
  }
  QMainWindow::closeEvent(event);
}

/// The geometry is kept as it changes, too: not every window is closed.
void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  widenPanel();
  if (isVisible()) save_soon_.start();
}

void MainWindow::moveEvent(QMoveEvent* event) {
  QMainWindow::moveEvent(event);
  if (isVisible()) save_soon_.start();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.size() == 1 && QFileInfo(urls.first().toLocalFile()).isDir()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) { openFolder(event->mimeData()->urls().first().toLocalFile()); }

/// Ctrl+K is the window's also where a line of text would take it (to delete to its end).
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && watched == dock_ && (QGuiApplication::mouseButtons() & Qt::LeftButton)) {  // its edge is dragged
    panel_width_ = dock_->width();
    save_soon_.start();
  }
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_K && key->modifiers() == Qt::ControlModifier && isActiveWindow()) return true;
  }
  return QMainWindow::eventFilter(watched, event);
}

/// Icons are drawn from the palette: everything that shows one repaints with it.
void MainWindow::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::ApplicationPaletteChange)
    for (QWidget* child : findChildren<QWidget*>()) child->update();
  QMainWindow::changeEvent(event);
}

}  // namespace saccade::ui
