#include "ui/configure/plan_view.h"

#include <QGridLayout>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "kernels/engine/device.h"
#include "models/training/run_cost.h"
#include "ui/configure/config_draft.h"
#include "ui/configure/memory_bar.h"
#include "ui/configure/plan_worker.h"
#include "ui/run_summary.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

/// 7.9 · 10¹⁵
QString scientific(double value) {
  if (value < 1e4) return QLocale::c().toString(value, 'f', 0);
  const int power = static_cast<int>(std::floor(std::log10(value)));
  static const QString digits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString exponent;
  for (const QChar digit : QString::number(power)) exponent += digits[digit.digitValue()];
  return QStringLiteral("%1 · 10%2").arg(QLocale::c().toString(value / std::pow(10.0, power), 'f', 1), exponent);
}

/// "18 × Gated DeltaNet, 940 k parameters each": of every kind of layer.
QStringList layer_lines(const std::vector<PlannedLayers>& layers) {
  std::vector<std::pair<PlannedLayers, int64_t>> kinds;
  for (const PlannedLayers& each : layers) {
    const auto same = [&](const auto& kind) { return kind.first.mixer == each.mixer && kind.first.parameters == each.parameters; };
    auto kind = std::find_if(kinds.begin(), kinds.end(), same);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {each, 0});
    kind->second += each.last - each.first + 1;
  }
  QStringList lines;
  for (const auto& [kind, count] : kinds)
    lines << PlanView::tr("%1 × %2, %3 parameters%4")
                 .arg(count)
                 .arg(QString::fromStdString(kind.mixer), formatCount(static_cast<double>(kind.parameters)),
                      count > 1 ? PlanView::tr(" each") : QString());
  return lines;
}

}  // namespace

PlanView::PlanView(QWidget* parent)
    : QWidget(parent),
      worker_(new PlanWorker(this)),
      bar_(new MemoryBar(this)),
      notes_(new QLabel(this)),
      problem_(new QLabel(this)),
      measure_(new QPushButton(this)) {
  auto* rows = new QGridLayout;
  rows->setColumnStretch(1, 1);
  rows->setVerticalSpacing(5);
  parameters_ = row(tr("parameters"), rows);
  embeddings_ = row(tr("non-embedding"), rows);
  embeddings_->setToolTip(tr("Without the tables of token and position embeddings; an output matrix of its own is counted."));
  tokens_ = row(tr("tokens"), rows);
  flops_ = row(tr("FLOPs"), rows);
  state_ = row(tr("cache / state"), rows);
  device_ = row(tr("device"), rows);
  memory_ = row(tr("memory at peak"), rows);
  rows->addWidget(bar_, rows->rowCount(), 0, 1, 2);
  speed_ = row(tr("speed"), rows);
  time_ = row(tr("time"), rows);
  checkpoint_ = row(tr("checkpoint"), rows);
  captures_ = row(tr("captures"), rows);
  checkpoint_->setToolTip(tr("Bytes of a checkpoint, and how many of them the run keeps at most."));
  captures_->setToolTip(tr("Bytes of the captures at one step, and at how many steps there are some."));
  state_->setToolTip(tr("KV cache and recurrent state during decoding, in bytes per token of context."));
  for (QLabel* label : {notes_, problem_}) label->setWordWrap(true);
  problem_->hide();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(rows);
  column->addWidget(measure_, 0, Qt::AlignRight);
  column->addWidget(problem_);
  column->addWidget(notes_);
  connect(measure_, &QPushButton::clicked, this, &PlanView::toggleMeasurement);
  connect(worker_, &PlanWorker::planned, this, &PlanView::showPlan);
  connect(worker_, &PlanWorker::failed, this, &PlanView::setNoConfig);
  connect(worker_, &PlanWorker::measured, this, [this](const RunPace& pace) {
    pace_ = pace;
    showTime();
  });
  connect(worker_, &PlanWorker::measurementFailed, this, [this](const QString& why) {
    showTime();
    speed_->setText(tr("could not be measured"));
    speed_->setToolTip(why);
    problem_->setText(why);
    problem_->show();
  });
  showTime();
}

QLabel* PlanView::row(const QString& title, QGridLayout* rows) {
  auto* name = new QLabel(title, this);
  name->setForegroundRole(QPalette::PlaceholderText);
  auto* value = new QLabel(QStringLiteral("–"), this);
  value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  value->setWordWrap(true);  // a number that is cut off reads as another one
  const int at = rows->rowCount();
  rows->addWidget(name, at, 0);
  rows->addWidget(value, at, 1);
  return value;
}

void PlanView::setConfig(const RunConfig& config, int64_t done) {
  done_ = done;
  const bool same_step = config.architecture == config_.architecture && config.data.sequence_length == config_.data.sequence_length &&
                         config.data.tokenizer == config_.data.tokenizer && config.training.batch_tokens == config_.training.batch_tokens &&
                         config.training.gradient_accumulation == config_.training.gradient_accumulation &&
                         config.training.activation_checkpointing == config_.training.activation_checkpointing &&
                         config.data.task == config_.data.task && config.training.capture_tokens == config_.training.capture_tokens &&
                         config.device == config_.device && config.precision == config_.precision && config.threads == config_.threads;
  if (!same_step) {
    pace_.reset();
    worker_->cancelMeasurement();
  }
  config_ = config;
  problem_->hide();
  worker_->plan(config);
}

