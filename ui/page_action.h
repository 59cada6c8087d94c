#pragma once
#include <QAction>
#include <QKeySequence>
#include <QWidget>

namespace saccade::ui {

/// An action of a page: its keys work while the page has the focus, and stand in its help.
template <class What>
QAction* addPageAction(QWidget* page, const QString& text, const QString& help, const QKeySequence& keys, What what) {
  auto* action = new QAction(text, page);
  action->setShortcut(keys);
  action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  const QString shown = keys.toString(QKeySequence::NativeText);
  action->setToolTip(shown.isEmpty() ? help : QStringLiteral("%1 (%2)").arg(help, shown));
  QObject::connect(action, &QAction::triggered, page, what);
  page->addAction(action);
  return action;
}

}  // namespace saccade::ui
