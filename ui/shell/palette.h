#pragma once
#include <QDialog>
#include <functional>

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

/// Ctrl+K: a line to type in, and what matches all its words, best first. Arrows choose, Return does it, Escape closes.
class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  CommandPalette(std::vector<Command> commands, QWidget* parent);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search(const QString& words);
  void choose();

  std::vector<Command> commands_;
  QLineEdit* line_;
  QListWidget* list_;
};

}  // namespace saccade::ui
