#include "ui/live/live_page.h"

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/kept_zoom.h"
#include "ui/live/scale_button.h"
#include "ui/live/smoothing_choice.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

namespace {

const RegisterPage entry{
    {"live", QObject::tr("Live"), "live", 30, [](Session& session, QWidget* parent) -> QWidget* { return new LivePage(session, parent); }}};

/// So little that it is drawn while one waits.
bool is_little(const ShownRuns& shown) {
  size_t points = 0;
  for (const Run* run : shown.runs())
    if (const Series* steps = run->find("train/loss")) points += steps->value.size();
  return points < 8000;
}

}  // namespace

LivePage::LivePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      job_(this, [this](LiveFigures figures) { show(std::move(figures)); }),
      loss_(makePanel(tr("Pre-training and OOD loss"), tr("colours as in the list"))),
      heads_(makePanel(tr("Attention entropy"), {})),
      layers_(makePanel(tr("Entropy by layer"), {})),
      gap_(makePanel(tr("OOD − pre-training gap"), {})),
      captured_(makePanel(tr("What is read"), {})),
      accuracy_(makePanel(tr("Right answers"), {})),
      gradient_(makePanel(tr("Gradient norm"), tr("before clipping"))),
      domain_(makePanel(tr("OOD by domain"), tr("nats"))),
      speed_(makePanel(tr("Speed"), tr("tokens per second"))),
      trouble_(new QLabel(this)),
      resume_(new QToolButton(this)) {
  makeControls();
  loss_.view->setEmptyText(tr("No losses yet. Switch a run visible in the list, or configure and start one."));
  loss_.view->setKeysOnly(true);
  for (Panel* panel : {&gap_, &accuracy_, &gradient_, &domain_, &speed_}) panel->view->setCompact(true);
  trouble_->setWordWrap(true);
  trouble_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  trouble_->hide();
  resume_->setAccessibleName(tr("Resume the crashed run"));
  resume_->hide();
  connect(resume_, &QToolButton::clicked, this, [this] { session_.resumeRun(figures_.crashed); });

  auto* bottom = new QHBoxLayout;
  for (Panel* panel : {&gradient_, &domain_, &speed_}) bottom->addWidget(panel->card, 1);
  auto* main = new QWidget;
  auto* left = new QVBoxLayout(main);
  left->setContentsMargins(0, 0, 0, 0);
  left->addWidget(loss_.card, 5);
  left->addLayout(bottom, 2);
  side_ = new QWidget;
  auto* right = new QVBoxLayout(side_);
  right->setContentsMargins(0, 0, 0, 0);
  for (Panel* panel : {&accuracy_, &heads_, &layers_, &gap_, &captured_}) right->addWidget(panel->card, 1);
  accuracy_.card->hide();  // few runs have it, and a card that leaves moves all others
  auto* column = new QVBoxLayout(this);
  auto* both = new TwoColumns({main, 5, 12}, {side_, 2, 10}, 700, 3.75, this);
  column->addWidget(both, 1);
  auto* bad_ends = new QHBoxLayout;  // not within: a wrapped line would make the parts ask for all the height they like
  bad_ends->addWidget(trouble_, 1);
  bad_ends->addWidget(resume_);
  column->addLayout(bad_ends);
  connect(both, &TwoColumns::narrowChanged, this, [left, bottom](bool narrow) {
    bottom->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
    left->setStretchFactor(bottom, narrow ? 8 : 2);
  });

  connect(session_.runs(), &RunList::selectionChanged, this, [this] { chosen_anew_ = true; });
  connect(session_.runs(), &RunList::changed, this, [this] {
    const bool just_read = session_.runs()->unread() == 0 && std::exchange(reading_, false);
    reading_ = session_.runs()->unread() > 0;
    refresh(std::exchange(chosen_anew_, false) || just_read);
  });
  connect(&session_, &Session::currentRunChanged, this, [this] { refresh(); });
  connect(&session_, &Session::xAxisChanged, this, [this] { refresh(); });
  connect(&session_, &Session::captureStepChanged, this, [this] { refresh(); });
  connect(&session_, &Session::stepLinkChanged, this, [this] { refresh(); });
  connect(loss_.view, &FigureView::verticalLineMoved, this, &LivePage::moveMark);
  part_changed_.setSingleShot(true);
  part_changed_.setInterval(250);  // while one zooms, the thinned values do
  connect(&part_changed_, &QTimer::timeout, this, [this] { refresh(); });
  for (const Panel* panel : {&loss_, &gradient_, &speed_})
    connect(panel->view, &FigureView::zoomChanged, &part_changed_, qOverload<>(&QTimer::start));
  link({&loss_, &accuracy_, &layers_, &gap_, &captured_, &gradient_, &domain_, &speed_});
  keepZooms();
  click_.setSingleShot(true);
  connect(&click_, &QTimer::timeout, this, [this] {
    if (clicked_) std::exchange(clicked_, {})();
  });
  for (const Panel* panel : {&loss_, &accuracy_, &layers_, &gap_, &captured_, &gradient_, &domain_, &speed_}) {
    connect(panel->view, &FigureView::positionClicked, this, [this, panel](double x, double y) { openAt(*panel, x, y); });
    connect(panel->view, &FigureView::zoomChanged, &click_, &QTimer::stop);  // it was a double click
  }
  connect(heads_.view, &FigureView::cellClicked, &session_, &Session::setHead);
  connect(heads_.view, &FigureView::cellClicked, &session_, [&session] { session.showPage("inspect"); });
}

