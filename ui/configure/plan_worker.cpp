#include "ui/configure/plan_worker.h"

#include <QProcess>

#include "models/corpus/vocabulary.h"
#include "models/training/run_cost.h"
#include "ui/configure/config_draft.h"
#include "ui/run_process.h"
#include "ui/threads/hand_over.h"

namespace saccade::ui {
namespace {

QString last_line(const QByteArray& text) {
  const QStringList lines = QString::fromUtf8(text).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  return lines.isEmpty() ? QString() : lines.last().trimmed();
}

}  // namespace

PlanWorker::PlanWorker(QObject* parent) : QObject(parent) {
  pool_.setMaxThreadCount(1);
  soon_.setSingleShot(true);
  soon_.setInterval(200);
  connect(&soon_, &QTimer::timeout, this, &PlanWorker::start);
}

PlanWorker::~PlanWorker() {
  forget();
  wait_for(pool_);
  if (process_) {
    process_->disconnect(this);
    process_->kill();
    process_->waitForFinished(1000);
  }
}

void PlanWorker::plan(const RunConfig& config) {
  ++wish_;
  wanted_ = config;
  soon_.start();
}

void PlanWorker::forget() {
  ++wish_;
  soon_.stop();
}

void PlanWorker::start() {
  start_in(pool_, [this, config = wanted_, wish = wish_.load()] {
    if (wish != wish_) return;
    const auto answer = [this, wish](auto tell) {
      hand_over(this, [this, wish, tell] {
        if (wish == wish_) tell();
      });
    };
    try {
      const Plan plan = make_plan(config, padded_vocabulary(vocabulary_of(config.data.tokenizer), config.data.vocabulary_multiple));
      answer([this, plan, embeddings = count_embedding_parameters(config)] { Q_EMIT planned(plan, embeddings); });
    } catch (const std::exception& error) {
      answer([this, message = QString::fromUtf8(error.what())] { Q_EMIT failed(message); });
    }
  });
}

void PlanWorker::measure(const RunConfig& config) {
  if (process_) return;
  process_ = new QProcess(this);
  connect(process_, &QProcess::finished, this, &PlanWorker::finishMeasurement);
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    Q_EMIT measurementFailed(tr("The program “saccade” cannot be started: %1").arg(process_->errorString()));
    std::exchange(process_, nullptr)->deleteLater();
  });
  const QByteArray text = QByteArray::fromStdString(to_json(config).dump());
  process_->start(commandLineProgram(),
                  {QStringLiteral("plan"), QStringLiteral("-"), QStringLiteral("--measure"), QStringLiteral("--json")});
  if (!process_) return;
  process_->write(text);
  process_->closeWriteChannel();
}

void PlanWorker::cancelMeasurement() {
  if (!process_) return;
  process_->disconnect(this);
  process_->kill();
  std::exchange(process_, nullptr)->deleteLater();
}

void PlanWorker::finishMeasurement() {
  QProcess* process = std::exchange(process_, nullptr);
  process->deleteLater();
  const QByteArray output = process->readAllStandardOutput();
  const auto answer = nlohmann::json::parse(output.begin(), output.end(), nullptr, false);
  if (answer.is_object() && answer.contains("seconds_per_step") && process->exitCode() == 0) {
    Q_EMIT measured(pace_from(answer));
    return;
  }
  const QString why = last_line(process->readAllStandardError());
  Q_EMIT measurementFailed(why.isEmpty() ? tr("The measurement ended without a result.") : why);
}

}  // namespace saccade::ui
