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
      offer_(new QPushButton(this)),
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
  offer_->setAccessibleName(tr("What the message offers"));
  copy_->setAccessibleName(tr("Copy details"));
  close_->setIcon(themedIcon(QStringLiteral("close")));
  close_->setAutoRaise(true);
  close_->setAccessibleName(tr("Close message"));
  close_->setToolTip(tr("Close"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(icon_);
  row->addWidget(text_, 1);
  row->addWidget(offer_);
  row->addWidget(copy_);
  row->addWidget(close_);
  connect(offer_, &QPushButton::clicked, this, &MessageBar::takeUp);
  connect(copy_, &QPushButton::clicked, this, &MessageBar::copyDetails);
  connect(close_, &QToolButton::clicked, this, &MessageBar::closeMessage);
  hide();
}

void MessageBar::showError(const QString& text) { add({text}); }

void MessageBar::showNote(const QString& text) {
  constexpr int kToRead = 8000;
  add({text, false});
  leaveAfter(kToRead, text);
}

void MessageBar::showOffer(const QString& text, const Offer& offer) {
  constexpr int kToDecide = 30000;
  add({text, false, 1, offer});
  leaveAfter(kToDecide, text);
}

void MessageBar::takeUp() {
  if (messages_.isEmpty() || !messages_.first().offer) return;
  const Offer offer = *messages_.first().offer;
  closeMessage();
  offer.act();
}

void MessageBar::leaveAfter(int milliseconds, const QString& text) {
  QTimer::singleShot(milliseconds, this, [this, text] {
    messages_.removeIf([&](const Message& message) { return !message.error && message.text == text; });
    showFirst();
  });
}

void MessageBar::closeMessage() {
  if (!messages_.isEmpty()) messages_.removeFirst();
  showFirst();
}

void MessageBar::add(const Message& message) {
  if (!messages_.isEmpty() && messages_.first().text == message.text)
    ++messages_.first().times, messages_.first().offer = message.offer;
  else
    messages_.prepend(message);
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
  offer_->setVisible(first.offer.has_value());
  if (first.offer) offer_->setText(first.offer->text), offer_->setAccessibleName(first.offer->text);
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