LivePage::~LivePage() = default;

std::vector<CurveOfRun> LivePage::curvesOf(const Panel& panel) const {
  const XAxis x = session_.xAxis();
  if (&panel == &gap_) return {[x, ratio = gap_choice_->currentIndex() == 1](const Run& run) { return gap_line(run, x, ratio); }};
  QStringList series;
  if (&panel == &loss_) {
    series << QStringLiteral("train/loss") << QStringLiteral("validation/loss");
    if (each_domain_->currentIndex() == 0) series << QStringLiteral("ood/loss");
    if (each_domain_->currentIndex() == 1)
      for (const QString& domain : figures_.domains) series << QStringLiteral("ood/loss/") + domain;
  }
  if (&panel == &accuracy_) series << figures_.answer;
  if (&panel == &gradient_) series << step_choice_->currentData().toString();
  if (&panel == &speed_) series << resource_choice_->currentData().toString();
  if (&panel == &domain_) series << QStringLiteral("ood/loss/") + domains_->currentText();
  std::vector<CurveOfRun> curves;
  for (const QString& name : series) curves.push_back(curve_of_series(name, x));
  return curves;
}

/// What was pointed at; cards of a single run have its step alone.
std::optional<PointInRun> LivePage::pointIn(const Panel& panel, double x, double y) const {
  const std::shared_ptr<const ShownRuns> shown = session_.runs()->shown();
  if (&panel != &layers_ && &panel != &captured_)
    return point_in_run(*shown, curvesOf(panel), session_.xAxis(), x, y, panel.view->prepared()->y);
  for (const Run* run : shown->runs())
    if (directory_of(*run) == figures_.single)
      if (const auto step = step_at(*run, x, session_.xAxis())) return PointInRun{figures_.single, *step};
  return {};
}

void LivePage::link(const std::vector<Panel*>& panels) {
  for (const Panel* panel : panels)
    connect(panel->view, &FigureView::pointed, this, [panels, from = panel->view](std::optional<double> x) {
      for (const Panel* other : panels)
        if (other->view != from) other->view->setLinkedX(x);
    });
}

/// Inspect goes to the capture nearest to where its mark is dragged.
void LivePage::moveMark(double x) {
  const std::shared_ptr<const ShownRuns> shown = session_.runs()->shown();
  for (const Run* run : shown->runs())
    if (directory_of(*run) == session_.currentRun())
      if (const auto step = step_at(*run, x, session_.xAxis())) session_.setCaptureStep(nearest_capture(session_.currentRun(), *step));
}

void LivePage::keepZooms() {
  zooms_ = {{&loss_, "live/zoom/loss"},     {&accuracy_, "live/zoom/accuracy"}, {&layers_, "live/zoom/layers"},
            {&gap_, "live/zoom/gap"},       {&captured_, "live/zoom/captured"}, {&gradient_, "live/zoom/gradient"},
            {&domain_, "live/zoom/domain"}, {&speed_, "live/zoom/speed"}};
  for (const auto& [panel, key] : zooms_) {
    restore_zoom(*panel->view, session_.place(), key);
    connect(panel->view, &FigureView::zoomChanged, this,
            [this, view = panel->view, key = key] { keep_zoom(*view, session_.place(), key); });
  }
}

