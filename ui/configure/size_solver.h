#pragma once
#include <QWidget>
#include <optional>

#include "models/json.h"
#include "ui/latest_job.h"

class QComboBox;
class QLineEdit;
class QPushButton;

namespace saccade::ui {

class ProblemLabel;

/// Finds the widths with which the model has a wanted number of parameters, within 0.5 %.
class SizeSolver : public QWidget {
  Q_OBJECT
 public:
  explicit SizeSolver(QWidget* parent = nullptr);

  void setConfig(const nlohmann::json& config);
  QWidgetList stops() const;

 Q_SIGNALS:
  void solved(const QStringList& assignments);  ///< "architecture.width=264"
  void selectedRunWanted();                     ///< answered with setGoal()

 public Q_SLOTS:
  void setGoal(qint64 parameters);

 private:
  struct Answer {
    nlohmann::json config;  ///< that it was asked for
    std::vector<std::string> assignments;
    int64_t parameters = 0;
    QString problem;
  };
  void solve();
  void show(const Answer& answer);
  static Answer answer(const nlohmann::json& config, int64_t goal, const std::vector<std::string>& by);

  nlohmann::json config_;
  LatestJob<Answer> job_;
  QLineEdit* goal_;
  QComboBox* by_;
  QPushButton *as_run_, *solve_;
  ProblemLabel* outcome_;
};

/// "12.7 M", "3.3m", "12,700,000" or "12700000" as a number; nothing for what is none.
std::optional<int64_t> count_from(const QString& text);

}  // namespace saccade::ui
