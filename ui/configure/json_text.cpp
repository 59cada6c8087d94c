#include "ui/configure/json_text.h"

#include <QFontDatabase>
#include <QPainter>
#include <QTextBlock>

#include "ui/theme.h"

namespace saccade::ui {
namespace {
constexpr int kMargin = 6;
}

class JsonText::Numbers : public QWidget {
 public:
  explicit Numbers(JsonText* text) : QWidget(text), text_(text) {}

 protected:
  void paintEvent(QPaintEvent* event) override { text_->paintNumbers(event); }

 private:
  JsonText* text_;
};

JsonText::JsonText(QWidget* parent) : QPlainTextEdit(parent), numbers_(new Numbers(this)) {
  setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  setTabChangesFocus(true);
  connect(this, &QPlainTextEdit::blockCountChanged, this, [this] { setViewportMargins(numbersWidth(), 0, 0, 0); });
  connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& rect, int dy) {
    dy ? numbers_->scroll(0, dy) : numbers_->update(0, rect.y(), numbers_->width(), rect.height());
  });
  setViewportMargins(numbersWidth(), 0, 0, 0);
}

int JsonText::numbersWidth() const {
  const auto digits = std::max<qsizetype>(2, QString::number(blockCount()).size());
  return fontMetrics().horizontalAdvance(QLatin1Char('9')) * static_cast<int>(digits) + 2 * kMargin;
}

void JsonText::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  const QRect inside = contentsRect();
  numbers_->setGeometry(inside.left(), inside.top(), numbersWidth(), inside.height());
}

void JsonText::changeEvent(QEvent* event) {
  QPlainTextEdit::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showMark();
}

void JsonText::markFault(int position, const QString& why) {
  const QTextBlock block = position < 0 ? QTextBlock() : document()->findBlock(position);
  faulty_ = block.isValid() ? block.blockNumber() : -1;
  numbers_->setToolTip(faulty_ >= 0 ? why : QString());
  showMark();
}

void JsonText::showMark() {
  numbers_->resize(numbersWidth(), numbers_->height());
  numbers_->update();
  QList<QTextEdit::ExtraSelection> marks;
  if (faulty_ >= 0) {
    QTextEdit::ExtraSelection mark;
    mark.format.setBackground(blend(palette().color(QPalette::Base), errorColour(palette()), 0.18));
    mark.format.setProperty(QTextFormat::FullWidthSelection, true);
    mark.cursor = QTextCursor(document()->findBlockByNumber(faulty_));
    marks << mark;
  }
  setExtraSelections(marks);
}

void JsonText::paintNumbers(QPaintEvent* event) {
  QPainter painter(numbers_);
  painter.setFont(font());
  QTextBlock block = firstVisibleBlock();
  double top = blockBoundingGeometry(block).translated(contentOffset()).top();
  for (; block.isValid() && top <= event->rect().bottom(); block = block.next()) {
    const double height = blockBoundingRect(block).height();
    const bool faulty = block.blockNumber() == faulty_;
    painter.setPen(faulty ? errorColour(palette()) : quietText(palette()));
    if (block.isVisible() && top + height >= event->rect().top())
      painter.drawText(QRectF(0, top, numbers_->width() - kMargin, fontMetrics().height()), Qt::AlignRight,
                       (faulty ? QStringLiteral("●") : QString()) + QString::number(block.blockNumber() + 1));
    top += height;
  }
}

}  // namespace saccade::ui
