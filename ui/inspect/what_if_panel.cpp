#include "ui/inspect/what_if_panel.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "analysis/figures/count_text.h"
#include "ui/calm_wheel.h"
#include "ui/charts/ticks.h"
#include "ui/inspect/query_panel.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {
namespace {

QString nats(double value) { return QString::number(value, 'f', 4); }
/// "+0.0213", "−1.2000"
QString signed_number(double value, int digits = 4) {
  return (value < 0 ? QString(QChar(0x2212)) : QStringLiteral("+")) + QString::number(std::abs(value), 'f', digits);
}
QString share(double p) { return QStringLiteral("%1 %").arg(100 * p, 0, 'f', p < 0.0995 ? 2 : 1); }

bool same_predictions(const ShownPredictions& one, const ShownPredictions& other) {
  const auto same = [](const ShownPrediction& a, const ShownPrediction& b) { return a.piece == b.piece && a.logit == b.logit; };
  const auto both = [&](const std::optional<ShownPrediction>& a, const std::optional<ShownPrediction>& b) {
    return a && b ? same(*a, *b) : !a && !b;
  };
  return std::equal(one.top.begin(), one.top.end(), other.top.begin(), other.top.end(), same) && both(one.target, other.target) &&
         both(one.answer, other.answer);
}

QLabel* words(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->hide();
  return label;
}

}  // namespace

WhatIfPanel::WhatIfPanel(QWidget* parent)
    : QWidget(parent),
      message_(words(this)),
      result_(words(this)),
      mean_(words(this)),
      question_(new QComboBox(this)),
      table_(new QTableWidget(this)),
      source_(new QSpinBox(this)),
      try_(new QPushButton(tr("&Try"), this)),
      drop_(new QPushButton(tr("&Drop"), this)) {
  makeTable();
  message_->setForegroundRole(QPalette::PlaceholderText);
  source_->setAccessibleName(tr("Source of the what-if"));
  source_->setToolTip(wrapped_tip(tr("A click on the map, or the keys , and . choose it too.")));
  calm_wheel(source_);
  question_->setAccessibleName(tr("What the query is to do otherwise"));
  question_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  calm_wheel(question_);
  connect(question_, &QComboBox::activated, this, &WhatIfPanel::showOffer);
  try_->setToolTip(wrapped_tip(tr("Run the text once more with this one change (W)")));
  drop_->setToolTip(wrapped_tip(tr("Show what the model does by itself again (Escape)")));
  result_->setAccessibleName(tr("What the change does to the loss"));
  QFont bold = font();
  bold.setBold(true);
  result_->setFont(bold);
  auto* row = new QHBoxLayout;
  row->addWidget(question_);
  row->addWidget(source_);
  row->addStretch(1);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(try_);
  buttons->addWidget(drop_);
  buttons->addStretch(1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 6, 0);
  column->addWidget(message_);
  column->addLayout(row);
  column->addLayout(buttons);
  column->addWidget(result_);
  column->addWidget(mean_);
  column->addWidget(table_, 1);
  connect(try_, &QPushButton::clicked, this, &WhatIfPanel::tryIt);
  connect(drop_, &QPushButton::clicked, this, &WhatIfPanel::dropRequested);
  setOffers({});
  fillTable();
}

void WhatIfPanel::makeTable() {
  table_->setAccessibleName(tr("Most likely next tokens"));
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionMode(QAbstractItemView::NoSelection);
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->hide();
  table_->setShowGrid(false);
  table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 4);
  table_->setMinimumHeight(120);
}

void WhatIfPanel::setMessage(const QString& text) {
  message_->setText(text);
  message_->setVisible(!text.isEmpty());
}

void WhatIfPanel::setPredictions(const std::optional<ShownPredictions>& predictions) {
  predictions_ = predictions;
  fillTable();
}

/// What was chosen among the kinds stays chosen.
void WhatIfPanel::setOffers(std::vector<WhatIfOffer> offers) {
  const int kept = question_->currentIndex();
  offers_ = std::move(offers);
  question_->clear();
  for (const WhatIfOffer& offer : offers_) question_->addItem(offer.question);
  question_->setCurrentIndex(kept >= 0 && kept < question_->count() ? kept : offers_.empty() ? -1 : 0);
  question_->setEnabled(offers_.size() > 1);
  for (QWidget* control : {static_cast<QWidget*>(question_), static_cast<QWidget*>(source_), static_cast<QWidget*>(try_)})
    control->setVisible(!offers_.empty());
  showOffer();
}

