#include "ui/inspect/inspect_page.h"

#include <QComboBox>
#include <QFileInfo>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSlider>
#include <QTabBar>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "analysis/figures/derived.h"
#include "analysis/figures/margins.h"
#include "analysis/inspection/known_answers.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/ticks.h"
#include "ui/charts/two_columns.h"
#include "ui/inspect/loss_strip.h"
#include "ui/inspect/query_panel.h"
#include "ui/inspect/text_choice.h"
#include "ui/inspect/token_text.h"
#include "ui/inspect/what_if_panel.h"
#include "ui/page.h"
#include "ui/plain_scroll.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

namespace {

const RegisterPage entry{{"inspect", QObject::tr("Inspect"), "inspect", 40,
                          [](Session& session, QWidget* parent) -> QWidget* { return new InspectPage(session, parent); }}};

struct ShownMap {
  MapKind kind;
  const char* title;
};
constexpr ShownMap kMaps[] = {{MapKind::weights, QT_TR_NOOP("attention (or read) weights")},
                              {MapKind::soft_weights, QT_TR_NOOP("weights before the choice")},
                              {MapKind::score, QT_TR_NOOP("chunk scores")},
                              {MapKind::maxsim, QT_TR_NOOP("split similarity")}};

}  // namespace

InspectPage::InspectPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      loader_(new CaptureLoader(this)),
      helper_(new HelperText(this)),
      reading_(this, [this](ReadQuery read) {
        const auto at = place();
        if (!at || *at != read.at || captures_ != read.captures) return;
        if (!read.problem.isEmpty()) return showProblem(read.problem);
        takeReads(*at, std::move(read.reads));
      }) {
  auto* all = new QWidget;
  auto* column = new QVBoxLayout(all);
  column->addWidget(makeTextCard(), 2);
  column->addWidget(makeMaps(), 5);
  column->addWidget(makeTimeCard());
  auto* page = new QVBoxLayout(this);
  page->setContentsMargins(0, 0, 0, 0);
  page->addWidget(new PlainScroll(all, this));  // of a window that is too low for all three
  for (QWidget* watched :
       {static_cast<QWidget*>(text_), static_cast<QWidget*>(heads_), static_cast<QWidget*>(map_), static_cast<QWidget*>(strip_)})
    watched->installEventFilter(this);
  text_card_->installEventFilter(this);  // in little room its subtitle and controls stand below each other
  connect(loader_, &CaptureLoader::loaded, this, &InspectPage::take);
  connect(loader_, &CaptureLoader::failed, this, &InspectPage::showProblem);
  connect(loader_, &CaptureLoader::scored, this, [this](const auto& captures, const auto& heads) {
    if (captures != captures_) return;
    late_heads_ = heads;
    showOverview();
    selectHead();
  });
  restore();
  connectHelper();
  connectSession();
}

InspectPage::~InspectPage() = default;

QWidget* InspectPage::makeTextCard() {
  text_ = new TokenText;
  strip_ = new LossStrip;
  choice_ = new TextChoice;
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  column->addWidget(choice_);
  column->addWidget(text_, 1);
  column->addWidget(strip_);
  text_card_ = new Card(tr("Where did this query read from?"), {}, content, this);
  text_card_->addControl(choice_->box());
  sample_ = new QComboBox;
  sample_->setAccessibleName(tr("Sample"));
  sample_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  text_card_->addControl(sample_);
  text_->setMinimumHeight(3 * text_->fontMetrics().lineSpacing());
  connect(text_, &TokenText::textHeightChanged, this, &InspectPage::fitText);
  connect(sample_, &QComboBox::activated, &session_, &Session::setSample);
  connect(text_, &TokenText::queryClicked, &session_, &Session::setQuery);
  connect(strip_, &LossStrip::queryClicked, &session_, &Session::setQuery);
  return text_card_;
}

/// The text has as much room as it fills: the maps have the rest.
void InspectPage::fitText() {
  const int least = text_card_->minimumSizeHint().height(), around = least - text_->minimumHeight();
  text_card_->setMaximumHeight(captures_ ? std::max(least, text_->textHeight() + around) : QWIDGETSIZE_MAX);
}

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

