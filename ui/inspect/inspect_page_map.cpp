// The map of one head: which map, in which colours, what its rows and cells say.
#include <QComboBox>
#include <QGridLayout>
#include <QSignalBlocker>
#include <QToolButton>
#include <algorithm>

#include "analysis/figures/derived.h"
#include "analysis/figures/margins.h"
#include "analysis/inspection/known_answers.h"
#include "analysis/probes/capture_maps.h"
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/ticks.h"
#include "ui/charts/two_columns.h"
#include "ui/inspect/inspect_page.h"
#include "ui/inspect/query_panel.h"
#include "ui/session.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

namespace {

struct ShownMap {
  MapKind kind;
  const char* title;
};
constexpr ShownMap kMaps[] = {{MapKind::weights, QT_TR_NOOP("attention (or read) weights")},
                              {MapKind::soft_weights, QT_TR_NOOP("weights before the choice")},
                              {MapKind::score, QT_TR_NOOP("chunk scores")},
                              {MapKind::maxsim, QT_TR_NOOP("split similarity")}};

}  // namespace

QWidget* InspectPage::makeMaps() {
  heads_ = new FigureView;
  map_ = new FigureView;
  large_ = new LargeMapView(map_, this);
  connect(large_, &LargeMapView::shown, this, &InspectPage::titleMap);
  connect(large_, &LargeMapView::failed, this, &InspectPage::showProblem);
  makeOverview();
  map_card_ = new Card(tr("Map"), {}, map_, this);
  map_choice_ = new QComboBox;
  map_choice_->setAccessibleName(tr("What the map shows"));
  map_choice_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  calm_wheel(map_choice_);
  log_colours_ = new QToolButton;
  log_colours_->setText(tr("log colours"));
  log_colours_->setToolTip(
      wrapped_tip(tr("Logarithmic colour scale, which shows small weights too. Where weights have both signs, a linear scale that clips "
                     "the largest 1 %.")));
  log_colours_->setCheckable(true);
  margins_ = new QToolButton;
  margins_->setText(tr("margins"));
  margins_->setToolTip(
      wrapped_tip(tr("A bar beside every row: score of what the query chose minus that of the best it did not choose. Short bars are "
                     "choices that nearly went the other way.")));
  margins_->setCheckable(true);
  const QVariant margins = session_.place().value("inspectMargins");
  margins_->setChecked(!margins.isValid() || margins.toBool());
  makeBeside();
  map_card_->addControl(margins_);
  map_card_->addControl(log_colours_);
  map_card_->addControl(map_choice_);
  QWidget* card = makeQueryCard();
  auto* maps = new QWidget;
  maps_ = new QGridLayout(maps);
  maps_->setContentsMargins(0, 0, 0, 0);
  arrangeMaps();
  map_->setCellText([this](int r, int c) { return cellText(r, c); });
  connect(map_, &FigureView::cellClicked, this, [this](int r, int c) {
    session_.setQuery(queryOfRow(r));
    proposeSource(c);
  });
  connect(map_choice_, &QComboBox::activated, this, &InspectPage::showHead);
  connect(log_colours_, &QToolButton::toggled, this, &InspectPage::showHead);
  connect(margins_, &QToolButton::toggled, this, [this](bool on) {
    session_.place().set("inspectMargins", on);
    showHead();
  });
  for (FigureView* view : {heads_, map_, query_->scores()}) {
    connect(view, &FigureView::failed, &session_, &Session::failed);
    connect(view, &FigureView::exported, &session_, &Session::tellSaved);
  }
  auto* both = new TwoColumns({maps, 10, 1}, {card, 4, 1}, 680, 1.9, this);
  both->setMinimumHeight(280);
  return both;
}

/// Keeps the choice of map where the layer has it.
void InspectPage::chooseMap() {
  const auto at = place();
  const QVariant wanted = map_choice_->currentData();
  const QSignalBlocker blocker(map_choice_);
  map_choice_->clear();
  for (const ShownMap& map : kMaps)
    if (at && find_map(*capture(), map.kind, at->layer)) map_choice_->addItem(tr(map.title), static_cast<int>(map.kind));
  int kept = map_choice_->findData(wanted);
  if (kept < 0 && at) kept = map_choice_->findData(static_cast<int>(main_map(*capture(), at->layer)));
  map_choice_->setCurrentIndex(std::max(kept, 0));
  map_choice_->setVisible(map_choice_->count() > 1);
}

