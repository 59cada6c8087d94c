// The overview of all heads: what they measure, in which order they stand.
#include <QComboBox>
#include <algorithm>
#include <cmath>

#include "analysis/probes/capture_maps.h"
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/ticks.h"
#include "ui/inspect/inspect_page.h"
#include "ui/session.h"

namespace saccade::ui {

void InspectPage::makeOverview() {
  heads_card_ = new Card(tr("Layer × head"), {}, heads_, this);
  heads_card_->setMinimumWidth(210);  // with less, Qt Charts cuts the titles of the axes
  measure_ = new QComboBox;
  measure_->setAccessibleName(tr("What the overview of heads shows"));
  for (const auto& [name, help] : {std::pair(tr("entropy"), tr("Over ln(positions): 1 is evenly spread")),
                                   std::pair(tr("distance"), tr("How many tokens back the weight lies, in the mean")),
                                   std::pair(tr("induction"), tr("Weight behind earlier copies of the query's token"))}) {
    measure_->addItem(name);
    measure_->setItemData(measure_->count() - 1, help, Qt::ToolTipRole);
  }
  order_ = new QComboBox;
  order_->setAccessibleName(tr("Order of the heads"));
  for (const auto& [name, help] :
       {std::pair(tr("in place"), tr("By layer and head")), std::pair(tr("sorted"), tr("The greatest value first")),
        std::pair(tr("clustered"), tr("Heads beside each other that are alike in all three measures"))}) {
    order_->addItem(name);
    order_->setItemData(order_->count() - 1, help, Qt::ToolTipRole);
  }
  for (QComboBox* box : {measure_, order_}) {
    calm_wheel(box);
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    heads_card_->addControl(box);
    connect(box, &QComboBox::activated, this, [this] {
      session_.place().set("inspectMeasure", measure_->currentIndex());
      session_.place().set("inspectOrder", order_->currentIndex());
      showOverview();
      selectHead();
    });
  }
  measure_->setCurrentIndex(std::clamp(session_.place().value("inspectMeasure").toInt(), 0, 2));
  order_->setCurrentIndex(std::clamp(session_.place().value("inspectOrder").toInt(), 0, 2));
  heads_->setCellText([this](int row, int column) { return headText(row, column); });
  connect(heads_, &FigureView::cellClicked, this, [this](int row, int column) {
    if (!heads_->figure().map) return;
    const HeadPlace head = head_at(heads_shown_, *heads_->figure().map, order(), row, column);
    if (head.layer >= 0) session_.setHead(static_cast<int>(head.layer), static_cast<int>(head.head));
  });
}

/// Of the sample that is shown; null while they are worked out.
const HeadLists* InspectPage::headLists() const {
  const std::vector<HeadLists>* all = captures_->heads.empty() ? late_heads_.get() : &captures_->heads;
  const auto sample = static_cast<size_t>(capture() - captures_->samples.data());
  return all && sample < all->size() ? &(*all)[sample] : nullptr;
}

HeadMeasure InspectPage::measure() const { return static_cast<HeadMeasure>(measure_->currentIndex()); }
HeadOrder InspectPage::order() const { return static_cast<HeadOrder>(order_->currentIndex()); }

void InspectPage::showOverview() {
  const Capture* sample = capture();
  if (!sample) return;
  const HeadLists* lists = headLists();
  if (!lists) {
    heads_->setEmptyText(tr("Reading all maps …"));
    heads_->setFigure({});
    return;
  }
  const std::vector<HeadScores>& scores = lists->scores;
  heads_shown_ = order() == HeadOrder::similarity ? lists->alike : order_of_heads(scores, measure(), order());
  Figure overview = head_scores_figure(scores, heads_shown_, measure(), order(), sample->layer_mixers);
  overview.provenance = provenance_;
  heads_->setFigure(std::move(overview));
  QStringList silent;
  for (const int64_t layer : layers_without_reads(*sample)) silent << QString::number(layer);
  const QString words = measure() == HeadMeasure::entropy    ? tr("1 = evenly spread")
                        : measure() == HeadMeasure::distance ? tr("tokens back")
                                                             : tr("1 = all behind copies");
  heads_card_->setTitle(tr("Layer × head"),
                        silent.isEmpty() ? words : tr("%1 · no weights in layer %2").arg(words, silent.join(QStringLiteral(", "))));
}

void InspectPage::selectHead() {
  const auto at = place();
  if (!at || !heads_->figure().map) return;
  const auto [row, column] = cell_of_head(heads_shown_, *heads_->figure().map, order(), {at->layer, at->head});
  heads_->setSelectedCell(static_cast<int>(row), static_cast<int>(column));
}

QString InspectPage::headText(int row, int column) const {
  const Capture* sample = capture();
  if (!sample || !heads_->figure().map) return {};
  const HeadPlace place = head_at(heads_shown_, *heads_->figure().map, order(), row, column);
  const HeadLists* lists = headLists();
  if (!lists) return {};
  for (const HeadScores& s : lists->scores) {
    if (s.layer != place.layer) continue;
    const auto h = static_cast<size_t>(place.head);
    const auto shown = [](double value) { return std::isnan(value) ? tr("none") : short_number(value); };
    return tr("layer %1, head %2: entropy %3, distance %4 tokens, induction %5")
        .arg(place.layer)
        .arg(place.head)
        .arg(shown(s.entropy[h]), shown(s.distance[h]), shown(s.induction[h]));
  }
  return tr("no head");
}

}  // namespace saccade::ui
