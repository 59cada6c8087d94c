#include "ui/inspect/beside_run.h"

#include <algorithm>

#include "analysis/figures/derived.h"
#include "analysis/inspection/known_answers.h"
#include "analysis/inspection/run_differences.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "ui/inspect/query_panel.h"

namespace saccade::ui {
namespace {

/// The last of the steps up to `step`, else the first; −1 where there is none.
int64_t nearest(const std::vector<int64_t>& steps, int64_t step) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), step);
  if (steps.empty()) return -1;
  return after == steps.begin() ? steps.front() : *(after - 1);
}

}  // namespace

BesideRun::BesideRun(const QString& directory, const QString& name, QWidget* parent)
    : Card(name, {}, new FigureView, parent),
      directory_(directory),
      name_(name),
      map_(findChild<FigureView*>()),
      large_(new LargeMapView(map_, this)),
      loader_(new CaptureLoader(this)),
      helper_(new HelperText(this)) {
  setMinimumWidth(180);
  map_->setCellText([this](int row, int column) { return cellText(row, column); });
  connect(loader_, &CaptureLoader::loaded, this, &BesideRun::take);
  connect(helper_, &HelperText::loaded, this, &BesideRun::take);
  connect(large_, &LargeMapView::failed, this, &BesideRun::tell);
  connect(loader_, &CaptureLoader::failed, this, &BesideRun::say);
  connect(helper_->client(), &InspectionClient::refused, this, &BesideRun::say);
  connect(helper_->client(), &InspectionClient::ended, this, &BesideRun::say);
  connect(map_, &FigureView::cellClicked, this, [this](int row, int) { Q_EMIT queryClicked(row); });
}

void BesideRun::follow(const std::string& source, int64_t step, int sample) {
  const bool captured = source.empty();
  const int64_t own =
      nearest(captured ? step_files(directory_.toStdString(), kCaptures) : checkpoint_steps(directory_.toStdString()), step);
  sample_ = sample;
  if (followed_ && source == source_ && own == step_ && captures_) return;
  followed_ = true;
  source_ = source;
  step_ = own;
  captures_.reset();
  if (own < 0) return say(captured ? tr("This run has captured no text yet.") : tr("This run has kept no checkpoint."));
  tell(tr("Reading …"));
  if (captured)
    loader_->load(directory_, own);
  else
    helper_->read(directory_, own, nlohmann::json::parse(source), true);
}

void BesideRun::take(const std::shared_ptr<const LoadedCaptures>& captures) {
  captures_ = captures;
  Q_EMIT ready();
}

void BesideRun::tell(const QString& words) {
  large_->clear();
  mapped_.reset();
  map_->setEmptyText(words);
  map_->setFigure({});
}

void BesideRun::say(const QString& words) {
  captures_.reset();
  tell(words);
  Q_EMIT ready();
}

const Capture* BesideRun::capture() const {
  if (!captures_ || captures_->samples.empty()) return nullptr;
  const auto last = static_cast<int>(captures_->samples.size()) - 1;
  return &captures_->samples[static_cast<size_t>(captures_->source.empty() ? std::clamp(sample_, 0, last) : 0)];
}

QString BesideRun::cellText(int row, int column) const {
  const Capture* own = capture();
  if (!own) return {};
  const auto piece = [&](int position) {
    return static_cast<size_t>(position) < own->pieces.size() ? quoted(own->pieces[static_cast<size_t>(position)]) : QString();
  };
  return tr("query %1 %2 reads position %3 %4: %5").arg(row).arg(piece(row)).arg(column).arg(piece(column)).arg(large_->words(row, column));
}

/// Once for every map, not for every query.
void BesideRun::showMap(const Main& main, const Place& place, const MapPlace& own) {
  const Mapped wanted{main.captures, captures_,         main.sample,     {MapKind::weights, place.layer, place.head},
                      own,           place.log_colours, place.difference};
  if (mapped_ == wanted) return;
  mapped_ = wanted;
  const auto sample = static_cast<size_t>(capture() - captures_->samples.data());
  LargeMapView::Wanted map{captures_, sample, own,
                           [captures = captures_, own, sample, logarithmic = place.log_colours && !place.difference,
                            run = std::filesystem::path(directory_.toStdString()).filename().string()](Figure figure) {
                             if (logarithmic) figure = log_colours(std::move(figure));
                             figure.provenance.push_back("run " + run);
                             return with_answers(std::move(figure), captures->samples[sample], own, captures->answers.at(sample));
                           }};
  if (place.difference) map.minus = main.captures, map.minus_sample = main.sample, map.minus_place = wanted.place;
  large_->show(std::move(map));
}

void BesideRun::show(const Main& shown, const Place& place) {
  const Capture* own = capture();
  if (!own) return;
  const Capture& main = shown.capture();
  try {
    int64_t layer = place.layer;
    if (!find_map(*own, MapKind::weights, layer)) {  // the last one that this run has
      layer = -1;
      for (const CapturedMap& map : own->maps)
        if (map.kind == MapKind::weights) layer = std::max(layer, map.layer);
    }
    const CapturedMap& weights = require_map(*own, MapKind::weights, layer, 3);
    const int64_t head = std::min<int64_t>(place.head, weights.shape[0] - 1);
    showMap(shown, place, {MapKind::weights, layer, head});
    map_->setSelectedCell(std::min(place.query, static_cast<int>(weights.shape[1]) - 1), -1);
    const QString same = same_tokens(main, *own) ? QString() : tr(" · other tokens");
    setTitle(QStringLiteral("%1 · %2").arg(place.number).arg(name_),
             tr("step %1 · layer %2 · head %3%4").arg(captures_->step).arg(layer).arg(head).arg(same));
  } catch (const std::exception& error) {
    tell(QString::fromUtf8(error.what()));
  }
}

}  // namespace saccade::ui
