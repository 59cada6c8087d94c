#pragma once
#include <QObject>
#include <QString>
#include <QThreadPool>
#include <QTimer>
#include <atomic>

#include "models/config/config.h"
#include "models/training/plan.h"
#include "models/training/run_pace.h"

class QProcess;

namespace saccade::ui {

/// Plans in a thread of its own, the newest wish only; measures in a process of its own.
class PlanWorker : public QObject {
  Q_OBJECT
 public:
  explicit PlanWorker(QObject* parent = nullptr);
  ~PlanWorker() override;

  void plan(const RunConfig& config);  ///< answers with planned() or failed(), unless another wish follows within 200 ms
  void forget();                       ///< no answer is wanted any more
  void measure(const RunConfig& config);
  bool measuring() const { return process_ != nullptr; }
  void cancelMeasurement();

 Q_SIGNALS:
  void planned(const saccade::Plan& plan, qint64 embeddings);  ///< parameters of embeddings among all
  void failed(const QString& message);
  void measured(const saccade::RunPace& pace);
  void measurementFailed(const QString& message);

 private:
  void start();
  void finishMeasurement();

  QThreadPool pool_;
  QTimer soon_;
  RunConfig wanted_;
  std::atomic<int> wish_{0};
  QProcess* process_ = nullptr;
};

}  // namespace saccade::ui
