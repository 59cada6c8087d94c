// What the page asks the helper process: texts of one's own, predictions, what-ifs.
#include <QSignalBlocker>
#include <QTabWidget>
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/probes/capture_maps.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "ui/inspect/inspect_page.h"
#include "ui/inspect/loss_strip.h"
#include "ui/inspect/query_panel.h"
#include "ui/inspect/text_choice.h"
#include "ui/inspect/what_if_panel.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

constexpr int kRest = 200;  ///< ms that a query is looked at before the model is asked about it

}  // namespace

void InspectPage::restore() {
  choice_->restore(session_.place().value("inspectText").toByteArray());
  placed_ = choice_->source().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  tabs_->setCurrentIndex(std::clamp(session_.place().value("inspectTab").toInt(), 0, 1));
}

void InspectPage::connectHelper() {
  ask_.setSingleShot(true);
  ask_.setInterval(kRest);
  connect(&ask_, &QTimer::timeout, this, &InspectPage::askModel);
  connect(helper_, &HelperText::loaded, this, &InspectPage::take);
  connect(helper_, &HelperText::predicted, this, [this](int query, const ShownPredictions& predictions) {
    if (const auto at = place(); at && at->query == query) what_if_->setPredictions(predictions);
  });
  connect(helper_, &HelperText::changed, this, &InspectPage::takeChange);
  connect(helper_->client(), &InspectionClient::busyChanged, what_if_, &WhatIfPanel::setBusy);
  connect(helper_->client(), &InspectionClient::refused, this, [this](const QString& message) {
    if (!captures_) return showProblem(message);
    what_if_->setMessage(message);
  });
  connect(helper_->client(), &InspectionClient::ended, this, [this](const QString& message) {
    if (!captures_) return showProblem(message);
    what_if_->setMessage(message);
    Q_EMIT session_.failed(message);
  });
  connect(choice_, &TextChoice::chosen, this, &InspectPage::chooseText);
  connect(&session_, &Session::itemsRequested, choice_, &TextChoice::setItems);
  connect(choice_, &TextChoice::stateChanged, this, [this] { session_.place().set("inspectText", choice_->state()); });
  connect(what_if_, &WhatIfPanel::tryRequested, this, &InspectPage::tryWhatIf);
  connect(what_if_, &WhatIfPanel::dropRequested, this, &InspectPage::dropWhatIf);
  connect(tabs_, &QTabWidget::currentChanged, this, [this](int tab) {
    session_.place().set("inspectTab", tab);
    ask_.start();
  });
}

void InspectPage::chooseText() {
  steps_.clear();
  directory_.clear();
  captures_.reset();
  prepared_.clear();
  fitText();
  followRun();
}

