#include "ui/compare/compare_charts.h"

#include <QComboBox>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTabBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <vector>

#include "analysis/figures/number_figures.h"
#include "analysis/figures/score_figures.h"
#include "ui/charts/figure_view.h"
#include "ui/compare/runs_chart.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

/// Numbers that every run may have, beside its settings.
constexpr const char* kUp[] = {"ood", "validation", "gap", "perplexity", "entropy", "tokens_per_second", "seconds"};
constexpr const char* kAcross[] = {"parameters", "flops", "tokens", "seconds", "validation", "entropy"};

using Entries = std::vector<std::pair<QString, QString>>;  ///< words, and what they stand for

/// Replaces a box's entries; what was chosen stays chosen, also where it comes back later (`wanted`).
void refill(QComboBox& box, const Entries& entries, const QString& wanted) {
  const QSignalBlocker blocker(box);
  QStringList before, after;
  for (int i = 0; i < box.count(); ++i) before << box.itemData(i).toString();
  for (const auto& [text, data] : entries) after << data;
  if (before != after) {
    box.clear();
    for (const auto& [text, data] : entries) box.addItem(text, data);
  }
  box.setCurrentIndex(std::max(0, box.findData(wanted.isNull() ? box.itemData(0) : QVariant(wanted))));
}

std::string chosen(const QComboBox* box) { return box->currentData().toString().toStdString(); }

}  // namespace

CompareCharts::CompareCharts(Session& session, QWidget* trajectories, QWidget* parent)
    : QWidget(parent),
      session_(session),
      gathering_(this, [this](const Found& found) { offer(found); }),
      tabs_(new QTabBar(this)),
      stack_(new QStackedWidget(this)) {
  makePosition();
  makeNumbers();
  makeScores();
  tabs_->setAccessibleName(tr("Chart"));
  tabs_->setDrawBase(false);
  tabs_->setUsesScrollButtons(true);
  for (const auto& [text, page] : std::vector<std::pair<QString, QWidget*>>{
           {tr("Trajectories"), trajectories}, {tr("By position"), position_}, {tr("Two numbers"), numbers_}, {tr("Scores"), scores_}})
    tabs_->addTab(text), stack_->addWidget(page);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(tabs_);
  column->addWidget(stack_, 1);
  tabs_->setCurrentIndex(std::clamp(session_.place().value("compare/chart").toInt(), 0, tabs_->count() - 1));
  show(tabs_->currentIndex());
  connect(tabs_, &QTabBar::currentChanged, this, [this](int index) {
    session_.place().set("compare/chart", index);
    show(index);
    Q_EMIT chartChanged();
  });
  connect(session_.runs(), &RunList::changed, this, [this] { gather(false); });
  offer({});
}

/// The others ask for no room.
void CompareCharts::show(int index) {
  for (int i = 0; i < stack_->count(); ++i) {
    const auto policy = i == index ? QSizePolicy::Preferred : QSizePolicy::Ignored;
    stack_->widget(i)->setSizePolicy(policy, policy);
  }
  stack_->setCurrentIndex(index);
}

int CompareCharts::leastWidth() const { return stack_->currentWidget()->minimumSizeHint().width(); }

QComboBox* CompareCharts::choice(const QString& name, const QString& help, const char* key, RunsChart& chart) {
  auto* box = new QComboBox;
  box->setAccessibleName(name);
  box->setToolTip(help);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(12);
  connect(box, &QComboBox::currentIndexChanged, this, [this, box, key, &chart] {
    session_.place().set(key, box->currentData());
    chart.refresh();
  });
  chart.card().addControl(box);
  return box;
}

void CompareCharts::makePosition() {
  position_ = new RunsChart(
      session_, tr("Loss by position in the sequence"), tr("last evaluation · powers of two"),
      tr("No run has recorded its loss by position yet: it comes with the first evaluation (training.evaluate_every)."),
      [this] { return [domain = chosen(domain_)](const ShownRuns& shown) { return position_figure(shown.drawn(), domain); }; }, this);
  domain_ = choice(tr("Domain of the losses by position"), tr("Which text"), "compare/position-domain", *position_);
}

