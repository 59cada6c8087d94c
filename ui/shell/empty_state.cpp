#include "ui/shell/empty_state.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/theme.h"

namespace saccade::ui {

EmptyState::EmptyState(const QString& title, const QString& text, const QList<QAction*>& actions, QWidget* parent)
    : QWidget(parent), text_(new QLabel(text, this)) {
  auto* heading = new QLabel(title, this);
  QFont large = font();
  large.setPointSizeF(large.pointSizeF() * 1.35);
  large.setBold(true);
  heading->setFont(large);
  heading->setAlignment(Qt::AlignHCenter);
  text_->setAlignment(Qt::AlignHCenter);
  text_->setWordWrap(true);
  text_->setFixedWidth(440);
  auto* buttons = new QHBoxLayout;
  buttons->addStretch();
  for (QAction* action : actions) {
    auto* button = new QPushButton(action->icon(), action->iconText(), this);
    button->setAccessibleName(action->iconText());
    if (action == actions.first()) button->setDefault(true);
    if (!action->shortcut().isEmpty()) button->setToolTip(action->shortcut().toString(QKeySequence::NativeText));
    connect(button, &QPushButton::clicked, action, &QAction::trigger);
    buttons->addWidget(button);
    buttons_.insert(action, button);
  }
  buttons->addStretch();
  auto* words = new QHBoxLayout;  // centred by stretches: an alignment would not let the text be as high as its lines need
  words->addStretch();
  words->addWidget(text_);
  words->addStretch();
  auto* column = new QVBoxLayout(this);
  column->addStretch(2);
  column->addWidget(heading);
  column->addSpacing(6);
  column->addLayout(words);
  column->addSpacing(14);
  column->addLayout(buttons);
  column->addStretch(3);
}

void EmptyState::setText(const QString& text) { text_->setText(text); }

void EmptyState::offer(const QAction* action, bool offered) { buttons_.value(action)->setVisible(offered); }

}  // namespace saccade::ui
