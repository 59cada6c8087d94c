#include "ui/compare/score_tests_card.h"

#include <QVBoxLayout>
#include <algorithm>

#include "analysis/comparison/branches.h"
#include "analysis/figures/score_records.h"
#include "ui/charts/figure_view.h"
#include "ui/compare/comparison_table.h"
#include "ui/compare/fitted_table.h"
#include "ui/compare/table_card.h"
#include "ui/run_list.h"
#include "ui/run_selection.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

/// What is drawn and was scored on the tasks, without cooldown branches of runs that are shown.
DrawnSet scored(const ShownRuns& shown, const std::string& task) {
  const TrunksAndBranches trunks(shown.runs());
  const RunSet& own = trunks.runs();
  DrawnSet set;
  for (DrawnRuns& each : shown.drawn()) {
    std::erase_if(each.seeds, [&](const Run* run) { return std::find(own.begin(), own.end(), run) == own.end(); });
    if (std::any_of(each.seeds.begin(), each.seeds.end(), [&](const Run* run) { return !records_of(*run, task).empty(); }))
      set.push_back(std::move(each));
  }
  return set;
}

/// Whether a run of that directory is among its seeds.
bool has(const DrawnRuns& drawn, const QString& directory) {
  return std::any_of(drawn.seeds.begin(), drawn.seeds.end(), [&](const Run* run) { return directory_of(*run) == directory; });
}

}  // namespace

ScoreTestsCard::ScoreTestsCard(Session& session, std::function<std::string()> task, QWidget* parent)
    : QWidget(parent),
      session_(session),
      task_(std::move(task)),
      table_(new ComparisonTable(ComparisonTable::Kind::scores, session.runs(), this)),
      view_(new FittedTable),
      card_(new Card(tr("Scores and their tests"), {}, view_, this)),
      job_(this, [this](const Made& made) { show(made); }) {
  view_->setModel(table_);
  view_->setAccessibleName(tr("Scores of tasks and their tests"));
  add_columns_button(*card_, *view_);
  add_copy_button(*card_, *table_);
  card_->hide();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(card_);
  connect(session_.runs(), &RunList::changed, this, [this] { make(false); });
  connect(&session_, &Session::currentRunChanged, this, [this] { make(true); });
}

void ScoreTestsCard::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  make(true);
}

void ScoreTestsCard::make(bool urgent) {
  if (!isVisible()) return;
  job_.ask(
      [shown = session_.runs()->shown(), task = task_(), current = session_.currentRun()] {
        DrawnSet drawn = scored(*shown, task);
        auto first = std::find_if(drawn.begin(), drawn.end(), [&](const DrawnRuns& each) { return has(each, shown->baseline); });
        if (first == drawn.end())
          first = std::find_if(drawn.begin(), drawn.end(), [&](const DrawnRuns& each) { return has(each, current); });
        if (first != drawn.end()) std::rotate(drawn.begin(), first, first + 1);
        Made made{compare_scores(drawn, task), {}};
        for (const DrawnRuns& each : drawn) made.directories.push_back(directory_of(*each.seeds.front()));
        return made;
      },
      urgent);
}

void ScoreTestsCard::show(const Made& made) {
  const std::vector<ScoreComparison::OfTask>& tasks = made.scores.tasks;
  empty_ = tasks.empty();
  card_->setVisible(!empty_);
  table_->setScores(made.scores, made.directories);
  if (!empty_) {
    const QString first = QString::fromStdString(tasks.front().rows.front().title);
    const QString against = made.directories.size() > 1 ? tr("against %1").arg(first) : QString();
    const QString one = tasks.size() == 1 ? QString::fromStdString(tasks.front().task) : QString();
    card_->setTitle(tr("Scores and their tests"), one + (one.isEmpty() || against.isEmpty() ? QString() : QStringLiteral(" · ")) + against);
    view_->fit(widest_, table_->moreColumns());
  }
  Q_EMIT changed();
}

void ScoreTestsCard::limit(int widest) {
  widest_ = widest;
  if (!empty_) view_->limit(widest);
}

int ScoreTestsCard::wholeHeight() const { return card_->sizeHint().height() - view_->sizeHint().height() + view_->wholeHeight(); }

void ScoreTestsCard::fitRows() { setMaximumHeight(empty_ ? 0 : std::max(wholeHeight(), card_->minimumSizeHint().height())); }

}  // namespace saccade::ui