void InspectPage::showHead() {
  const auto at = place();
  if (!isVisible()) return;
  if (!at) {
    if (capture()) showNothing(tr("This capture holds no attention (or read) weights."));
    return;
  }
  chooseMap();
  selectHead();
  const bool weights = chosenMap() == MapKind::weights || chosenMap() == MapKind::soft_weights;
  log_colours_->setVisible(weights);
  margins_->setVisible(has_margins(*capture(), at->layer));
  const MapPlace wanted{chosenMap(), at->layer, at->head};
  const auto sample = static_cast<size_t>(capture() - captures_->samples.data());
  large_->show({captures_, sample, wanted,
                [captures = captures_, sample, wanted, provenance = provenance_, in_logarithms = weights && log_colours_->isChecked(),
                 with_strip = margins_->isChecked()](Figure figure) {
                  const Capture& shown = captures->samples[sample];
                  figure.provenance.insert(figure.provenance.begin(), provenance.begin(), provenance.end());
                  if (in_logarithms) figure = log_colours(std::move(figure));
                  if (with_strip) figure = with_margins(std::move(figure), shown, wanted.layer, wanted.head);
                  return with_answers(std::move(figure), shown, wanted, captures->answers.at(sample));
                }});
  if (large_->busy()) {
    map_->setEmptyText(tr("Reading the map …"));
    titleMap();
  }
  showQuery();
}

void InspectPage::titleMap() {
  const auto at = place();
  if (!at) return;
  const auto& mixers = capture()->layer_mixers;
  const auto layer = static_cast<size_t>(at->layer);
  const QString mixer = layer < mixers.size() ? QStringLiteral(" (%1)").arg(QString::fromStdString(mixers[layer])) : QString();
  QStringList words{map_choice_->currentText()};
  if (const auto& map = map_->figure().map) {
    if (!map->marked.empty()) words << tr("orange: chosen");
    if (!map->known.empty()) words << tr("green: known answer");
    if (const auto [rows, columns] = large_->block(); rows > 1) words << tr("greatest of %1 × %2").arg(rows).arg(columns);
  }
  words << tr("frame: this query");
  map_card_->setTitle(tr("Layer %1%2 · head %3").arg(at->layer).arg(mixer).arg(at->head), words.join(QStringLiteral(" · ")));
}

/// Of the layer that is shown; 0 where it chooses no parts.
int64_t InspectPage::candidateSize() const {
  const auto at = place();
  return at ? candidate_size(*capture(), at->layer) : 0;
}

MapKind InspectPage::chosenMap() const { return static_cast<MapKind>(map_choice_->currentData().toInt()); }

int InspectPage::queryOfRow(int row) const {
  if (chosenMap() != MapKind::maxsim) return row;
  const int64_t size = std::max<int64_t>(1, candidateSize());
  return static_cast<int>(std::min<int64_t>((row + 1) * size, static_cast<int64_t>(capture()->tokens.size())) - 1);
}

int InspectPage::rowOfQuery(int query) const {
  if (chosenMap() != MapKind::maxsim) return query;
  return static_cast<int>(query / std::max<int64_t>(1, candidateSize()));
}

QString InspectPage::cellText(int row, int column) const {
  const Capture* sample = capture();
  const Figure& figure = map_->figure();
  if (!sample || !figure.map) return {};
  const auto piece = [&](int position) {
    return position >= 0 && static_cast<size_t>(position) < sample->pieces.size() ? quoted(sample->pieces[static_cast<size_t>(position)])
                                                                                  : QString();
  };
  const QString words = large_->words(row, column);
  const int64_t size = std::max<int64_t>(1, candidateSize());
  if (chosenMap() == MapKind::maxsim) return tr("split %1 and earlier split %2: %3").arg(row).arg(column).arg(words);
  if (chosenMap() == MapKind::score)
    return tr("query %1 %2, chunk %3 (positions %4 to %5): %6")
        .arg(row)
        .arg(piece(row))
        .arg(column)
        .arg(column * size)
        .arg((column + 1) * size - 1)
        .arg(words);
  return tr("query %1 %2 reads position %3 %4: %5").arg(row).arg(piece(row)).arg(column).arg(piece(column)).arg(words);
}

}  // namespace saccade::ui