void InspectPage::readText() {
  if (!choice_->complete())
    return showNothing(choice_->ofItems() ? tr("A click on a score in Compare, page Scores, brings its failed items here.")
                                          : tr("Give a text above, then press Read."));
  const nlohmann::json source = choice_->source();
  if (captures_ && captures_->directory == directory_ && captures_->step == shownStep() &&
      captures_->source == source.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
    return showSample();
  showNothing(tr("Reading the text with the checkpoint of step %1 …").arg(shownStep()));
  helper_->read(directory_, shownStep(), source, true);
  prepared_.clear();
}

/// A text that has a query to look at first begins with it; once, as one may look elsewhere then, also at other checkpoints.
void InspectPage::placeQuery() {
  if (captures_->query < 0 || placed_ == captures_->source) return;
  placed_ = captures_->source;
  const QSignalBlocker quiet(&session_);  // everything is about to be shown
  session_.setQuery(static_cast<int>(captures_->query));
}

/// The text goes to the helper once; again where its process was ended since.
bool InspectPage::prepareHelper() {
  const nlohmann::json source =
      captures_->source.empty()
          ? nlohmann::json{{"source", "captured"}, {"step", captures_->step}, {"sample", capture() - captures_->samples.data()}}
          : nlohmann::json::parse(captures_->source);
  const auto checkpoints = checkpoint_steps(directory_.toStdString());
  if (std::find(checkpoints.begin(), checkpoints.end(), captures_->step) == checkpoints.end()) {
    QStringList kept;
    for (const int64_t step : checkpoints) kept << QString::number(step);
    what_if_->setMessage(kept.isEmpty() ? tr("Predictions and what-ifs need a checkpoint, and this run has kept none.")
                                        : tr("Predictions and what-ifs need a checkpoint of step %1; this run has kept those of %2.")
                                              .arg(captures_->step)
                                              .arg(kept.join(QStringLiteral(", "))));
    return false;
  }
  const QString text = QStringLiteral("%1\n%2\n%3").arg(directory_).arg(captures_->step).arg(QString::fromStdString(source.dump()));
  InspectionClient* client = helper_->client();
  what_if_->setMessage(tr("Checkpoint of step %1, on the CPU in float32").arg(captures_->step));
  if (text == prepared_ && prepared_by_ == client->startedProcesses() && client->process() != 0) return true;
  const bool already = prepared_.isEmpty() && !captures_->source.empty() && client->process() != 0;  // the helper has just read it
  if (!already) helper_->read(directory_, captures_->step, source, false);
  prepared_ = text;
  prepared_by_ = client->startedProcesses();
  return true;
}

void InspectPage::askModel() {
  const auto at = place();
  if (!isVisible() || !at || tabs_->currentIndex() != 1 || what_if_->changed()) return;
  if (prepareHelper()) helper_->askPredictions(at->query);
}

/// What can be forced or masked where one looks: what layers choose among is known from the maps.
std::vector<WhatIfOffer> InspectPage::whatIfs() const {
  const auto at = place();
  if (!at) return {};
  const Selection* selection = find_selection(*capture(), at->layer);
  const auto strongest = [&](int last) {
    int best = 0;
    for (int j = 0; j <= last && j < static_cast<int>(reads_->weights.size()); ++j)
      if (std::abs(reads_->weights[static_cast<size_t>(j)]) > std::abs(reads_->weights[static_cast<size_t>(best)])) best = j;
    return best;
  };
  using Kind = Counterfactual::Kind;
  if (!selection) return {{Kind::mask, tr("without position"), 0, at->query, strongest(at->query)}};
  if (selection->unit == Selection::Unit::element)
    return {{Kind::force, tr("reads position"), 0, at->query, std::max(0, strongest(at->query) - 1)}};
  const int own = at->query / static_cast<int>(selection->tokens);
  if (own == 0) return {};
  const auto best = [&](bool of_chosen) {  // the best of what was chosen, or of what was not
    int found = 0;
    double score = -std::numeric_limits<double>::infinity();
    for (int c = 0; c < own && c < static_cast<int>(reads_->candidate_scores.size()); ++c) {
      const bool chosen =
          std::find(reads_->chosen_candidates.begin(), reads_->chosen_candidates.end(), c) != reads_->chosen_candidates.end();
      if (chosen == of_chosen && reads_->candidate_scores[static_cast<size_t>(c)] > score)
        score = reads_->candidate_scores[static_cast<size_t>(c)], found = c;
    }
    return found;
  };
  if (selection->unit == Selection::Unit::chunk) return {{Kind::force, tr("reads chunk"), -1, own - 1, best(false)}};
  return {{Kind::force, tr("takes split"), 0, own - 1, best(false)},
          {Kind::mask, tr("in this layer without split"), 0, own - 1, best(true)}};
}

void InspectPage::offerWhatIf() { what_if_->setOffers(whatIfs()); }

/// A column of the map as a source.
void InspectPage::proposeSource(int column) {
  const auto at = place();
  if (!at || column < 0) return;
  const Selection* selection = find_selection(*capture(), at->layer);
  const bool by_position = chosenMap() == MapKind::weights || chosenMap() == MapKind::soft_weights;
  what_if_->setSource(selection && by_position ? column / static_cast<int>(selection->tokens) : column);
}

void InspectPage::tryWhatIf(int source) {
  const auto at = place();
  if (!at || !what_if_->offer() || !prepareHelper()) return;
  helper_->askChange({what_if_->offer()->kind, at->layer, at->head, at->query, source}, at->query);
}

void InspectPage::dropWhatIf() {
  if (!what_if_->changed()) return;
  what_if_->clearChange();
  strip_->setChanged({});
  ask_.start();
}

void InspectPage::takeChange(const ShownChange& change) {
  const auto at = place();
  if (!at || at->layer != change.change.layer || at->head != change.change.head || at->query != change.change.query) return;
  what_if_->setChange(change, at->query);
  strip_->setChanged(change.losses);
}

}  // namespace saccade::ui
