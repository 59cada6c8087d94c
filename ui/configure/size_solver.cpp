#include "ui/configure/size_solver.h"

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>

#include "analysis/studies/equal.h"
#include "kernels/engine/error.h"
#include "ui/calm_wheel.h"
#include "ui/configure/problem_label.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {
using Json = nlohmann::json;
}

std::optional<int64_t> count_from(const QString& text) {
  static const QRegularExpression number(QStringLiteral("^\\s*([0-9][0-9,]*(?:\\.[0-9]+)?)\\s*([kKmMgGbB]?)\\s*$"));
  const QRegularExpressionMatch match = number.match(text);
  if (!match.hasMatch()) return {};
  const QString unit = match.captured(2).toLower();
  const double factor = unit == QStringLiteral("k") ? 1e3 : unit == QStringLiteral("m") ? 1e6 : unit.isEmpty() ? 1 : 1e9;
  const double count = match.captured(1).remove(QLatin1Char(',')).toDouble() * factor;
  if (count < 1 || count > 1e15) return {};
  return std::llround(count);
}

SizeSolver::SizeSolver(QWidget* parent)
    : QWidget(parent),
      job_(this, [this](const Answer& answer) { show(answer); }),
      goal_(new QLineEdit(this)),
      by_(new QComboBox(this)),
      as_run_(new QPushButton(tr("as the run"), this)),
      solve_(new QPushButton(tr("Solve"), this)),
      outcome_(new ProblemLabel(this)) {
  goal_->setAccessibleName(tr("Parameters wanted"));
  goal_->setPlaceholderText(tr("12.7 M"));
  goal_->setMinimumWidth(60);
  as_run_->setAccessibleName(tr("As many parameters as the selected run"));
  as_run_->setToolTip(tr("The number of parameters of the run that is selected in the list"));
  by_->setAccessibleName(tr("Settings to solve for"));
  by_->addItem(tr("by MLP width"), QStringList{QStringLiteral("architecture.mlp_width")});
  by_->addItem(tr("by width"), QStringList{QStringLiteral("architecture.width")});
  by_->addItem(tr("by width, then MLP"), QStringList{QStringLiteral("architecture.width"), QStringLiteral("architecture.mlp_width")});
  by_->addItem(tr("by layers"), QStringList{QStringLiteral("architecture.layers")});
  calm_wheel(by_);
  solve_->setAccessibleName(tr("Solve for the number of parameters"));
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  auto* title = new QLabel(tr("Equal parameters"), this);
  title->setForegroundRole(QPalette::PlaceholderText);
  title->setBuddy(goal_);
  grid->addWidget(title, 0, 0, 1, 2);
  grid->addWidget(goal_, 1, 0);
  grid->addWidget(as_run_, 1, 1);
  grid->addWidget(by_, 2, 0);
  grid->addWidget(solve_, 2, 1);
  grid->addWidget(outcome_, 3, 0, 1, 2);
  grid->setColumnStretch(0, 1);
  connect(as_run_, &QPushButton::clicked, this, &SizeSolver::selectedRunWanted);
  connect(solve_, &QPushButton::clicked, this, &SizeSolver::solve);
  connect(goal_, &QLineEdit::returnPressed, this, &SizeSolver::solve);
}

void SizeSolver::setConfig(const Json& config) { config_ = config; }

void SizeSolver::setGoal(qint64 parameters) {
  goal_->setText(QString::number(parameters));
  outcome_->say({});
}

QWidgetList SizeSolver::stops() const { return {goal_, as_run_, by_, solve_}; }

void SizeSolver::solve() {
  const std::optional<int64_t> goal = count_from(goal_->text());
  if (!goal) return outcome_->say(tr("Write how many parameters are wanted, like 12.7 M."));
  std::vector<std::string> by;
  for (const QString& setting : by_->currentData().toStringList()) by.push_back(setting.toStdString());
  outcome_->note(tr("Counting …"));
  solve_->setEnabled(false);
  job_.ask([config = config_, wanted = *goal, by] { return answer(config, wanted, by); }, true);
}

SizeSolver::Answer SizeSolver::answer(const Json& config, int64_t goal, const std::vector<std::string>& by) {
  Answer found{config, {}, 0, {}};
  const auto parse = [&](const std::vector<std::string>& settings) { return parse_config(config.dump(), "config", settings); };
  try {
    found.assignments = solve_parameters(goal, by, {"the model", config, parse});
    found.parameters = count_parameters(parse(found.assignments));
  } catch (const Error& error) {
    found.problem = QString::fromUtf8(error.what()).remove(QStringLiteral("/equal: ")).section(QStringLiteral("; name a finer"), 0, 0);
  }
  return found;
}

void SizeSolver::show(const Answer& answer) {
  solve_->setEnabled(true);
  if (!answer.problem.isEmpty()) return outcome_->say(answer.problem);
  if (answer.config != config_) return outcome_->say(tr("The configuration was changed meanwhile; solve again."));
  QStringList assignments;
  for (const std::string& each : answer.assignments) assignments << QString::fromStdString(each);
  const QString with =
      assignments.isEmpty() ? tr("as it is") : assignments.join(QStringLiteral(", ")).remove(QStringLiteral("architecture."));
  outcome_->note(tr("%1 parameters: %2").arg(formatCount(static_cast<double>(answer.parameters)), with));
  if (!assignments.isEmpty()) Q_EMIT solved(assignments);
}

}  // namespace saccade::ui
