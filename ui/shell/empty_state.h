#pragma once
#include <QMap>
#include <QWidget>

class QAction;
class QLabel;
class QPushButton;

namespace saccade::ui {

/// What an empty page shows: one sentence on why, one on what to do, and a button that does it.
class EmptyState : public QWidget {
  Q_OBJECT
 public:
  EmptyState(const QString& title, const QString& text, const QList<QAction*>& actions, QWidget* parent = nullptr);
  void setText(const QString& text);
  /// Whether the action's button is seen.
  void offer(const QAction* action, bool offered);

 private:
  QLabel* text_;
  QMap<const QAction*, QPushButton*> buttons_;
};

}  // namespace saccade::ui
