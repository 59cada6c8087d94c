#include "ui/inspect/inspect_page.h"

#include <QComboBox>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "analysis/inspection/known_answers.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/inspect/loss_strip.h"
#include "ui/inspect/query_panel.h"
#include "ui/inspect/text_choice.h"
#include "ui/inspect/token_text.h"
#include "ui/inspect/what_if_panel.h"
#include "ui/page.h"
#include "ui/plain_scroll.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {
namespace {

const RegisterPage entry{{"inspect", QObject::tr("Inspect"), "inspect", 40,
                          [](Session& session, QWidget* parent) -> QWidget* { return new InspectPage(session, parent); }}};

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
  calm_wheel(sample_);
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
  if (steps_.empty()) return showNothing(emptyWords(*run));
  request();
}

QString InspectPage::emptyWords(const Run& run) const {
  const bool comes = isActive(run.info().state);
  if (!choice_->captured())
    return comes ? tr("This run has kept no checkpoint yet that could read a text.")
                 : tr("This run has kept no checkpoint that could read a text. Choose another run.");
  if (comes) return tr("This run has captured no text yet; it does so at every checkpoint, or as often as its setting Capture every says.");
  return checkpoint_steps(run.info().directory).empty()
             ? tr("This run has captured no text, and kept no checkpoint that could read one. Choose another run.")
             : tr("This run has captured no text. Its checkpoints can read one: choose it above, in place of “%1”.")
                   .arg(tr("Captured text"));
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
  // The last one that is asked for something: for its next token, but in generated tasks.
  const int asked = !sample->asked || sample->asked->empty() ? std::max(0, queries - 2) : static_cast<int>(sample->asked->rbegin()->first);
  const int query = session_.query() < 0 ? asked : session_.query();
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
  for (const KnownAnswer& answer : captures_->answers_of(*sample))
    for (int64_t i = 0; i < answer.size; ++i)
      for (const int64_t at : {answer.query + (answer.follows ? 1 : 0) + i, answer.source + i})
        if (at >= 0 && at < static_cast<int64_t>(known.size())) known[static_cast<size_t>(at)] = true;
  text_->setKnown(std::move(known));
  showOverview();
  followBeside();
  showHead();
}

}  // namespace saccade::ui