/// The run that was pointed at, at the step nearest to it that has a capture.
void LivePage::openAt(const Panel& panel, double x, double y) {
  if (!panel.view->prepared()) return;
  const bool stay = QApplication::keyboardModifiers() & Qt::ControlModifier;
  clicked_ = [this, &panel, x, y, stay] {
    const auto found = pointIn(panel, x, y);
    if (!found) return;
    session_.setCurrentRun(found->directory);
    session_.setCaptureStep(nearest_capture(found->directory, found->step));
    if (!stay) session_.showPage(QStringLiteral("inspect"));
  };
  click_.start(QApplication::doubleClickInterval());
}

LivePage::Panel LivePage::makePanel(const QString& title, const QString& subtitle) {
  auto* view = new FigureView;
  auto* card = new Card(title, subtitle, view, this);
  connect(view, &FigureView::failed, &session_, &Session::failed);
  connect(view, &FigureView::exported, &session_, &Session::tellSaved);
  return {card, view};
}

void LivePage::makeControls() {
  x_axis_ = new QComboBox;
  x_axis_->addItem(tr("x: step"), static_cast<int>(XAxis::step));
  x_axis_->addItem(tr("x: tokens"), static_cast<int>(XAxis::tokens));
  x_axis_->addItem(tr("x: FLOPs"), static_cast<int>(XAxis::flops));
  x_axis_->addItem(tr("x: time"), static_cast<int>(XAxis::seconds));
  x_axis_->setAccessibleName(tr("What the x axis shows"));
  connect(x_axis_, &QComboBox::activated, this, [this] { session_.setXAxis(static_cast<XAxis>(x_axis_->currentData().toInt())); });
  log_x_ = new ScaleButton(QStringLiteral("x"), tr("Scale of the x axis"), QKeySequence(Qt::SHIFT | Qt::Key_L));
  log_y_ = new ScaleButton(QStringLiteral("y"), tr("Scale of the loss axis"), QKeySequence(Qt::Key_L));
  smoothing_ = new SmoothingChoice;
  spread_ = new QComboBox;
  spread_->addItems({tr("± s.d."), tr("± s.e."), tr("95 %")});
  spread_->setAccessibleName(tr("Bands over seeds"));
  spread_->setToolTip(tr("Bands around means of seeds: standard deviation, standard error or 95 % interval"));
  connect(spread_, &QComboBox::activated, this, [this] { refresh(); });
  each_domain_ = new QComboBox;
  each_domain_->addItems({tr("OOD: mean"), tr("OOD: each domain")});
  each_domain_->setAccessibleName(tr("OOD losses among the losses"));
  each_domain_->setToolTip(tr("The mean of the OOD domains, or a curve for each of them"));
  connect(each_domain_, &QComboBox::activated, this, [this] { refresh(); });
  domains_ = new QComboBox;
  domains_->setAccessibleName(tr("OOD domain"));
  domains_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (QComboBox* box : {x_axis_, spread_, each_domain_, domains_}) calm_wheel(box);
  for (QWidget* control : {static_cast<QWidget*>(x_axis_), static_cast<QWidget*>(log_x_), static_cast<QWidget*>(log_y_),
                           static_cast<QWidget*>(smoothing_), static_cast<QWidget*>(spread_), static_cast<QWidget*>(each_domain_)})
    loss_.card->addControl(control);
  domain_.card->addControl(domains_);
  gap_choice_ = titleChoice(*gap_.card, tr("What OOD and pre-training losses are compared by"),
                            {{tr("OOD gap"), QString()}, {tr("OOD ratio"), QStringLiteral("ratio")}});
  step_choice_ =
      titleChoice(*gradient_.card, tr("What is shown of every step"),
                  {{tr("Gradient norm"), QStringLiteral("gradient_norm")}, {tr("Learning rate"), QStringLiteral("learning_rate")}});
  resource_choice_ = titleChoice(*speed_.card, tr("What is shown of time and memory"),
                                 {{tr("Speed"), QStringLiteral("tokens_per_second")},
                                  {tr("Device memory"), QStringLiteral("device_memory")},
                                  {tr("Process memory"), QStringLiteral("process_memory")}});
  selection_choice_ = titleChoice(*captured_.card, tr("What is shown of reads and choices"), {});
  selection_choice_->setPlaceholderText(tr("What is read"));
  answers_choice_ = titleChoice(*accuracy_.card, tr("Whose right answers are shown"), {});
  answers_choice_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // names of domains are long
  answers_choice_->setMinimumContentsLength(20);
  for (ScaleButton* button : {log_x_, log_y_}) connect(button, &ScaleButton::scaleChanged, this, [this] { refresh(); });
  connect(smoothing_, &SmoothingChoice::changed, this, [this] { refresh(); });
  connect(domains_, &QComboBox::currentIndexChanged, this, [this] { refresh(); });
  for (const QComboBox* box : {gap_choice_, step_choice_, resource_choice_, selection_choice_, answers_choice_})
    connect(box, &QComboBox::activated, this, [this, box] {
      if (box == selection_choice_) session_.place().set("live/selection", box->currentData());
      if (box == answers_choice_) session_.place().set("live/answers", box->currentData());
      refresh();
    });
  restore();
}

