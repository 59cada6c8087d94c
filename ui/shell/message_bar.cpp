#include "ui/shell/message_bar.h"

#include <QClipboard>
#include <QEvent>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>

#include "ui/theme.h"

namespace saccade::ui {

MessageBar::MessageBar(QWidget* parent)
    : QFrame(parent),
      icon_(new QLabel(this)),
      text_(new QLabel(this)),
      copy_(new QPushButton(tr("Copy details"), this)),
      close_(new QToolButton(this)) {
  setFrameShape(QFrame::NoFrame);
  setAutoFillBackground(true);
  setAccessibleName(tr("Message"));
  text_->setAccessibleName(tr("Message"));
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  text_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  copy_->setAccessibleName(tr("Copy details"));
  close_->setIcon(themedIcon(QStringLiteral("close")));
  close_->setAutoRaise(true);
  close_->setAccessibleName(tr("Close message"));
  close_->setToolTip(tr("Close"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(icon_);
  row->addWidget(text_, 1);
  row->addWidget(copy_);
  row->addWidget(close_);
  connect(copy_, &QPushButton::clicked, this, &MessageBar::copyDetails);
  connect(close_, &QToolButton::clicked, this, &MessageBar::closeMessage);
  hide();
}

void MessageBar::showError(const QString& text) { add(text, true); }

void MessageBar::showNote(const QString& text) {
  add(text, false);
  QTimer::singleShot(8000, this, [this, text] {
    messages_.removeIf([&](const Message& message) { return !message.error && message.text == text; });
    showFirst();
  });
}

void MessageBar::closeMessage() {
  if (!messages_.isEmpty()) messages_.removeFirst();
  showFirst();
}

void MessageBar::add(const QString& text, bool error) {
  if (!messages_.isEmpty() && messages_.first().text == text)
    ++messages_.first().times;
  else
    messages_.prepend({text, error, 1});
  showFirst();
}

void MessageBar::showFirst() {
  setVisible(!messages_.isEmpty());
  if (messages_.isEmpty()) return;
  const Message& first = messages_.first();
  const QPalette base = QGuiApplication::palette();
  QPalette colours = base;
  const QColor tint = first.error ? errorColour(base) : base.color(QPalette::Highlight);
  colours.setColor(QPalette::Window, blend(base.color(QPalette::Base), tint, 0.16));
  setPalette(colours);
  icon_->setPixmap(themedIcon(first.error ? QStringLiteral("problem") : QStringLiteral("information")).pixmap(18, 18));
  QString text = first.text;
  if (first.times > 1) text += tr(" (%1 times)").arg(first.times);
  if (messages_.size() > 1) text += tr("\nand %1 more").arg(messages_.size() - 1);
  text_->setText(text);
  text_->setAccessibleName(text);
  copy_->setVisible(first.error);
}

/// Of the theme, not those that showFirst gave this bar.
void MessageBar::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::ApplicationPaletteChange) showFirst();
}

void MessageBar::copyDetails() const {
  QStringList lines{QStringLiteral("Saccade " SACCADE_VERSION)};
  for (const Message& message : messages_) lines << message.text;
  QGuiApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace saccade::ui