QWidget* InspectPage::makeQueryCard() {
  query_ = new QueryPanel;
  what_if_ = new WhatIfPanel;
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  for (const auto& [part, title] :
       {std::pair<QWidget*, QString>(query_, tr("R&eads")), std::pair<QWidget*, QString>(what_if_, tr("&Predictions"))}) {
    auto* side = new QScrollArea;  // scrolls by itself: the map beside it is seen whole
    side->setWidget(part);
    side->setWidgetResizable(true);
    side->setFrameShape(QFrame::NoFrame);
    side->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    side->setFocusPolicy(Qt::NoFocus);
    side->viewport()->setAutoFillBackground(false);
    part->setAutoFillBackground(false);
    tabs_->addTab(side, title);
  }
  tabs_->setMinimumHeight(160);
  for (QWidget* named : {static_cast<QWidget*>(tabs_), static_cast<QWidget*>(tabs_->tabBar())})
    named->setAccessibleName(tr("What is told of the query"));
  query_card_ = new Card(tr("Query"), {}, tabs_, this);
  query_card_->setMinimumWidth(250);
  return query_card_;
}

QWidget* InspectPage::makeTimeCard() {
  step_ = new QSlider(Qt::Horizontal);
  step_->setAccessibleName(tr("Training step of the capture"));
  step_->setPageStep(1);
  step_->setTickPosition(QSlider::TicksBelow);
  time_card_ = new Card(tr("Training time"), {}, step_, this);
  auto* link = new QToolButton;
  link->setText(tr("linked to Live"));
  link->setToolTip(wrapped_tip(tr("Live marks this step on the curves of the run, and dragging the mark there moves this slider.")));
  link->setCheckable(true);
  link->setChecked(session_.stepLinked());
  connect(link, &QToolButton::toggled, &session_, &Session::setStepLinked);
  connect(&session_, &Session::stepLinkChanged, link, &QToolButton::setChecked);
  time_card_->addControl(link);
  connect(step_, &QSlider::valueChanged, this, [this](int index) {
    if (index < 0 || index >= static_cast<int>(steps_.size())) return;
    const bool newest = index + 1 == static_cast<int>(steps_.size());  // the newest stays the newest while the run goes on
    session_.setCaptureStep(newest ? -1 : steps_[static_cast<size_t>(index)]);
  });
  return time_card_;
}

void InspectPage::connectSession() {
  connect(session_.runs(), &RunList::changed, this, &InspectPage::followRun);
  connect(&session_, &Session::currentRunChanged, this, &InspectPage::followRun);
  connect(&session_, &Session::captureStepChanged, this, &InspectPage::request);
  connect(&session_, &Session::sampleChanged, this, &InspectPage::showSample);
  connect(&session_, &Session::headChanged, this, &InspectPage::showHead);
  connect(&session_, &Session::queryChanged, this, &InspectPage::showQuery);
  showNothing(tr("Select a run in the list to see where its queries read from."));
}

void InspectPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  followRun();
}

void InspectPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrangeMaps();
}

void InspectPage::followRun() {
  if (!isVisible()) return;
  const Run* run = session_.runs()->run(session_.currentRun());
  if (!run) {
    directory_.clear();
    steps_.clear();
    return showNothing(tr("Select a run in the list to see where its queries read from."));
  }
  const auto steps = choice_->captured() ? run->capture_steps() : checkpoint_steps(session_.currentRun().toStdString());
  if (directory_ == session_.currentRun() && steps == steps_) return;
  directory_ = session_.currentRun();
  steps_ = steps;
  provenance_ = {"run " + run->info().directory.filename().string() + ": " + session_.runs()->label(*run).toStdString()};
  if (steps_.empty()) return showNothing(emptyWords());
  request();
}

QString InspectPage::emptyWords() const {
  return choice_->captured()
             ? tr("This run has captured no text yet; it does so at every checkpoint, or as often as its setting Capture every says.")
             : tr("This run has kept no checkpoint yet that could read a text.");
}

