#include "ui/shell/run_delegate.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QStyleOption>
#include <algorithm>
#include <cmath>

#include "ui/charts/fitting_name.h"
#include "ui/run_summary.h"
#include "ui/shell/grouped_runs.h"
#include "ui/swatch.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {
constexpr int margin = kSwatchMargin, check_width = 16;

QFont smaller(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 0.88);
  return font;
}

QRect check_rect(const QRect& row, const QFont& font) {
  const int line = QFontMetrics(font).height();
  return {row.left() + margin, row.top() + 5 + (line - check_width) / 2, check_width, check_width};
}

/// Under the check box: opens a group of seeds, or a run's branches.
QRect expander_rect(const QRect& row, const QFont& font) {
  const QRect check = check_rect(row, font);
  return {check.left(), check.bottom() + 4, check_width, std::max(10, QFontMetrics(smaller(font)).height() - 2)};
}

void paint_expander(QPainter* painter, const QStyleOptionViewItem& option, const QRect& rect, bool opened) {
  QStyleOption arrow;
  arrow.rect = rect;
  arrow.palette = option.palette;
  arrow.state = QStyle::State_Enabled;
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawPrimitive(opened ? QStyle::PE_IndicatorArrowDown : QStyle::PE_IndicatorArrowRight, &arrow, painter, option.widget);
}

/// What stands at the right: how far it is, or that it is done, which is not said of what has lost records.
QString progress_text(const QModelIndex& index) {
  if (!index.data(RunList::ProblemRole).toString().isEmpty()) return {};
  if (index.data(RunList::DamageRole).toBool()) return QStringLiteral("⚠");
  if (static_cast<RunState>(index.data(RunList::StateRole).toInt()) == RunState::finished) return QStringLiteral("✓");
  return QStringLiteral("%1 %").arg(static_cast<int>(std::floor(index.data(RunList::ProgressRole).toDouble() * 100)));
}

void paint_check_box(QPainter* painter, const QStyleOptionViewItem& option, const QRect& rect, Qt::CheckState state) {
  QStyleOptionViewItem box = option;
  box.rect = rect;
  box.state = QStyle::State_Enabled | (state == Qt::Checked            ? QStyle::State_On
                                       : state == Qt::PartiallyChecked ? QStyle::State_NoChange
                                                                       : QStyle::State_Off);
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawPrimitive(QStyle::PE_IndicatorItemViewItemCheck, &box, painter, option.widget);
  if (!isDark(option.palette)) return;  // the style's own edge is nearly as dark as the ground
  painter->setBrush(Qt::NoBrush);
  painter->setPen(quietText(option.palette));
  painter->drawRoundedRect(QRectF(rect).adjusted(1.5, 1.5, -1.5, -1.5), 2, 2);
}

