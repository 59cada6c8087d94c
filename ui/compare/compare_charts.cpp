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
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/compare/failed_items.h"
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

/// The group that a run is in, else all.
DrawnSet group_of(const ShownRuns& shown, const QString& directory) {
  if (const std::optional<DrawnRuns> group = shown.drawn_with(directory)) return {*group};
  return shown.drawn();
}

/// A task of which some run was scored on a part of the items alone is called so: its dot does not compare with the others.
Figure with_parts_named(Figure dots, const DrawnSet& runs) {
  for (std::string& name : dots.x.names) {
    const bool is_part = std::any_of(runs.begin(), runs.end(), [&](const DrawnRuns& group) {
      return std::any_of(group.seeds.begin(), group.seeds.end(), [&](const Run* run) {
        bool scored = false, whole = false;  // figures take whole results first
        for (const TaskScoreRecord& score : run->task_scores())
          if (score.task == name) scored = true, whole |= !score.partial;
        return scored && !whole;
      });
    });
    if (is_part) name += " (part)";
  }
  return dots;
}

std::string chosen(const QComboBox* box) { return box->currentData().toString().toStdString(); }

}  // namespace

/// How scores are drawn: dots by task, or a map of what stands in the names of tasks and their groups of items (score_figures.h).
struct ScoreView {
  const char *key, *title, *across, *down;
  bool of_one;  ///< of the current run's group alone
  DrawnSet runs(const ShownRuns& shown, const QString& current) const { return of_one ? group_of(shown, current) : shown.drawn(); }
};

namespace {

constexpr ScoreView kScoreViews[] = {
    {"", QT_TRANSLATE_NOOP("saccade::ui::CompareCharts", "dots"), "", "", false},
    {"depth", QT_TRANSLATE_NOOP("saccade::ui::CompareCharts", "map: length × depth"), "length", "depth", true},
    {"distance", QT_TRANSLATE_NOOP("saccade::ui::CompareCharts", "map: length × distance"), "length", "distance", true},
    {"pairs", QT_TRANSLATE_NOOP("saccade::ui::CompareCharts", "map: length × pairs"), "length", "pairs", true},
    {"width", QT_TRANSLATE_NOOP("saccade::ui::CompareCharts", "map: pairs × width"), "pairs", "architecture.width", false}};

}  // namespace

CompareCharts::CompareCharts(Session& session, QWidget* trajectories, QWidget* parent)
    : QWidget(parent),
      session_(session),
      gathering_(this, [this](const Found& found) { offer(found); }),
      tabs_(new QTabBar(this)),
      stack_(new QStackedWidget(this)),
      failed_(new FailedItemsMenu(session, this)) {
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

bool CompareCharts::showsScores() const { return stack_->currentWidget() == scores_; }

std::string CompareCharts::task() const { return chosen(task_); }

int CompareCharts::leastWidth() const { return stack_->currentWidget()->minimumSizeHint().width(); }

QComboBox* CompareCharts::choice(const QString& name, const QString& help, const char* key, RunsChart& chart) {
  auto* box = new QComboBox;
  calm_wheel(box);
  box->setAccessibleName(name);
  box->setToolTip(help);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(16);
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

const ScoreView& CompareCharts::scoreView() const { return kScoreViews[static_cast<size_t>(std::max(0, score_view_->currentIndex()))]; }

/// What is said where no score is drawn: of a map that there may be others.
QString CompareCharts::noScores() const {
  const std::vector<const Run*> runs = session_.runs()->visibleRuns();
  const bool any = std::any_of(runs.begin(), runs.end(), [](const Run* run) { return !run->task_scores().empty(); });
  if (!any)
    return tr(
        "No run has been scored yet: saccade evaluate RUN --task NAME scores its checkpoints, and saccade tasks lists what there is.");
  const ScoreView& view = scoreView();
  return (view.of_one ? tr("The run that is selected in the list has no score with a place on the %1. Choose dots to see all scores.")
                      : tr("No score has a place on the %1. Choose dots to see all scores."))
      .arg(tr(view.title));
}

void CompareCharts::makeScores() {
  scores_ = new RunsChart(
      session_, tr("Scores of tasks"), tr("newest checkpoint scored · a click: what failed"), QString(),
      [this] {
        scores_->setEmptyText(noScores());
        return [task = chosen(task_), view = &scoreView(), current = session_.currentRun()](const ShownRuns& shown) {
          const DrawnSet runs = view->runs(shown, current);
          return *view->across == 0 ? with_parts_named(score_dots(runs, task), runs) : score_map(runs, task, view->across, view->down);
        };
      },
      this);
  task_ = choice(tr("Task"), tr("Which tasks"), "compare/task", *scores_);
  score_view_ =
      choice(tr("Scores as"),
             tr("Dots with 95 % intervals, or a map: of the run selected in the list and its seeds, by what the names of tasks say"),
             "compare/score-view", *scores_);
  connect(task_, &QComboBox::currentIndexChanged, this, &CompareCharts::taskChanged);
  const QSignalBlocker blocker(score_view_);
  for (const ScoreView& view : kScoreViews) score_view_->addItem(tr(view.title), QString::fromLatin1(view.key));
  score_view_->setCurrentIndex(std::max(0, score_view_->findData(session_.place().value("compare/score-view").toString())));
  connect(&session_, &Session::currentRunChanged, this, [this] {
    if (scoreView().of_one) scores_->refresh();
  });
  connect(&scores_->view(), &FigureView::positionClicked, this, [this](double x) {
    offerFailed([x](const DrawnSet& drawn, const std::string& task) { return sources_of_dot(drawn, task, x); });
  });
  connect(&scores_->view(), &FigureView::cellClicked, this, [this](int row, int column) {
    offerFailed([view = &scoreView(), row, column](const DrawnSet& drawn, const std::string& task) {
      return sources_of_cell(drawn, task, view->across, view->down, row, column);
    });
  });
}

/// At the pointer, or where keys have pointed.
void CompareCharts::offerFailed(const std::function<std::vector<ScoreSource>(const DrawnSet&, const std::string&)>& sources) {
  const std::shared_ptr<const ShownRuns> shown = session_.runs()->shown();
  failed_->offer(sources(scoreView().runs(*shown, session_.currentRun()), chosen(task_)), scores_->view().pointedAt());
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
    if (box.currentData() != before && &chart == scores_) Q_EMIT taskChanged();  // the box tells nobody while it is filled
  };
  fill(*domain_, domains, "compare/position-domain", *position_);
  fill(*up_, ups, "compare/up", *numbers_);
  fill(*across_, acrosses, "compare/across", *numbers_);
  fill(*task_, tasks, "compare/task", *scores_);
}

}  // namespace saccade::ui
