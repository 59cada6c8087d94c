#include "ui/inspect/query_panel.h"

#include <QFontDatabase>
#include <QFormLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "analysis/figures/derived.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/ticks.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

namespace {

QString number(double value, const QString& unit = {}) {
  if (std::isnan(value)) return {};
  return unit.isEmpty() ? short_number(value) : short_number(value) + QLatin1Char(' ') + unit;
}

QString list(const std::vector<int64_t>& values) {
  QStringList parts;
  for (const int64_t v : values) parts << QString::number(v);
  return parts.join(QStringLiteral(", "));
}

/// The token that a task asks a query for, as it is shown where it stands in the text; empty where that is not known.
QString asked_of(const Capture& capture, int64_t query) {
  if (!capture.asked) return {};
  const auto asked = capture.asked->find(query);
  if (asked == capture.asked->end()) return {};
  const auto at = std::find(capture.tokens.begin(), capture.tokens.end(), asked->second);
  return at == capture.tokens.end() ? QueryPanel::tr("token %1").arg(asked->second)
                                    : quoted(capture.pieces[static_cast<size_t>(at - capture.tokens.begin())]);
}

}  // namespace

QString quoted(const std::string& piece) {
  QString text = QString::fromStdString(piece).replace(QChar(0x2581), QLatin1Char(' '));
  text.replace(QLatin1Char('\n'), QChar(0x21B5)).replace(QLatin1Char('\t'), QChar(0x21E5));
  return QStringLiteral("“%1”").arg(text);
}

QueryPanel::QueryPanel(QWidget* parent)
    : QWidget(parent),
      scores_(new FigureView(this)),
      scores_card_(new Card(tr("Candidates"), {}, scores_, this)),
      form_(new QFormLayout),
      text_(new QPlainTextEdit(this)) {
  form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form_->setVerticalSpacing(3);
  chosen_ = addRow(tr("chosen"), tr("What the mixer selected for this query"));
  margin_ = addRow(tr("margin"), tr("Score of the chosen candidate minus that of the best one not chosen"));
  captured_ = addRow(tr("captured mass"), tr("Share of the full softmax mass that the choice kept; 1 = nothing lost"));
  entropy_ = addRow(tr("entropy"), tr("Of the attention (or read) weights, in nats; in parentheses divided by ln(positions)"));
  outside_ = addRow(tr("beyond 256 tokens"), tr("Share of the weight that lies more than 256 positions back"));
  median_ = addRow(tr("median distance"), tr("Half of the weight lies within this many positions"));
  distance90_ = addRow(tr("90 % distance"), tr("Nine tenths of the weight lie within this many positions"));
  answer_ = addRow(tr("known answer"), tr("Where the token stands that this query is to predict, and how much of its weight lies there"));
  next_ = addRow(tr("next token"), tr("What followed in the text, and the loss of predicting it"));
  asked_ = addRow(tr("asked for"), tr("What a task asks here, which need not follow in the text, and the loss of answering it"));
  text_->setReadOnly(true);
  text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text_->setAccessibleName(tr("Text of what was chosen"));
  text_->setMinimumHeight(60);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 6, 0);  // beside a scroll bar
  column->addWidget(scores_card_, 3);
  column->addLayout(form_);
  column->addWidget(text_, 2);
  clear();
}

QLabel* QueryPanel::addRow(const QString& name, const QString& help) {
  auto* value = new QLabel(this);
  value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  value->setWordWrap(true);
  value->setTextInteractionFlags(Qt::TextSelectableByMouse);
  value->setToolTip(wrapped_tip(help));
  value->setAccessibleName(name);
  auto* label = new QLabel(name, this);
  label->setToolTip(wrapped_tip(help));
  form_->addRow(label, value);
  return value;
}

void QueryPanel::setRow(QLabel* value, const QString& text) {
  value->setText(text);
  value->setVisible(!text.isEmpty());
  form_->labelForField(value)->setVisible(!text.isEmpty());
}

void QueryPanel::show(const Capture& capture, int query, bool of_answers, const Reads& reads, const QString& unit,
                      const QString& chosen_text, const std::vector<std::string>& provenance) {
  Figure figure = candidates_figure(reads);
  const bool candidates = figure.id == "candidate-scores";
  if (candidates) figure.x.title = unit.toStdString();
  scores_card_->setTitle(candidates ? tr("Candidates") : tr("Weight by position"), {});
  figure.provenance = provenance;
  scores_->setFigure(std::move(figure));
  setRow(chosen_, reads.chosen_candidates.empty() ? list(reads.candidate_size == 0 ? reads.chosen_positions : std::vector<int64_t>{})
                                                  : QStringLiteral("%1 %2").arg(unit, list(reads.chosen_candidates)));
  const bool selects = !reads.chosen_candidates.empty() || !reads.chosen_positions.empty();
  setRow(margin_, selects ? number(reads.margin) : QString());
  setRow(captured_, selects ? number(reads.captured_mass) : QString());
  const QString normalized = number(reads.entropy_normalized);
  setRow(entropy_, number(reads.entropy, tr("nats")) + (normalized.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(normalized)));
  setRow(outside_, number(reads.outside_256));
  const auto tokens = [](double count) { return number(count, count == 1 ? tr("token") : tr("tokens")); };
  setRow(median_, tokens(reads.median_distance));
  setRow(distance90_, tokens(reads.distance_90));
  const auto q = static_cast<size_t>(query);
  QString next;
  if (q + 1 < capture.pieces.size()) next = quoted(capture.pieces[q + 1]);
  // Captures of earlier versions do not say what was asked: there a loss of zero is none.
  const bool is_asked =
      capture.asked ? capture.asked->contains(query) : !of_answers || (q < capture.token_losses.size() && capture.token_losses[q] != 0);
  const bool has_loss = q < capture.token_losses.size() && is_asked;
  const QString loss = has_loss ? tr("loss %1 nats").arg(short_number(static_cast<double>(capture.token_losses[q]))) : QString();
  const auto joined = [](const QString& a, const QString& b) { return a.isEmpty() || b.isEmpty() ? a + b : a + QStringLiteral(" · ") + b; };
  setRow(next_, of_answers ? next : joined(next, loss));
  setRow(asked_, of_answers ? joined(asked_of(capture, query), loss) : QString());
  setRow(answer_, {});
  text_->setVisible(!chosen_text.isEmpty());
  text_->setPlainText(chosen_text);
}

void QueryPanel::showAnswer(const std::optional<AnswerRead>& answer, int64_t positions) {
  if (!answer) return setRow(answer_, {});
  setRow(answer_,
         tr("at %1 · weight %2 · rank %3 of %4").arg(answer->source).arg(short_number(answer->weight)).arg(answer->rank).arg(positions));
}

void QueryPanel::clear() {
  scores_->setFigure({});
  for (QLabel* value : {chosen_, margin_, captured_, entropy_, outside_, median_, distance90_, answer_, next_, asked_}) setRow(value, {});
  text_->hide();
}

}  // namespace saccade::ui