void CompareCharts::makeNumbers() {
  numbers_ = new RunsChart(
      session_, tr("Any two numbers of the runs"), tr("a point for each setting"), tr("No run has both numbers."),
      [this] {
        return [up = chosen(up_), across = chosen(across_), fit = static_cast<Fit>(fit_->currentIndex()),
                logarithmic = logarithmic_->isChecked()](const ShownRuns& shown) {
          Figure figure = number_figure(shown.drawn(), up, across, fit);
          figure.x.logarithmic = figure.y.logarithmic = logarithmic;
          return figure;
        };
      },
      this);
  up_ = choice(tr("Number up"), tr("The number up"), "compare/up", *numbers_);
  across_ = choice(tr("Number across"), tr("The number across: a setting that differs among the shown runs, or what they took"),
                   "compare/across", *numbers_);
  fit_ = choice(tr("Fit"), tr("A power law through all runs of each architecture; the legend has its exponent"), "compare/fit", *numbers_);
  {
    const QSignalBlocker blocker(fit_);
    for (const auto& [text, kind] : Entries{
             {tr("no fit"), QString()}, {tr("power law"), QStringLiteral("law")}, {tr("power law with a floor"), QStringLiteral("floor")}})
      fit_->addItem(text, kind);
    fit_->setCurrentIndex(std::max(0, fit_->findData(session_.place().value("compare/fit").toString())));
  }
  logarithmic_ = new QToolButton;
  logarithmic_->setText(tr("log"));
  logarithmic_->setToolTip(tr("Both axes logarithmic"));
  logarithmic_->setAccessibleName(tr("Both axes logarithmic"));
  logarithmic_->setCheckable(true);
  logarithmic_->setChecked(session_.place().value("compare/log").toBool());
  connect(logarithmic_, &QToolButton::toggled, this, [this](bool on) {
    session_.place().set("compare/log", on);
    numbers_->refresh();
  });
  numbers_->card().addControl(logarithmic_);
}

void CompareCharts::makeScores() {
  scores_ = new RunsChart(
      session_, tr("Scores of tasks"), tr("newest checkpoint scored · 95 % intervals"),
      tr("No run has been scored yet: saccade evaluate RUN --task NAME scores its checkpoints, and saccade tasks lists what there is."),
      [this] { return [task = chosen(task_)](const ShownRuns& shown) { return score_dots(shown.drawn(), task); }; }, this);
  task_ = choice(tr("Task"), tr("Which tasks"), "compare/task", *scores_);
}

void CompareCharts::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  gather(true);
}

void CompareCharts::gather(bool urgent) {
  if (!isVisible()) return;
  gathering_.ask(
      [shown = session_.runs()->shown()] {
        Found found;
        const RunSet runs = shown->runs();
        found.settings = varied_settings(runs);
        for (const Run* run : runs) {
          if (run->last_evaluation())
            for (const DomainLoss& loss : run->last_evaluation()->losses) (loss.ood ? found.unseen : found.trained).insert(loss.domain);
          for (const TaskScoreRecord& score : run->task_scores()) found.tasks.insert(score.task);
        }
        return found;
      },
      urgent);
}

void CompareCharts::offer(const Found& found) {
  Entries domains{{tr("unseen domains"), QString()}}, ups, acrosses, tasks{{tr("all tasks"), QString()}};
  const auto add = [](Entries& to, const auto& names) {
    for (const std::string& name : names) to.emplace_back(QString::fromStdString(name), QString::fromStdString(name));
  };
  const auto add_numbers = [](Entries& to, const auto& names) {
    for (const char* name : names) to.emplace_back(QString::fromStdString(number_title(name)), QString::fromLatin1(name));
  };
  add(domains, found.unseen), add(domains, found.trained), add(tasks, found.tasks);
  add_numbers(ups, kUp);
  for (const std::string& name : found.settings)
    if (name != "training.seed" && name != "threads") add(acrosses, std::array{name});
  add_numbers(acrosses, kAcross);
  const auto fill = [this](QComboBox& box, const Entries& entries, const char* key, RunsChart& chart) {
    const QVariant before = box.currentData();
    refill(box, entries, session_.place().value(key).toString());
    if (box.currentData() != before) chart.refresh();
  };
  fill(*domain_, domains, "compare/position-domain", *position_);
  fill(*up_, ups, "compare/up", *numbers_);
  fill(*across_, acrosses, "compare/across", *numbers_);
  fill(*task_, tasks, "compare/task", *scores_);
}

}  // namespace saccade::ui
