#include "ui/shell/rail.h"

#include <QAbstractButton>
#include <QButtonGroup>
#include <QKeyEvent>
#include <QPainter>
#include <QVBoxLayout>

#include "ui/page.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

class RailButton : public QAbstractButton {
 public:
  RailButton(const Page& page, QWidget* parent) : QAbstractButton(parent) {
    setObjectName(page.id);
    setText(page.title);
    setIcon(themedIcon(page.icon));
    setAccessibleName(page.title);
    setCheckable(true);
    setFocusPolicy(Qt::TabFocus);
    setAttribute(Qt::WA_Hover);
  }
  QSize sizeHint() const override {
    QFont bold = font();
    bold.setBold(true);
    const QFontMetrics metrics(bold);
    return {qMax(68, metrics.horizontalAdvance(text()) + 16), metrics.height() + 36};
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF box = QRectF(rect()).adjusted(1.5, 1.5, -1.5, -1.5);
    const QColor ground = palette().color(QPalette::Window);
    painter.setPen(hasFocus() ? QPen(palette().color(QPalette::Highlight), 1.5) : QPen(Qt::NoPen));
    painter.setBrush(isChecked()    ? selectionColour(palette())
                     : underMouse() ? blend(ground, palette().color(QPalette::WindowText), 0.07)
                                    : QBrush());
    painter.drawRoundedRect(box, 7, 7);
    icon().paint(&painter, QRect((width() - 22) / 2, 7, 22, 22));
    QFont words = font();
    words.setBold(isChecked());
    painter.setFont(words);
    painter.setPen(isChecked() ? palette().color(QPalette::WindowText) : quietText(palette()));
    painter.drawText(rect().adjusted(0, 30, 0, -4), Qt::AlignHCenter | Qt::AlignVCenter, text());
  }
};

}  // namespace

Rail::Rail(QWidget* parent) : QWidget(parent) {
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.92);
  setFont(small);
  setAccessibleName(tr("Pages"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(4, 8, 4, 8);
  column->setSpacing(4);
  auto* group = new QButtonGroup(this);
  for (const Page& page : pages()) {
    auto* button = new RailButton(page, this);
    const int number = static_cast<int>(buttons_.size()) + 1;
    button->setToolTip(number < 10 ? tr("%1 (Ctrl+%2)").arg(page.title).arg(number) : page.title);
    group->addButton(button);
    column->addWidget(button);
    buttons_ << button;
    connect(button, &QAbstractButton::clicked, this, [this, id = page.id] { Q_EMIT chosen(id); });
  }
  column->addStretch();
}

void Rail::setCurrent(const QString& id) {
  for (QAbstractButton* button : buttons_) button->setChecked(button->objectName() == id);
}

void Rail::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
  auto* focused = qobject_cast<QAbstractButton*>(focusWidget());
  const qsizetype at = buttons_.indexOf(focused) + step;
  if (step == 0 || !focused || at < 0 || at >= buttons_.size()) return QWidget::keyPressEvent(event);
  buttons_[at]->setFocus(Qt::TabFocusReason);
  buttons_[at]->click();
}

void Rail::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::AlternateBase));
  painter.setPen(lineColour(palette()));
  painter.drawLine(width() - 1, 0, width() - 1, height());
}

}  // namespace saccade::ui