int64_t InspectPage::shownStep() const {
  if (steps_.empty()) return -1;
  if (session_.captureStep() < 0) return steps_.back();
  const auto at = std::upper_bound(steps_.begin(), steps_.end(), session_.captureStep());
  return at == steps_.begin() ? steps_.front() : *(at - 1);
}

void InspectPage::showTime() {
  const QSignalBlocker blocker(step_);
  step_->setEnabled(steps_.size() > 1);
  step_->setRange(0, static_cast<int>(steps_.size()) - 1);
  step_->setValue(static_cast<int>(std::find(steps_.begin(), steps_.end(), shownStep()) - steps_.begin()));
  const QString step = tr("step %1").arg(shownStep());
  time_card_->setTitle(tr("Training time"),
                       steps_.size() == 1 ? (choice_->captured() ? tr("%1 · the only capture") : tr("%1 · the only checkpoint")).arg(step)
                       : choice_->captured()
                           ? tr("%1 · %2 captures, the last at step %3").arg(step).arg(steps_.size()).arg(steps_.back())
                           : tr("%1 · %2 checkpoints, the last at step %3").arg(step).arg(steps_.size()).arg(steps_.back()));
}

void InspectPage::request() {
  if (!isVisible() || steps_.empty()) return;
  showTime();
  if (!choice_->captured()) return readText();
  if (captures_ && captures_->source.empty() && captures_->directory == directory_ && captures_->step == shownStep()) return showSample();
  loader_->load(directory_, shownStep());
}

void InspectPage::take(const std::shared_ptr<const LoadedCaptures>& captures) {
  captures_ = captures;
  late_heads_.reset();
  losses_shown_.clear();
  const QSignalBlocker blocker(sample_);
  sample_->clear();
  for (const Capture& sample : captures_->samples)
    sample_->addItem(tr("%1, sample %2").arg(QString::fromStdString(sample.domain)).arg(sample.sample));
  sample_->setEnabled(sample_->count() > 1);
  sample_->setVisible(captures_->source.empty());
  placeQuery();
  showTime();
  showSample();
}

void InspectPage::showProblem(const QString& reason) {
  showNothing(reason);
  Q_EMIT session_.failed(reason);
}

void InspectPage::showNothing(const QString& text) {
  loader_->cancel();
  helper_->forget();
  ask_.stop();
  captures_.reset();
  large_->clear();
  strip_->setLosses({});
  what_if_->clearChange();
  what_if_->setPredictions({});
  what_if_->setOffers({});
  what_if_->setMessage({});
  reads_.reset();
  text_->clear();
  sample_->clear();
  query_->clear();
  for (QWidget* control : {static_cast<QWidget*>(log_colours_), static_cast<QWidget*>(map_choice_), static_cast<QWidget*>(sample_)})
    control->hide();
  map_->setEmptyText(text);
  map_->setFigure({});
  heads_->setEmptyText({});
  heads_->setFigure({});
  text_card_->setTitle(tr("Where did this query read from?"), {});
  map_card_->setTitle(tr("Map"), {});
  query_card_->setTitle(tr("Query"), {});
  time_card_->setTitle(tr("Training time"), {});
  step_->setEnabled(false);
  fitText();
}

const Capture* InspectPage::capture() const {
  if (!captures_ || captures_->samples.empty()) return nullptr;
  const auto last = static_cast<int>(captures_->samples.size()) - 1;
  return &captures_->samples[static_cast<size_t>(std::clamp(session_.sample(), 0, last))];
}

std::vector<int> InspectPage::layers() const {
  std::vector<int> found;
  if (const Capture* sample = capture())
    for (const CapturedMap& map : sample->maps)
      if (map.kind == MapKind::weights && map.shape.size() == 3) found.push_back(static_cast<int>(map.layer));
  std::sort(found.begin(), found.end());
  return found;
}

int InspectPage::heads(int layer) const {
  const Capture* sample = capture();
  const CapturedMap* map = sample ? find_map(*sample, MapKind::weights, layer) : nullptr;
  return map && map->shape.size() == 3 ? static_cast<int>(map->shape[0]) : 0;
}