/// A choice that stands where a card has its title.
QComboBox* LivePage::titleChoice(Card& card, const QString& name, const std::vector<std::pair<QString, QString>>& entries) {
  auto* box = new QComboBox;
  box->setAccessibleName(name);
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (const auto& [text, data] : entries) box->addItem(text, data);
  calm_wheel(box);
  card.replaceTitle(box);
  return box;
}

void LivePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refresh();
}

/// Axes and smoothing as they were.
void LivePage::restore() {
  const Place& place = session_.place();
  log_x_->setScale(place.value("live/log_x").toInt());
  log_y_->setScale(place.value("live/log_y").toInt());
  spread_->setCurrentIndex(std::clamp(place.value("live/spread").toInt(), 0, 2));
  gap_choice_->setCurrentIndex(std::max(0, gap_choice_->findData(place.value("live/gap"))));
  step_choice_->setCurrentIndex(std::max(0, step_choice_->findData(place.value("live/every_step"))));
  resource_choice_->setCurrentIndex(std::max(0, resource_choice_->findData(place.value("live/resource"))));
  each_domain_->setCurrentIndex(place.value("live/each_domain").toBool() ? 1 : 0);
  smoothing_->setSmoothing({static_cast<Smoothing::Kind>(place.value("live/smoothing").toInt()), place.value("live/reach").toDouble()});
}

void LivePage::remember() {
  Place& place = session_.place();
  place.set("live/log_x", static_cast<int>(log_x_->scale()));
  place.set("live/log_y", static_cast<int>(log_y_->scale()));
  place.set("live/spread", spread_->currentIndex());
  place.set("live/gap", gap_choice_->currentData());
  place.set("live/every_step", step_choice_->currentData());
  place.set("live/resource", resource_choice_->currentData());
  place.set("live/each_domain", each_domain_->currentIndex() == 1);
  place.set("live/smoothing", static_cast<int>(smoothing_->smoothing().kind));
  place.set("live/reach", smoothing_->smoothing().width);
  if (domains_->count() > 0) place.set("live/domain", domains_->currentText());
}

void LivePage::refresh(bool urgent) {
  stale_ = !isVisible();
  if (stale_) return;
  x_axis_->setCurrentIndex(x_axis_->findData(static_cast<int>(session_.xAxis())));
  remember();
  const LiveChoice choice{
      .x = session_.xAxis(),
      .log_x = log_x_->scale() == ScaleButton::logarithmic,
      .log_y = log_y_->scale() == ScaleButton::logarithmic,
      .symmetric_x = log_x_->scale() == ScaleButton::symmetric,
      .symmetric_y = log_y_->scale() == ScaleButton::symmetric,
      .smoothing = smoothing_->smoothing(),
      .spread = static_cast<Spread>(spread_->currentIndex()),
      .domain = domains_->count() > 0 ? domains_->currentText() : session_.place().value("live/domain").toString(),
      .ratio = gap_choice_->currentIndex() == 1,
      .each_domain = each_domain_->currentIndex() == 1,
      .step_series = step_choice_->currentData().toString(),
      .resource = resource_choice_->currentData().toString(),
      .selection = session_.place().value("live/selection").toString(),
      .answers = session_.place().value("live/answers").toString(),
      .loss_part = loss_.view->part(),
      .gradient_part = gradient_.view->part(),
      .speed_part = speed_.view->part(),
      .marked_step = session_.stepLinked() && session_.captureStep() >= 0 ? std::optional(session_.captureStep()) : std::nullopt,
      .current = session_.currentRun()};
  const std::shared_ptr<const ShownRuns> shown = session_.runs()->shown();
  if (is_little(*shown) && !job_.busy()) return show(live_figures(*shown, choice, figures_, *parts_));
  job_.ask([shown, choice, before = figures_, parts = parts_] { return live_figures(*shown, choice, before, *parts); }, urgent);
}