const WhatIfOffer* WhatIfPanel::offer() const {
  const auto at = static_cast<size_t>(question_->currentIndex());
  return question_->currentIndex() >= 0 && at < offers_.size() ? &offers_[at] : nullptr;
}

void WhatIfPanel::showOffer() {
  const WhatIfOffer* now = offer();
  if (!now) return;
  source_->setRange(now->least, now->most);
  source_->setSpecialValueText(now->least < 0 ? tr("none") : QString());
  source_->setValue(now->proposed);
}

void WhatIfPanel::setBusy(bool busy) { try_->setEnabled(!busy); }

int WhatIfPanel::source() const { return source_->value(); }
void WhatIfPanel::setSource(int source) {
  if (const WhatIfOffer* now = offer()) source_->setValue(std::clamp(source, now->least, now->most));
}

void WhatIfPanel::tryIt() {
  if (offer() && try_->isEnabled()) Q_EMIT tryRequested(source());
}

void WhatIfPanel::setChange(const ShownChange& change, int query) {
  change_ = change;
  const auto q = static_cast<size_t>(query);
  if (std::isnan(change.loss) || q >= change.losses.size()) {
    result_->setText(tr("This query has no loss: only its predictions change."));
  } else {
    const double after = change.losses[q];
    result_->setText(tr("loss %1 → %2 nats (%3)").arg(nats(change.loss), nats(after), signed_number(after - change.loss)));
  }
  if (change.changed_from >= 0)
    mean_->setText(tr("Mean over %1 from %2 on: %3 nats")
                       .arg(QString::fromStdString(counted(change.mean_over, "query", "queries")))
                       .arg(change.changed_from)
                       .arg(signed_number(change.mean_change)));
  else
    mean_->setText(same_predictions(change.before, change.after)
                       ? tr("Nothing changes: that is what the model reads.")
                       : tr("No loss changes, only predictions of queries that nothing is asked of."));
  result_->show();
  mean_->show();
  drop_->show();
  fillTable();
}

void WhatIfPanel::clearChange() {
  change_.reset();
  for (QWidget* part : {static_cast<QWidget*>(result_), static_cast<QWidget*>(mean_), static_cast<QWidget*>(drop_)}) part->hide();
  fillTable();
}

/// Without a change the likeliest tokens; with one what becomes of them. The right answer and the token that follows come first.
void WhatIfPanel::fillTable() {
  const ShownPredictions* before = change_ ? &change_->before : predictions_ ? &*predictions_ : nullptr;
  table_->setVisible(before != nullptr);
  if (!before) return;
  const ShownPredictions* after = change_ ? &change_->after : nullptr;
  const QStringList titles =
      after ? QStringList{tr("token"), tr("share"), tr("then"), tr("Δ logit")} : QStringList{tr("token"), tr("share"), tr("logit")};
  table_->clear();
  table_->setColumnCount(static_cast<int>(titles.size()));
  table_->setHorizontalHeaderLabels(titles);
  std::vector<std::pair<const ShownPrediction*, const ShownPrediction*>> rows;
  QStringList marks;  // of the first rows
  if (before->answer) rows.emplace_back(&*before->answer, after && after->answer ? &*after->answer : nullptr), marks << tr("right: ");
  if (before->target) rows.emplace_back(&*before->target, after && after->target ? &*after->target : nullptr), marks << tr("next: ");
  for (size_t i = 0; i < before->top.size(); ++i)
    rows.emplace_back(&before->top[i], after && i < after->top.size() ? &after->top[i] : nullptr);
  table_->setRowCount(static_cast<int>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [one, then] = rows[i];
    const QString mark = marks.value(static_cast<qsizetype>(i));
    QStringList cells{mark + quoted(one->piece.toStdString()), share(one->probability)};
    if (then)
      cells << share(then->probability) << signed_number(then->logit - one->logit, 3);
    else
      cells << QString::number(one->logit, 'f', 3);
    for (int c = 0; c < cells.size(); ++c) {
      auto* item = new QTableWidgetItem(cells[c]);
      item->setTextAlignment((c == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
      if (!mark.isEmpty()) {
        QFont bold = table_->font();
        bold.setBold(true);
        item->setFont(bold);
      }
      table_->setItem(static_cast<int>(i), c, item);
    }
  }
}

}  // namespace saccade::ui
