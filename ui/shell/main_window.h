#pragma once
#include <QMainWindow>
#include <QMap>
#include <QTimer>
#include <vector>

#include "ui/theme.h"

class QDockWidget;
class QSettings;
class QStackedWidget;

namespace saccade::ui {

class EmptyState;
class MessageBar;
class Rail;
class RunActions;
class RunsPanel;
class Session;
struct Command;

/// Arranges rail, runs panel, page, messages and status; pages are made when first shown.
class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `settings` remember the window and where one was in it (Session::remember); null: nothing is remembered.
  MainWindow(Session& session, QSettings* settings, QWidget* parent = nullptr);

  QString page() const { return page_; }
  void setTheme(Theme theme);

 public Q_SLOTS:
  void showPage(const QString& id);
  void openFolder(const QString& folder);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void moveEvent(QMoveEvent* event) override;

 private:
  void makeMenus();
  void makeThemeMenu(QMenu* menu);
  std::vector<Command> commands();
  void chooseFolder();
  void rememberFolder(const QString& folder);
  void fillRecent(QMenu* menu);
  void showHelp();
  void showAbout();
  void showCurrent();
  void widenPanel();
  int panelWidth() const;
  void updateTitle();
  void restore();
  void save();

  Session& session_;
  QSettings* settings_;
  QTimer save_soon_;  ///< once it holds still
  RunActions* actions_;
  Rail* rail_;
  RunsPanel* panel_;
  QDockWidget* dock_;
  int panel_width_ = 0;  ///< of the dock, as chosen; 0: by the window's
  MessageBar* messages_;
  QStackedWidget* stack_;
  EmptyState* empty_ = nullptr;
  QAction* show_studies_ = nullptr;
  QMap<QString, QWidget*> made_;
  QString page_;
  Theme theme_ = Theme::system;
  QActionGroup* themes_ = nullptr;
};

}  // namespace saccade::ui
