#include "ui/shell/message_bar.h"

#include <QClipboard>
#include <QEvent>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <algorithm>

#include "ui/shell/same_kind.h"
#include "ui/theme.h"

namespace saccade::ui {

MessageBar::MessageBar(QWidget* parent)
    : QFrame(parent),
      icon_(new QLabel(this)),
      text_(new QLabel(this)),
      offer_(new QPushButton(this)),
      copy_(new QPushButton(tr("Copy details"), this)),
      all_(new QToolButton(this)),
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
  all_->setText(tr("Show all"));
  all_->setAccessibleName(tr("Show all that the message is about"));
  all_->setCheckable(true);
  all_->setAutoRaise(true);
  close_->setIcon(themedIcon(QStringLiteral("close")));
  close_->setAutoRaise(true);
  close_->setAccessibleName(tr("Close message"));
  close_->setToolTip(tr("Close"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(icon_);
  row->addWidget(text_, 1);
  row->addWidget(all_);
  row->addWidget(offer_);
  row->addWidget(copy_);
  row->addWidget(close_);
  connect(offer_, &QPushButton::clicked, this, &MessageBar::takeUp);
  connect(all_, &QToolButton::toggled, this, &MessageBar::showFirst);
  connect(copy_, &QPushButton::clicked, this, &MessageBar::copyDetails);
  connect(close_, &QToolButton::clicked, this, &MessageBar::closeMessage);
  hide();
}

void MessageBar::showError(const QString& text) { add({{text}}); }

void MessageBar::showNote(const QString& text) {
  constexpr int kToRead = 8000;
  leaveAfter(kToRead, add({{text}, false}));
}

void MessageBar::showOffer(const QString& text, const Offer& offer) {
  constexpr int kToDecide = 30000;
  leaveAfter(kToDecide, add({{text}, false, 1, offer}));
}

void MessageBar::takeUp() {
  if (messages_.isEmpty() || !messages_.first().offer) return;
  const Offer offer = *messages_.first().offer;
  closeMessage();
  offer.act();
}

/// Not where another of its kind has come since: that one leaves later, with it.
void MessageBar::leaveAfter(int milliseconds, int id) {
  QTimer::singleShot(milliseconds, this, [this, id] {
    messages_.removeIf([&](const Message& message) { return message.id == id; });
    showFirst();
  });
}

void MessageBar::withdraw(const QString& text) {
  for (Message& message : messages_)
    if (const bool newest = message.texts.first() == text; message.texts.removeAll(text) > 0 && newest) message.times = 1;
  messages_.removeIf([](const Message& message) { return message.texts.isEmpty(); });
  showFirst();
}

void MessageBar::closeMessage() {
  if (!messages_.isEmpty()) messages_.removeFirst();
  showFirst();
}

int MessageBar::add(Message message) {
  message.id = ++last_id_;
  for (qsizetype i = 0; i < messages_.size(); ++i)
    if (Message known = messages_[i]; absorb(known, message)) {
      messages_.removeAt(i);
      message = known;
      break;
    }
  messages_.prepend(message);
  showFirst();
  return message.id;
}

/// Whether a message is of the kind of one that is known, which is then both.
bool MessageBar::absorb(Message& known, const Message& message) {
  const QString& text = message.texts.first();
  if (known.error != message.error || known.offer.has_value() != message.offer.has_value()) return false;
  if (known.texts.first() == text) {
    ++known.times;
  } else if (message.offer) {
    return false;  // what one offers is not for the other
  } else {
    QStringList all = known.texts;
    all.removeAll(text);
    all.prepend(text);
    if (!are_of_one_kind(all)) return false;
    known.texts = all;
    known.times = 1;
  }
  known.offer = message.offer, known.id = message.id;
  return true;
}

QString MessageBar::words(const Message& message) const {
  constexpr qsizetype kNamed = 3, kMost = 30;
  QString text = message.texts.first();
  if (message.times > 1) text += tr(" (%1 times)").arg(message.times);
  const QStringList others = different_names(message.texts).mid(1);
  if (others.isEmpty()) return text;
  const qsizetype named = std::min(all_->isChecked() ? kMost : kNamed, others.size());
  const QString names = others.mid(0, named).join(all_->isChecked() ? QStringLiteral("\n") : QStringLiteral(", "));
  text +=
      QLatin1Char('\n') +
      (others.size() == 1 ? tr("The same of %1").arg(names)
                          : tr("The same of %1 others:%2%3").arg(others.size()).arg(QLatin1String(all_->isChecked() ? "\n" : " "), names));
  if (others.size() > named)
    text += (all_->isChecked() ? tr("\nand %1 more, which “Copy details” has") : tr(" and %1 more")).arg(others.size() - named);
  return text;
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
  const QStringList names = different_names(first.texts);
  all_->setVisible(names.size() > 4);
  all_->setToolTip(names.join(QLatin1Char('\n')));
  if (all_->isHidden() && all_->isChecked()) all_->setChecked(false);
  QString text = words(first);
  if (messages_.size() > 1) text += tr("\nand %1 more").arg(messages_.size() - 1);
  text_->setText(text);
  text_->setAccessibleName(text);
  copy_->setVisible(first.error || names.size() > 1);
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
  for (const Message& message : messages_) lines << message.texts;
  QGuiApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace saccade::ui
