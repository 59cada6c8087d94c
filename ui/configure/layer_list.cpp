#include "ui/configure/layer_list.h"

#include <QMouseEvent>
#include <QPainter>
#include <QStyledItemDelegate>

#include "ui/theme.h"

namespace saccade::ui {
namespace {

enum Role { TitleRole = Qt::UserRole, WordsRole, ProblemRole, ColourRole };
constexpr int kBar = 8, kMargin = 6, kGrip = 14;

/// The block's colour, its title and what it sets; below, in red, what is wrong with it.
class BlockDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const int line = option.fontMetrics.height();
    const QString problem = index.data(ProblemRole).toString();
    const int width = std::max(80, option.rect.width() - kBar - 3 * kMargin - kGrip);
    const int below = problem.isEmpty() ? 0 : option.fontMetrics.boundingRect(0, 0, width, 1000, Qt::TextWordWrap, problem).height() + 2;
    return {120, line + below + 14};
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const QRect card = option.rect.adjusted(1, 2, -1, -2);
    const bool chosen = option.state & QStyle::State_Selected;
    const QPalette& palette = option.palette;
    painter->setPen(QPen(chosen && option.state & QStyle::State_HasFocus ? palette.color(QPalette::Highlight) : lineColour(palette), 1));
    painter->setBrush(chosen ? selectionColour(palette) : palette.color(QPalette::Base));
    painter->drawRoundedRect(QRectF(card).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    painter->setPen(Qt::NoPen);
    painter->setBrush(index.data(ColourRole).value<QColor>());
    painter->drawRoundedRect(QRectF(card.left() + 3, card.top() + 3, kBar, card.height() - 6), 2, 2);
    paintGrip(*painter, card, palette);
    const QRect text = card.adjusted(kBar + 2 * kMargin, 5, -kMargin - kGrip, -3);
    painter->setPen(palette.color(QPalette::Text));
    const QString title = index.data(TitleRole).toString();
    painter->drawText(text, Qt::AlignLeft | Qt::AlignTop, option.fontMetrics.elidedText(title, Qt::ElideRight, text.width()));
    const int used = option.fontMetrics.horizontalAdvance(title) + 10;
    painter->setPen(quietText(palette));
    if (used < text.width())
      painter->drawText(text.adjusted(used, 0, 0, 0), Qt::AlignLeft | Qt::AlignTop,
                        option.fontMetrics.elidedText(index.data(WordsRole).toString(), Qt::ElideRight, text.width() - used));
    painter->setPen(errorColour(palette));
    painter->drawText(text.adjusted(0, option.fontMetrics.height() + 1, 0, 0), Qt::TextWordWrap, index.data(ProblemRole).toString());
    painter->restore();
  }

 private:
  static void paintGrip(QPainter& painter, const QRect& card, const QPalette& palette) {
    painter.setBrush(quietText(palette));
    for (int row = -1; row <= 1; ++row)
      for (int column = 0; column < 2; ++column)
        painter.drawEllipse(QPointF(card.right() - kGrip + 5.0 * column, card.center().y() + 5.0 * row + 0.5), 1.2, 1.2);
  }
};

}  // namespace

LayerList::LayerList(QWidget* parent) : QListWidget(parent) {
  setItemDelegate(new BlockDelegate(this));
  setAccessibleName(tr("Blocks of layers"));
  setFrameShape(QFrame::NoFrame);
  setResizeMode(QListView::Adjust);
  setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setAutoFillBackground(false);
}

void LayerList::setBlocks(const QList<Block>& blocks) {
  const QSignalBlocker quiet(this);
  const int row = currentRow();
  while (count() > blocks.size()) delete takeItem(count() - 1);
  while (count() < blocks.size()) addItem(new QListWidgetItem);
  for (int at = 0; at < blocks.size(); ++at) {
    const Block& block = blocks[at];
    QListWidgetItem* line = item(at);
    const QStringList parts{block.title, block.words, block.problem};
    line->setData(TitleRole, block.title);
    line->setData(WordsRole, block.words);
    line->setData(ProblemRole, block.problem);
    line->setData(ColourRole, block.colour);
    line->setData(Qt::AccessibleTextRole, parts.filter(QRegularExpression(QStringLiteral("."))).join(QStringLiteral(", ")));
    line->setToolTip(block.problem.isEmpty() ? block.words : block.problem);
  }
  setCurrentRow(std::clamp(row, 0, count() - 1));
  scheduleDelayedItemsLayout();
  updateGeometry();
}

/// As high as its blocks, so that only long stacks scroll.
QSize LayerList::sizeHint() const {
  int height = 2;
  for (int row = 0; row < count(); ++row) height += std::max(1, sizeHintForRow(row));
  return {220, height};
}

void LayerList::mousePressEvent(QMouseEvent* event) {
  QListWidget::mousePressEvent(event);
  dragged_ = event->button() == Qt::LeftButton ? row(itemAt(event->position().toPoint())) : -1;
}

/// The block under the pointer goes where the pointer is, at once.
void LayerList::mouseMoveEvent(QMouseEvent* event) {
  if (dragged_ < 0 || !(event->buttons() & Qt::LeftButton)) return QListWidget::mouseMoveEvent(event);
  const int to = row(itemAt(QPoint(viewport()->width() / 2, event->position().toPoint().y())));
  if (to < 0 || to == dragged_) return;
  const int from = std::exchange(dragged_, to);
  Q_EMIT dragged(from, to);
}

void LayerList::mouseReleaseEvent(QMouseEvent* event) {
  dragged_ = -1;
  QListWidget::mouseReleaseEvent(event);
}

}  // namespace saccade::ui