std::optional<InspectPage::Place> InspectPage::place() const {
  const auto known = layers();
  const Capture* sample = capture();
  if (known.empty() || !sample) return {};
  const auto nearest = std::min_element(known.begin(), known.end(),
                                        [&](int a, int b) { return std::abs(a - session_.layer()) < std::abs(b - session_.layer()); });
  const int head_count = heads(*nearest);
  const int queries = static_cast<int>(find_map(*sample, MapKind::weights, *nearest)->shape[1]);
  if (head_count == 0 || queries == 0) return {};
  const int query = session_.query() < 0 ? std::max(0, queries - 2) : session_.query();  // the last one that has a next token
  return Place{*nearest, std::clamp(session_.head(), 0, head_count - 1), std::clamp(query, 0, queries - 1)};
}

void InspectPage::showSample() {
  const Capture* sample = capture();
  if (!sample || !isVisible()) return;
  const auto index = static_cast<size_t>(sample - captures_->samples.data());
  sample_->setCurrentIndex(static_cast<int>(index));
  text_->setPieces(sample->pieces);
  strip_->setLosses(sample->token_losses);
  std::vector<bool> known(sample->pieces.size());
  for (const KnownAnswer& answer : captures_->answers)
    for (int64_t i = 0; i < answer.size; ++i)
      for (const int64_t at : {answer.query + (answer.follows ? 1 : 0) + i, answer.source + i})
        if (at >= 0 && at < static_cast<int64_t>(known.size())) known[static_cast<size_t>(at)] = true;
  text_->setKnown(std::move(known));
  showOverview();
  followBeside();
  showHead();
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
                  return with_answers(std::move(figure), shown, wanted, captures->answers);
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

/// A file says by its name what it shows: "RUN-step300-prose0-weights-layer1-head0".
void InspectPage::nameFiles(const Place& at) {
  const QString sample = QStringLiteral("%1-step%2-%3%4-")
                             .arg(QFileInfo(directory_).fileName())
                             .arg(captures_->step)
                             .arg(QString::fromStdString(capture()->domain))
                             .arg(capture()->sample);
  for (FigureView* view : {heads_, map_}) view->setFilePrefix(sample);
  query_->scores()->setFilePrefix(QStringLiteral("%1layer%2-head%3-query%4-").arg(sample).arg(at.layer).arg(at.head).arg(at.query));
}

QString InspectPage::unit() const {
  const Capture* sample = capture();
  const auto at = place();
  const Selection* selection = sample && at ? find_selection(*sample, at->layer) : nullptr;
  if (!selection) return tr("element");
  switch (selection->unit) {
    case Selection::Unit::element: return tr("element");
    case Selection::Unit::chunk: return tr("chunk");
    case Selection::Unit::split: return tr("split");
  }
  return {};
}

void InspectPage::showQuery() {
  const auto at = place();
  if (!at || !isVisible()) return;
  map_->setSelectedCell(rowOfQuery(at->query), -1);
  strip_->setQuery(at->query);
  const auto read = [captures = captures_, sample = capture(), at = *at] {
    ReadQuery query{captures, at, {}, {}};
    try {
      query.reads = reads_of(*sample, at.layer, at.head, at.query);
    } catch (const std::exception& error) {
      query.problem = QString::fromUtf8(error.what());
    }
    return query;
  };
  if (const CapturedMap* weights = find_map(*capture(), MapKind::weights, at->layer); weights && weights->values.empty())
    return reading_.ask(read, true);
  ReadQuery query = read();
  if (!query.problem.isEmpty()) return showProblem(query.problem);
  takeReads(*at, std::move(query.reads));
}

void InspectPage::takeReads(const Place& at, Reads reads) {
  const Capture& sample = *capture();
  reads_ = std::move(reads);
  text_->setReads(at.query, *reads_);
  QStringList chosen;
  if (reads_->candidate_size > 0)
    for (const int64_t c : reads_->chosen_candidates)
      chosen << text_->text(c * reads_->candidate_size, std::min<int64_t>((c + 1) * reads_->candidate_size, at.query + 1));
  else
    for (const int64_t p : reads_->chosen_positions) chosen << text_->text(p - 12, p + 1);
  nameFiles(at);
  query_->show(sample, at.query, *reads_, unit(), chosen.join(QStringLiteral("\n…\n")), provenance_);
  const QString token =
      static_cast<size_t>(at.query) < sample.pieces.size() ? quoted(sample.pieces[static_cast<size_t>(at.query)]) : QString();
  query_card_->setTitle(tr("Query %1 %2").arg(at.query).arg(token), {});
  QStringList words{QString::fromStdString(provenance_.front()).section(": ", 1), tr("step %1").arg(captures_->step),
                    tr("query %1 %2").arg(at.query).arg(token)};
  if (captures_->cut) words << tr("the first %n tokens of the text", nullptr, static_cast<int>(sample.tokens.size()));
  if (captures_->left_out > 0) words << tr("the last %n tokens of the text", nullptr, static_cast<int>(sample.tokens.size()));
  if (!captures_->answers.empty()) words << tr("green line: known answer");
  if (!reads_->chosen_positions.empty()) words << tr("blue line: chosen");
  const bool signed_weights = std::any_of(reads_->weights.begin(), reads_->weights.end(), [](double w) { return w < 0; });
  words << (signed_weights ? tr("orange: weight above 0, blue: below") : tr("shade: weight")) << tr("frame: the query");
  text_card_->setTitle(tr("Where did this query read from?"), words.join(QStringLiteral(" · ")));
  fitText();
  showBeside();
  dropWhatIf();
  offerWhatIf();
  ask_.start();
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

void InspectPage::moveQuery(int by) {
  if (const auto at = place())
    session_.setQuery(std::clamp(at->query + by, 0, static_cast<int>(find_map(*capture(), MapKind::weights, at->layer)->shape[1]) - 1));
}

void InspectPage::moveHead(int by_layers, int by_heads) {
  const auto at = place();
  if (!at) return;
  const auto known = layers();
  const auto index = std::find(known.begin(), known.end(), at->layer) - known.begin() + by_layers;
  const int layer = known[static_cast<size_t>(std::clamp<std::ptrdiff_t>(index, 0, static_cast<std::ptrdiff_t>(known.size()) - 1))];
  session_.setHead(layer, std::clamp(at->head + by_heads, 0, heads(layer) - 1));
}

void InspectPage::moveStep(int by) { step_->setValue(std::clamp(step_->value() + by, step_->minimum(), step_->maximum())); }

bool InspectPage::handleKey(int key, Qt::KeyboardModifiers modifiers) {
  const bool back = key == Qt::Key_Left || key == Qt::Key_Up, across = key == Qt::Key_Left || key == Qt::Key_Right;
  const int by = back ? -1 : 1;
  switch (key) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
      if (modifiers & Qt::ControlModifier)
        moveStep(by);
      else if (modifiers & Qt::ShiftModifier)
        moveHead(across ? 0 : by, across ? by : 0);
      else
        moveQuery(by);
      return true;
    case Qt::Key_PageUp: moveHead(-1, 0); return true;
    case Qt::Key_PageDown: moveHead(1, 0); return true;
    case Qt::Key_Home: moveQuery(-(1 << 28)); return true;
    case Qt::Key_End: moveQuery(1 << 28); return true;
    case Qt::Key_Comma: what_if_->moveSource(-1); return true;
    case Qt::Key_Period: what_if_->moveSource(1); return true;
    case Qt::Key_W: tabs_->setCurrentIndex(1), what_if_->tryIt(); return true;
    case Qt::Key_Escape: dropWhatIf(); return true;
    default: return false;
  }
}

bool InspectPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == text_card_ && event->type() == QEvent::LayoutRequest)
    QMetaObject::invokeMethod(this, &InspectPage::fitText, Qt::QueuedConnection);
  if (event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (handleKey(key->key(), key->modifiers())) return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace saccade::ui