void LivePage::show(LiveFigures figures) {
  figures_ = std::move(figures);
  updateDomains();
  updateSelections();
  updateAnswers();
  titleCards();
  loss_.view->setPrepared(figures_.figure[LiveFigures::loss]);
  fill(gap_, LiveFigures::gap);
  fill(accuracy_, LiveFigures::accuracy);
  fill(gradient_, LiveFigures::gradient);
  fill(speed_, LiveFigures::speed);
  fill(domain_, LiveFigures::domain);
  fill(heads_, LiveFigures::heads);
  fill(layers_, LiveFigures::layers);
  fill(captured_, LiveFigures::captured);
  layers_.card->setTitle(tr("Entropy by layer"), figures_.statistic == QStringLiteral("entropy")
                                                     ? tr("%1 · nats").arg(figures_.name)
                                                     : tr("%1 · 1 = evenly spread").arg(figures_.name));
  heads_.card->setTitle(tr("Attention entropy"),
                        figures_.step < 0 ? figures_.name : tr("%1, step %2").arg(figures_.name).arg(figures_.step));
  const AxisScale& x = figures_.figure[LiveFigures::loss]->x;
  smoothing_->setLength(x.high - x.low);
  const auto shown = [](const Panel* panel) { return !panel->card->isHidden(); };
  const Panel* beside[] = {&accuracy_, &heads_, &layers_, &gap_, &captured_};
  side_->setVisible(std::any_of(std::begin(beside), std::end(beside), shown));
  const int unread = session_.runs()->unread();
  loss_.view->setEmptyText(unread > 0 ? tr("Reading %1 runs …").arg(unread)
                           : session_.runs()->visibleRuns().empty() && session_.runs()->rowCount() > 0
                               ? tr("No run is shown. Clear the filter, or switch runs visible in the list.")
                               : tr("No losses yet. Configure and start a run."));
  loss_.card->setTitle(tr("Pre-training and OOD loss"),
                       unread > 0 ? tr("%1 more runs are being read").arg(unread) : tr("colours as in the list"));
  for (const auto& [panel, key] : zooms_) keep_zoom(*panel->view, session_.place(), key);  // another x axis ends it
  trouble_->setText(figures_.trouble);
  trouble_->setVisible(!figures_.trouble.isEmpty());
  resume_->setText(tr("Resume %1").arg(figures_.crashed_name));
  resume_->setVisible(!figures_.crashed.isEmpty());
}

void LivePage::updateDomains() {
  QStringList present;
  for (int i = 0; i < domains_->count(); ++i) present << domains_->itemText(i);
  const QSignalBlocker blocker(domains_);
  if (figures_.domains != present) {
    domains_->clear();
    domains_->addItems(figures_.domains);
  }
  domains_->setCurrentIndex(std::max(0, domains_->findText(figures_.chosen_domain)));
}

