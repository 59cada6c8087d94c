#pragma once
#include <QWidget>
#include <optional>

#include "models/config/config.h"
#include "models/training/plan.h"
#include "models/training/run_pace.h"

class QGridLayout;
class QLabel;
class QPushButton;

namespace saccade::ui {

class MemoryBar;
class PlanWorker;

/// What the run will take, beside the form: from the engine itself, nothing allocated.
class PlanView : public QWidget {
  Q_OBJECT
 public:
  explicit PlanView(QWidget* parent = nullptr);

  /// `done`: steps that a fork has behind it.
  void setConfig(const RunConfig& config, int64_t done = 0);
  void setNoConfig(const QString& why);  ///< the form holds an error

 private:
  void showPlan(const Plan& plan, int64_t embeddings);
  void showTime();
  void toggleMeasurement();
  QLabel* row(const QString& title, QGridLayout* rows);

  PlanWorker* worker_;
  RunConfig config_;
  std::optional<Plan> plan_;
  std::optional<RunPace> pace_;
  int64_t done_ = 0;
  QLabel *parameters_, *embeddings_, *tokens_, *checkpoint_, *captures_, *flops_, *device_, *memory_, *state_, *speed_, *time_;
  MemoryBar* bar_;
  QLabel* notes_;
  QLabel* problem_;
  QPushButton* measure_;
};

}  // namespace saccade::ui
