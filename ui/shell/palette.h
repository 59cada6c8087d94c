#pragma once
#include <QFrame>
#include <QPointer>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace saccade::ui {

/// What can be found by its words and done at once: pages, actions, runs, settings.
struct Command {
  QString kind;  ///< "page", "action", "run", "setting"
  QString text;
  QString keys;  ///< its shortcut; may be empty
  std::function<void()> run;
};

/// Ctrl+K: a line to type in, and what matches all its words, best first, over the window. Arrows choose, Return does it; Escape closes it,
/// and so does going elsewhere.
class CommandPalette : public QFrame {
  Q_OBJECT
 public:
  CommandPalette(std::vector<Command> commands, QWidget* window);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search(const QString& words);
  void choose();
  void leave();

  std::vector<Command> commands_;
  QLineEdit* line_;
  QListWidget* list_;
  QPointer<QWidget> before_;  ///< had the focus
};

}  // namespace saccade::ui