void PlanView::setNoConfig(const QString& why) {
  worker_->forget();
  worker_->cancelMeasurement();
  plan_.reset();
  pace_.reset();
  for (QLabel* value : {parameters_, embeddings_, tokens_, flops_, state_, device_, memory_, checkpoint_, captures_})
    value->setText(QStringLiteral("–"));
  bar_->setPlan({}, 0);
  notes_->clear();
  QPalette red = palette();
  red.setColor(QPalette::WindowText, errorColour(red));
  problem_->setPalette(red);
  problem_->setText(why);
  problem_->show();
  showTime();
}

void PlanView::showPlan(const Plan& plan, int64_t embeddings) {
  plan_ = plan;
  const int64_t free = plan.memory.available;
  const auto bytes = [](int64_t count) { return formatBytes(static_cast<double>(count)); };
  parameters_->setText(formatCount(static_cast<double>(plan.parameters)));
  parameters_->setToolTip(QLocale::c().toString(static_cast<qlonglong>(plan.parameters)));
  embeddings_->setText(formatCount(static_cast<double>(plan.parameters - embeddings)));
  checkpoint_->setText(tr("%1 × %2").arg(bytes(checkpoint_bytes(plan))).arg(checkpoints_kept(config_.training)));
  captures_->setText(tr("%1 × %2").arg(bytes(plan.capture_bytes)).arg(captures_kept(config_.training)));
  tokens_->setText(tr("%1 in %2 steps")
                       .arg(formatCount(static_cast<double>(plan.tokens)),
                            QLocale::c().toString(static_cast<qlonglong>(plan.steps)).remove(QLatin1Char(','))));
  flops_->setText(scientific(plan.total_flops()));
  state_->setText(tr("%1 per token").arg(bytes(plan.state_bytes_per_token)));
  const bool present = plan.memory.total > 0;
  const QString device = QString::fromStdString(plan.device);
  device_->setText(device);
  memory_->setText(present ? tr("%1 of %2 free").arg(bytes(plan.device_bytes()), bytes(free)) : bytes(plan.device_bytes()));
  bar_->setPlan(plan, free);
  const bool fits = plan.device_bytes() <= free;
  if (!fits) {
    problem_->setText(present ? tr("This needs more memory than is free: turn on activation checkpointing, raise gradient accumulation, or "
                                   "reduce width, sequence "
                                   "length or batch tokens.")
                              : tr("There is no %1 that can be used here; device auto takes what there is.").arg(device));
    QPalette red = palette();
    red.setColor(QPalette::WindowText, errorColour(red));
    problem_->setPalette(red);
  }
  problem_->setVisible(!fits);
  const std::string looks_ahead = causality_warning(config_);
  QStringList notes{looks_ahead.empty() ? tr("✓ causal: no position sees its future")
                                        : tr("Not causal: %1").arg(QString::fromStdString(looks_ahead))};
  if (config_.data.ood.empty()) notes << tr("No domain is out of distribution: only the pre-training loss will be measured.");
  for (const std::string& op : plan.without_tensor_cores)
    notes << tr("Slow, for no kernel for tensor cores takes it: %1").arg(QString::fromStdString(op));
  notes << layer_lines(plan.layers);
  notes_->setText(notes.join(QLatin1Char('\n')));
  showTime();
}

void PlanView::showTime() {
  const bool measuring = worker_->measuring();
  measure_->setText(measuring ? tr("Cancel measurement") : pace_ ? tr("Measure again") : tr("Measure speed"));
  measure_->setAccessibleName(measure_->text());
  measure_->setToolTip(tr("Trains and evaluates on random tokens for some seconds, on this device."));
  measure_->setEnabled(plan_.has_value() || measuring);
  if (!plan_ || !pace_) {
    speed_->setText(measuring ? tr("measuring …") : QStringLiteral("–"));
    time_->setText(QStringLiteral("–"));
    return;
  }
  speed_->setText(tr("%1tok/s").arg(formatCount(static_cast<double>(plan_->tokens_per_step) / pace_->step)));
  const auto steps = static_cast<double>(plan_->steps), left = steps - static_cast<double>(done_);
  time_->setText(tr("about %1").arg(formatDuration(run_seconds(config_, *plan_, *pace_) * left / steps)));
  time_->setToolTip(done_ > 0 ? tr("Of the steps after %1, with evaluation, statistics and captures.").arg(done_)
                              : tr("With evaluation, statistics and captures."));
}

void PlanView::toggleMeasurement() {
  problem_->hide();
  if (worker_->measuring())
    worker_->cancelMeasurement();
  else
    worker_->measure(config_);
  showTime();
}

}  // namespace saccade::ui