namespace {

struct SelectionWords {
  const char *statistic, *name, *meaning;
};
constexpr SelectionWords kWords[] = {
    {"captured_mass", QT_TRANSLATE_NOOP("LivePage", "Captured mass"), QT_TRANSLATE_NOOP("LivePage", "of the choice, 1 = nothing lost")},
    {"margin", QT_TRANSLATE_NOOP("LivePage", "Margin"), QT_TRANSLATE_NOOP("LivePage", "least chosen − best rejected score")},
    {"churn", QT_TRANSLATE_NOOP("LivePage", "Churn"), QT_TRANSLATE_NOOP("LivePage", "share of queries that changed their choice")},
    {"dead_chunks", QT_TRANSLATE_NOOP("LivePage", "Dead chunks"), QT_TRANSLATE_NOOP("LivePage", "share of chunks that no query chooses")},
    {"usage_entropy", QT_TRANSLATE_NOOP("LivePage", "Usage entropy"),
     QT_TRANSLATE_NOOP("LivePage", "of how often each chunk is chosen, nats")},
    {"chunk_distance", QT_TRANSLATE_NOOP("LivePage", "Chunk distance"), QT_TRANSLATE_NOOP("LivePage", "to the chosen chunk")},
    {"distance", QT_TRANSLATE_NOOP("LivePage", "Distance"), QT_TRANSLATE_NOOP("LivePage", "to what is read, tokens")},
    {"outside_256", QT_TRANSLATE_NOOP("LivePage", "Beyond 256"), QT_TRANSLATE_NOOP("LivePage", "share read from beyond 256 tokens")}};

const SelectionWords& words_of(const QString& statistic) {
  for (const SelectionWords& words : kWords)
    if (statistic == QLatin1String(words.statistic)) return words;
  return kWords[0];
}

}  // namespace

void LivePage::updateSelections() {
  QStringList present;
  for (int i = 0; i < selection_choice_->count(); ++i) present << selection_choice_->itemData(i).toString();
  if (present != figures_.selections) {
    selection_choice_->clear();
    for (const QString& statistic : figures_.selections) selection_choice_->addItem(tr(words_of(statistic).name), statistic);
  }
  selection_choice_->setCurrentIndex(std::max(0, selection_choice_->findData(figures_.selection)));
}

void LivePage::updateAnswers() {
  QStringList present;
  for (int i = 0; i < answers_choice_->count(); ++i) present << answers_choice_->itemData(i).toString();
  if (present != figures_.answers) {
    answers_choice_->clear();
    for (const QString& series : figures_.answers) {
      const QString domain = series.section(QLatin1Char('/'), 2);
      answers_choice_->addItem(series == QStringLiteral("validation/accuracy") ? tr("Right answers")
                               : domain.isEmpty()                              ? tr("Right answers, OOD mean")
                                                                               : tr("Right, OOD %1").arg(domain),
                               series);
    }
    answers_choice_->view()->setMinimumWidth(answers_choice_->view()->sizeHintForColumn(0) + 24);
  }
  answers_choice_->setCurrentIndex(std::max(0, answers_choice_->findData(figures_.answer)));
  if (figures_.answer.isEmpty()) return;
  accuracy_.card->setTitle(answers_choice_->currentText(), figures_.answer == QStringLiteral("validation/accuracy")
                                                               ? tr("share of tokens asked for, training domains")
                                                               : tr("share of tokens asked for"));
}

/// What a choice shows, for those who hear the page, and what it means.
void LivePage::titleCards() {
  const bool ratio = gap_choice_->currentIndex() == 1;
  gap_.card->setTitle(ratio ? tr("OOD ÷ pre-training ratio") : tr("OOD − pre-training gap"),
                      ratio ? tr("OOD ÷ pre-training loss") : tr("OOD − pre-training loss, nats"));
  const bool norm = step_choice_->currentIndex() == 0;
  const auto means = [this](LiveFigures::Place place) {
    return figures_.by_architecture[place] ? tr("means of architectures · and %1 · ").arg(figures_.name) : QString();
  };
  gradient_.card->setTitle(step_choice_->currentText(),
                           means(LiveFigures::gradient) + (norm ? tr("before clipping") : tr("of the schedule")));
  const bool speed = resource_choice_->currentIndex() == 0, device = resource_choice_->currentIndex() == 1;
  speed_.card->setTitle(resource_choice_->currentText(), speed    ? means(LiveFigures::speed) + tr("tokens per second")
                                                         : device ? tr("MiB of tensors, at most so far")
                                                                  : tr("MiB on the CPU"));
  if (figures_.selection.isEmpty()) return;
  const SelectionWords& words = words_of(figures_.selection);
  captured_.card->setTitle(tr(words.name), QStringLiteral("%1 · %2").arg(figures_.name, tr(words.meaning)));
}

void LivePage::fill(Panel& panel, LiveFigures::Place place) {
  const auto& figure = figures_.figure[place];
  panel.card->setVisible((figure && figure->filled) || figures_.coming[place]);
  panel.view->setEmptyText(tr("Not measured yet. It comes while the run goes on."));
  panel.view->setPrepared(figure);
}

}  // namespace saccade::ui
