#include "ui/live/live_page.h"

#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "analysis/figures/derived.h"
#include "analysis/runs/layers.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

namespace {

const RegisterPage entry{
    {"live", QObject::tr("Live"), "live", 30, [](Session& session, QWidget* parent) -> QWidget* { return new LivePage(session, parent); }}};

QToolButton* toggle(const QString& text, const QString& help) {
  auto* button = new QToolButton;
  button->setText(text);
  button->setToolTip(wrapped_tip(help));
  button->setCheckable(true);
  return button;
}

/// The run that the single-run cards show: the selected one, else the first visible one.
const Run* shown_run(const Session& session, const std::vector<const Run*>& runs) {
  if (const Run* run = session.runs()->run(session.currentRun())) return run;
  return runs.empty() ? nullptr : runs.front();
}

}  // namespace

LivePage::LivePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      loss_(makePanel(tr("Pre-training and OOD loss"), tr("dash: seed"))),
      heads_(makePanel(tr("Attention entropy"), {})),
      layers_(makePanel(tr("Entropy by layer"), {})),
      gap_(makePanel(tr("OOD − pre-training gap"), tr("nats"))),
      captured_(makePanel(tr("Captured mass of the choice"), {})),
      gradient_(makePanel(tr("Gradient norm"), tr("before clipping"))),
      domain_(makePanel(tr("OOD loss by domain"), tr("nats"))),
      speed_(makePanel(tr("Speed"), tr("tokens per second"))),
      trouble_(new QLabel(this)) {
  makeControls();
  loss_.view->setEmptyText(tr("No losses yet. Switch a run visible in the list, or configure and start one."));
  for (Panel* panel : {&heads_, &gap_, &gradient_, &domain_, &speed_}) panel->view->setCompact(true);
  trouble_->setWordWrap(true);
  trouble_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  trouble_->hide();

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
  for (Panel* panel : {&heads_, &layers_, &gap_, &captured_}) right->addWidget(panel->card, 1);
  auto* column = new QVBoxLayout(this);
  auto* both = new TwoColumns({main, 5, 12}, {side_, 2, 9}, 700, 4.2, this);
  column->addWidget(both, 1);
  column->addWidget(trouble_);  // not within: a wrapped line would make the parts ask for all the height they like
  connect(both, &TwoColumns::narrowChanged, this, [left, bottom](bool narrow) {
    bottom->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
    left->setStretchFactor(bottom, narrow ? 7 : 2);
  });

  connect(session_.runs(), &RunList::changed, this, &LivePage::refresh);
  connect(&session_, &Session::currentRunChanged, this, &LivePage::refresh);
  connect(&session_, &Session::xAxisChanged, this, &LivePage::refresh);
  connect(heads_.view, &FigureView::cellClicked, &session_, &Session::setHead);
  connect(heads_.view, &FigureView::cellClicked, &session_, [&session] { session.showPage("inspect"); });
}

LivePage::Panel LivePage::makePanel(const QString& title, const QString& subtitle) {
  auto* view = new FigureView;
  auto* card = new Card(title, subtitle, view, this);
  connect(view, &FigureView::failed, &session_, &Session::failed);
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
  log_x_ = toggle(tr("log x"), tr("Logarithmic x axis"));
  log_y_ = toggle(tr("log y"), tr("Logarithmic loss axis"));
  smoothing_ = new QComboBox;
  smoothing_->setAccessibleName(tr("Smoothing of what is recorded at every step"));
  smoothing_->setToolTip(tr("Centred mean of training loss, gradient norm and speed; the raw values stay visible beneath"));
  smoothing_->addItem(tr("no smoothing"), 0);
  for (const int steps : {11, 51, 201}) smoothing_->addItem(tr("mean of %1 steps").arg(steps), steps);
  domains_ = new QComboBox;
  domains_->setAccessibleName(tr("OOD domain"));
  domains_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (QWidget* control :
       {static_cast<QWidget*>(x_axis_), static_cast<QWidget*>(log_x_), static_cast<QWidget*>(log_y_), static_cast<QWidget*>(smoothing_)})
    loss_.card->addControl(control);
  domain_.card->addControl(domains_);
  for (QToolButton* button : {log_x_, log_y_}) connect(button, &QToolButton::toggled, this, &LivePage::refresh);
  for (QComboBox* box : {smoothing_, domains_}) connect(box, &QComboBox::currentIndexChanged, this, &LivePage::refresh);
}

void LivePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refresh();
}

void LivePage::refresh() {
  stale_ = !isVisible();
  if (stale_) return;
  const auto runs = session_.runs()->visibleRuns();
  const RunSet all = session_.runs()->runs();
  x_axis_->setCurrentIndex(x_axis_->findData(static_cast<int>(session_.xAxis())));
  updateDomains(runs);
  choice_ = {session_.xAxis(), log_x_->isChecked(), log_y_->isChecked(), smoothing_->currentData().toInt(),
             domains_->currentText().toStdString()};

  loss_.view->setFigure(live_loss_figure(runs, choice_, all, shown_run(session_, runs)));
  fill(gap_, gap_figure(runs, choice_, all));
  fill(gradient_, step_figure(runs, "gradient_norm", true, choice_, all));
  fill(speed_, step_figure(runs, "tokens_per_second", false, choice_, all));
  fill(domain_,
       choice_.domain.empty() ? Figure{} : series_figure(runs, "ood/loss/" + choice_.domain, choice_.x, choice_.log_x, choice_.log_y, all));
  fillCurrent(runs);
  const auto shown = [](const Panel* panel) { return !panel->card->isHidden(); };
  const Panel* beside[] = {&heads_, &layers_, &gap_, &captured_};
  side_->setVisible(std::any_of(std::begin(beside), std::end(beside), shown));
  const QString text = trouble(*session_.runs());
  trouble_->setText(text);
  trouble_->setVisible(!text.isEmpty());
}

void LivePage::updateDomains(const std::vector<const Run*>& runs) {
  QStringList names;
  for (const std::string& domain : all_domains(runs)) names << QString::fromStdString(domain);
  QStringList present;
  for (int i = 0; i < domains_->count(); ++i) present << domains_->itemText(i);
  if (names == present) return;
  const QSignalBlocker blocker(domains_);
  const QString chosen = domains_->currentText();
  domains_->clear();
  domains_->addItems(names);
  domains_->setCurrentIndex(std::max(0, domains_->findText(chosen)));
}

void LivePage::fill(Panel& panel, Figure figure) {
  panel.card->setVisible(has_data(figure));
  panel.view->setFigure(std::move(figure));
}

void LivePage::fillCurrent(const std::vector<const Run*>& runs) {
  const Run* run = shown_run(session_, runs);
  const RunSet all = session_.runs()->runs();
  for (Panel* panel : {&heads_, &layers_, &captured_})
    if (!run) fill(*panel, {});
  if (!run) return;
  const QString name = session_.runs()->label(*run);
  const std::string statistic = !layers_with(*run, "entropy_normalized").empty() ? "entropy_normalized" : "entropy";
  fill(layers_, layers_figure(*run, statistic, choice_.x, all));
  layers_.card->setTitle(tr("Entropy by layer"),
                         statistic == "entropy" ? tr("nats · %1").arg(name) : tr("1 = evenly spread · %1").arg(name));
  fill(captured_, layers_figure(*run, "captured_mass", choice_.x, all));
  captured_.card->setTitle(tr("Captured mass of the choice"), tr("1 = nothing lost · %1").arg(name));
  const auto& last = run->last_statistics();
  const auto recorded = [&](const std::string& wanted) {
    return last && std::any_of(last->statistics.begin(), last->statistics.end(), [&](const HeadStatistic& s) { return s.name == wanted; });
  };
  fill(heads_, recorded(statistic) ? head_figure(*last, statistic, layer_mixers(run->info())) : Figure{});
  if (last) heads_.card->setTitle(tr("Attention entropy"), tr("%1, step %2").arg(name).arg(last->at.step));
}

}  // namespace saccade::ui
