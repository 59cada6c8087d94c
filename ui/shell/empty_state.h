#pragma once
#include <QWidget>

class QAction;
class QLabel;
class QHBoxLayout;

namespace saccade::ui {

/// What an empty page shows: one sentence on why, one on what to do, and a button that does it.
class EmptyState : public QWidget {
  Q_OBJECT
 public:
  EmptyState(const QString& title, const QString& text, const QList<QAction*>& actions, QWidget* parent = nullptr);
  void setText(const QString& text);

 private:
  QLabel* text_;
};

}  // namespace saccade::ui
