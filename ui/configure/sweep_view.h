#pragma once
#include <QTemporaryDir>
#include <QWidget>

#include "models/json.h"
#include "ui/configure/config_draft.h"

class QCheckBox;
class QComboBox;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace saccade {
struct Study;
}

namespace saccade::ui {

class AxisEditor;
class ProblemLabel;
class Session;
class StudyStart;

/// A study over the configuration that is being written: axes, seeds, tuning, what all runs have in common, cooldown branches. What it
/// takes is told before it is queued; its file is kept in own_studies_folder(). Ctrl+Z takes back what was changed.
class SweepView : public QWidget {
  Q_OBJECT
 public:
  explicit SweepView(Session& session, QWidget* parent = nullptr);

  void setDraft(const ConfigDraft& draft);
  nlohmann::json sweep() const;
  QWidgetList stops() const;

 Q_SIGNALS:
  void stopsChanged();

 protected:
  void showEvent(QShowEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* makeHead();
  QWidget* makeTuning();
  QWidget* makeRules();
  void makeUndo();
  void setSweep(const nlohmann::json& sweep);
  void keep();
  void takeBack(std::vector<nlohmann::json>& from, std::vector<nlohmann::json>& to);
  AxisEditor* addAxis(const nlohmann::json& axis);
  void removeAxis(AxisEditor* axis);
  void dropAxis(AxisEditor* axis);
  void propose(AxisEditor* axis, const QString& setting);
  void follow();
  void showAxes(const Study& study);
  void showProblem(const QString& problem);
  QString fileName() const;
  QString save();

  Session& session_;
  ConfigDraft draft_;
  std::vector<FormField> fields_;
  nlohmann::json file_;  ///< the study as it stands; null while it is none
  QTemporaryDir scratch_;
  QString planned_;  ///< the text that was planned last
  QLineEdit *name_, *question_, *seeds_;
  QVBoxLayout* axes_box_ = nullptr;
  std::vector<AxisEditor*> axes_;
  int made_ = 0;  ///< axes so far, those taken out too: each has a number of its own
  QPushButton *add_, *save_;
  QCheckBox *tuned_, *extend_, *every_seed_;
  AxisEditor* tuning_;
  QComboBox* equal_;
  QLineEdit *equal_by_, *branches_;
  nlohmann::json now_;                         ///< the sweep as it was kept last
  std::vector<nlohmann::json> done_, undone_;  ///< before it, and what was taken back
  std::string edited_;                         ///< the one field that was changed last: what is typed there is one change
  ProblemLabel* problem_;
  StudyStart* start_;
};

}  // namespace saccade::ui
