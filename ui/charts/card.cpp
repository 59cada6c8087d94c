#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "ui/charts/figure_view.h"
#include "ui/charts/fitting_name.h"

namespace saccade::ui {

namespace {

/// Gives way when there is little room, and says all in its tool tip.
class ElidedLabel : public QLabel {
 public:
  using Fitting = QString (*)(const QString& whole, const QFontMetricsF& metrics, double room);
  ElidedLabel(Fitting fitting, QWidget* parent) : QLabel(parent), fitting_(fitting) {}
  QSize minimumSizeHint() const override { return {std::min(QLabel::sizeHint().width(), 60), QLabel::minimumSizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    QString shown = fitting_(text(), fontMetrics(), width());
    if (shown != text() && shown.size() < 5) shown.clear();  // says nothing
    style()->drawItemText(&painter, rect(), Qt::AlignLeft | Qt::AlignVCenter, palette(), true, shown, foregroundRole());
    if (const QString rest = shown == text() ? QString() : text(); rest != toolTip()) setToolTip(rest);
  }

 private:
  Fitting fitting_;
};

QString withoutItsEnd(const QString& whole, const QFontMetricsF& metrics, double room) {
  return metrics.elidedText(whole, Qt::ElideRight, room);
}

QString export_words() { return QObject::tr("Export"); }
QString short_export_words() { return QStringLiteral("↓"); }  // beside titles that need the room

QToolButton* export_button(FigureView& view, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(export_words());
  button->setToolTip(QObject::tr("Save as PDF, SVG, PNG or CSV, or copy"));
  button->setPopupMode(QToolButton::InstantPopup);
  button->setAutoRaise(true);
  button->setMenu(view.exportMenu());
  return button;
}

}  // namespace

Card::Card(const QString& title, const QString& subtitle, QWidget* content, QWidget* parent)
    : QWidget(parent),
      title_(new ElidedLabel(withoutItsEnd, this)),
      subtitle_(new ElidedLabel(fittingWords, this)),
      header_(new QHBoxLayout),
      column_(new QVBoxLayout(this)),
      controls_(new QWidget(this)),
      content_(content) {
  QFont bold = font();
  bold.setBold(true);
  title_->setFont(bold);
  title_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  subtitle_->setForegroundRole(QPalette::PlaceholderText);
  subtitle_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  auto* row = new QHBoxLayout(controls_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  controls_->hide();
  header_->setSpacing(6);
  header_->addWidget(title_);
  header_->addWidget(subtitle_, 1);
  header_->addWidget(controls_);
  column_->setContentsMargins(10, 6, 8, 8);
  column_->setSpacing(4);
  column_->addLayout(header_);
  column_->addWidget(content, 1);
  if (auto* view = qobject_cast<FigureView*>(content)) {
    header_->addWidget(export_ = export_button(*view, this));
    whole_export_ = export_->sizeHint().width();
    setTabOrder(export_, view);
    view->setAccessibleName(title);
  }
  setTitle(title, subtitle);
}

void Card::setTitle(const QString& title, const QString& subtitle) {
  if (title == title_->text() && subtitle == subtitle_->text()) return;
  title_->setText(title);
  subtitle_->setText(subtitle);
  if (export_) export_->setAccessibleName(tr("Export: %1").arg(title));
  arrange();
  if (auto* view = findChild<FigureView*>(QString(), Qt::FindDirectChildrenOnly)) view->setAccessibleName(title);
}

namespace {

bool takes_focus(const QWidget* widget) { return widget->focusPolicy() != Qt::NoFocus; }

/// Tab comes to a control, or to those in it, behind `place`.
void tab_behind(QWidget* place, QWidget* control) {
  const Qt::FocusPolicy policy = place->focusPolicy();
  place->setFocusPolicy(Qt::TabFocus);  // setTabOrder() passes over others
  QList<QWidget*> parts = control->findChildren<QWidget*>();
  parts.prepend(control);
  QWidget* before = place;
  for (QWidget* part : parts)
    if (takes_focus(part) && part->window() == place->window()) QWidget::setTabOrder(std::exchange(before, part), part);
  place->setFocusPolicy(policy);
}

}  // namespace

void Card::addControl(QWidget* control) {
  QWidget* last = controls_;
  for (QWidget* other : controls_->findChildren<QWidget*>())
    if (takes_focus(other)) last = other;
  controls_->layout()->addWidget(control);
  controls_->show();
  tab_behind(last, control);
  arrange();
}

/// As narrow as the controls can be in a row of their own.
QSize Card::minimumSizeHint() const {
  const QMargins margins = column_->contentsMargins();
  const int saved = fontMetrics().horizontalAdvance(export_words()) - fontMetrics().horizontalAdvance(short_export_words());
  const int short_export = whole_export_ - saved;  // whatever it shows now: widths do not depend on what was before
  const int title = (choice_ ? choice_ : title_)->minimumSizeHint().width() + (export_ ? header_->spacing() + short_export : 0);
  const int controls = controls_->isHidden() ? 0 : controls_->minimumSizeHint().width();
  const int content = std::max(content_->minimumWidth(), content_->minimumSizeHint().width());
  return {std::max({title, controls, content}) + margins.left() + margins.right(), QWidget::minimumSizeHint().height()};
}

void Card::resizeEvent(QResizeEvent*) { arrange(); }

/// Controls that come, go or say something else need other room.
bool Card::event(QEvent* event) {
  const bool done = QWidget::event(event);
  if (event->type() == QEvent::LayoutRequest) arrange();
  return done;
}

void Card::replaceTitle(QWidget* choice) {
  choice_ = choice;
  title_->hide();
  header_->insertWidget(0, choice);
  header_->insertStretch(1);
  tab_behind(title_, choice);
  arrange();
}

/// Subtitle and controls stand in the header where it has room for them beside the title; else the subtitle has a line of its own under it,
/// and where that is not enough, the controls too.
void Card::arrange() {
  const QMargins margins = column_->contentsMargins();
  const int title = (choice_ ? choice_ : title_)->sizeHint().width(), all = width() - margins.left() - margins.right();
  if (export_) {
    const QString words = title + header_->spacing() + whole_export_ > all ? short_export_words() : export_words();
    if (words != export_->text()) export_->setText(words);
  }
  const int room = all - 3 * header_->spacing() - (export_ ? export_->sizeHint().width() : 0);
  const int words = subtitle_->text().isEmpty() ? 0 : subtitle_->sizeHint().width();
  const int controls = controls_->isHidden() ? 0 : controls_->sizeHint().width();
  const bool controls_under = controls > 0 && title + controls > room;
  const bool words_under = words > 0 && title + words + (controls_under ? 0 : controls) > room;
  const bool controls_are_under = header_->indexOf(controls_) < 0, words_are_under = header_->indexOf(subtitle_) < 0;
  if (words_under == words_are_under && (controls_under == controls_are_under || controls == 0)) return;
  for (QWidget* part : {static_cast<QWidget*>(subtitle_), controls_}) {
    header_->removeWidget(part);
    column_->removeWidget(part);
  }
  words_under ? column_->insertWidget(1, subtitle_) : header_->insertWidget(1, subtitle_, 1);
  controls_under ? column_->insertWidget(words_under ? 2 : 1, controls_, 0, Qt::AlignLeft)
                 : header_->insertWidget(words_under ? 1 : 2, controls_);
  header_->setStretchFactor(title_, words_under ? 1 : 0);  // what follows stands at the right
}

void Card::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QColor edge = palette().color(QPalette::WindowText);
  edge.setAlphaF(0.16f);
  painter.setPen(edge);
  painter.setBrush(palette().color(QPalette::Base));
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

}  // namespace saccade::ui