/// What is wrong with a run stands first (summary_of), and is told by its colour too.
void paint_summary(QPainter* painter, const QRect& rect, const QString& summary, bool wrong, const QPalette& palette) {
  const QFontMetrics metrics = painter->fontMetrics();
  const QString text = fittingParts(summary, metrics, rect.width());
  const QString first = wrong ? text.section(QStringLiteral(" · "), 0, 0) : QString();
  painter->setPen(errorColour(palette));
  painter->drawText(rect, Qt::AlignLeft | Qt::AlignVCenter, first);
  painter->setPen(quietText(palette));
  painter->drawText(rect.adjusted(metrics.horizontalAdvance(first), 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, text.mid(first.size()));
}

void paint_heading(QPainter* painter, QStyleOptionViewItem& option, const QString& text) {
  option.palette.setCurrentColorGroup(QPalette::Active);  // cannot be chosen, but is to be read
  painter->setFont(smaller(option.font));
  painter->setPen(quietText(option.palette));
  painter->drawText(option.rect.adjusted(margin, 0, -margin, -3), Qt::AlignLeft | Qt::AlignBottom, text);
}

void paint_ground(QPainter* painter, const QStyleOptionViewItem& option) {
  const bool selected = option.state & QStyle::State_Selected, hovered = option.state & QStyle::State_MouseOver;
  const bool focused = (option.state & QStyle::State_HasFocus) && (option.state & QStyle::State_KeyboardFocusChange);
  if (!selected && !hovered && !focused) return;
  const QColor hover = blend(option.palette.color(QPalette::Window), option.palette.color(QPalette::WindowText), 0.05);
  painter->setBrush(selected ? selectionColour(option.palette) : hover);
  painter->setPen(focused ? QPen(option.palette.color(QPalette::Highlight)) : QPen(Qt::NoPen));
  painter->drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

void paint_progress(QPainter* painter, const QRect& bar, double fraction, const QPalette& palette) {
  painter->setPen(Qt::NoPen);
  painter->setBrush(lineColour(palette));
  painter->drawRoundedRect(bar, 1.5, 1.5);
  painter->setBrush(palette.color(QPalette::Highlight));
  painter->drawRoundedRect(QRectF(bar.left(), bar.top(), bar.width() * fraction, bar.height()), 1.5, 1.5);
}

}  // namespace

QString fittingParts(const QString& parts, const QFontMetrics& metrics, int room) {
  QString text = parts;
  while (metrics.horizontalAdvance(text) > room && text.contains(QStringLiteral(" · ")))
    text.truncate(text.lastIndexOf(QStringLiteral(" · ")));
  return metrics.elidedText(text, Qt::ElideRight, room);
}

void RunDelegate::paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const {
  QStyleOptionViewItem option = given;
  initStyleOption(&option, index);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  if (index.data(GroupedRuns::HeadingRole).toBool()) {
    paint_heading(painter, option, index.data().toString());
    return painter->restore();
  }
  paint_ground(painter, option);

  const QFontMetrics metrics(option.font), small_metrics(smaller(option.font));
  const QRect check = check_rect(option.rect, option.font);
  const bool damaged = !index.data(RunList::ProblemRole).toString().isEmpty();
  if (!damaged) paint_check_box(painter, option, check, static_cast<Qt::CheckState>(index.data(Qt::CheckStateRole).toInt()));

  const int seeds = index.data(GroupedRuns::SeedsRole).toInt();
  const int inset = index.data(GroupedRuns::ChildRole).toBool() ? 2 * margin : 0;
  const int top = option.rect.top() + 5, left = check.right() + 1 + margin + inset, right = option.rect.right() - margin;
  const QRect swatch(left, top, kSwatchWidth, metrics.height());
  if (damaged)
    themedIcon(QStringLiteral("problem")).paint(painter, QRect(left + 1, top + (metrics.height() - 16) / 2, 16, 16));
  else
    paintSwatch(painter, swatch, index, option.palette);

  const int text_left = swatch.right() + 1 + margin;
  const QString progress = progress_text(index);
  painter->setFont(smaller(option.font));
  painter->setPen(quietText(option.palette));
  const int progress_width = small_metrics.horizontalAdvance(progress);
  if (index.data(GroupedRuns::FoldsRole).toBool())
    paint_expander(painter, option, expander_rect(option.rect, option.font), index.data(GroupedRuns::OpenedRole).toBool());
  if (index.data(RunList::DamageRole).toBool()) painter->setPen(errorColour(option.palette));
  painter->drawText(QRect(right - progress_width - 1, top, progress_width + 1, metrics.height()), Qt::AlignRight | Qt::AlignVCenter,
                    progress);

  const int room = right - progress_width - 8 - text_left;
  const QString whole = index.data(RunList::TitleRole).toString();
  QString seed = damaged ? QString() : seeds > 0 ? tr("× %1").arg(seeds) : tr("seed %1").arg(index.data(RunList::SeedRole).toLongLong());
  const bool told_by_seed = seeds > 0 || inset > 0;  // else the title says more than the seed
  const int least = told_by_seed ? std::min(metrics.horizontalAdvance(whole), 80) : metrics.horizontalAdvance(whole);
  if (room - metrics.horizontalAdvance(seed) - 5 < least) seed.clear();
  const int seed_width = seed.isEmpty() ? 0 : metrics.horizontalAdvance(seed) + 5;
  const QString title = fittingTitle(whole, metrics, room - seed_width);
  painter->setFont(option.font);
  painter->setPen(option.palette.color(QPalette::WindowText));
  painter->drawText(QRect(text_left, top, room, metrics.height()), Qt::AlignLeft | Qt::AlignVCenter, title);
  painter->setPen(quietText(option.palette));
  painter->drawText(QRect(text_left + metrics.horizontalAdvance(title) + 5, top, seed_width, metrics.height()),
                    Qt::AlignLeft | Qt::AlignVCenter, seed);

  const QRect second(text_left, top + metrics.height() + 1, right - text_left, small_metrics.height());
  painter->setFont(smaller(option.font));
  paint_summary(painter, second, index.data(RunList::SummaryRole).toString(), damaged || index.data(RunList::DamageRole).toBool(),
                option.palette);
  if (!damaged && isActive(static_cast<RunState>(index.data(RunList::StateRole).toInt())))
    paint_progress(painter, QRect(text_left, second.bottom() + 3, second.width(), 3), index.data(RunList::ProgressRole).toDouble(),
                   option.palette);
  painter->restore();
}

QSize RunDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  if (heights_.line == 0 || heights_.font != option.font)
    heights_ = {option.font, QFontMetrics(option.font).height(), QFontMetrics(smaller(option.font)).height()};
  if (index.data(GroupedRuns::HeadingRole).toBool()) return {80, heights_.small + (index.row() == 0 ? 6 : 14)};
  const bool active =
      index.data(RunList::ProblemRole).toString().isEmpty() && isActive(static_cast<RunState>(index.data(RunList::StateRole).toInt()));
  return {160, 10 + heights_.line + heights_.small + 1 + (active ? 6 : 0)};
}

bool RunDelegate::editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option, const QModelIndex& index) {
  if (index.data(GroupedRuns::HeadingRole).toBool()) return false;
  bool toggle = false;
  if (event->type() == QEvent::KeyPress) {
    toggle = static_cast<QKeyEvent*>(event)->key() == Qt::Key_Space;
  } else if (event->type() == QEvent::MouseButtonRelease) {
    const auto* mouse = static_cast<QMouseEvent*>(event);
    toggle = mouse->button() == Qt::LeftButton &&
             check_rect(option.rect, option.font).adjusted(-4, -4, 4, 4).contains(mouse->position().toPoint());
  }
  const bool over_expander =
      event->type() == QEvent::MouseButtonRelease && index.data(GroupedRuns::FoldsRole).toBool() &&
      expander_rect(option.rect, option.font).adjusted(-3, -3, 3, 3).contains(static_cast<QMouseEvent*>(event)->position().toPoint());
  if (over_expander)
    if (auto* groups = qobject_cast<GroupedRuns*>(model)) {
      groups->setOpened(index, !index.data(GroupedRuns::OpenedRole).toBool());
      return true;
    }
  if (!toggle || !(index.flags() & Qt::ItemIsUserCheckable)) return false;
  const bool checked = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
  return model->setData(index, checked ? Qt::Unchecked : Qt::Checked, Qt::CheckStateRole);
}

}  // namespace saccade::ui
