#pragma once
#include <QComboBox>
#include <vector>

#include "analysis/comparison/run_settings.h"
#include "ui/latest_job.h"

namespace saccade::ui {

class RunTree;
class Session;

/// By what the rows of the page Runs are gathered: what differs among the runs, usual settings first. Kept with the session.
class GroupingChoice : public QComboBox {
  Q_OBJECT
 public:
  GroupingChoice(Session& session, RunTree& tree, QWidget* parent);

  void showPopup() override;  ///< with what differs by then

 private:
  void follow();
  void offer(std::vector<RunSetting> settings);
  void fill();

  Session& session_;
  RunTree& tree_;
  std::vector<RunSetting> settings_;
  LatestJob<std::vector<RunSetting>> job_;
  size_t known_ = 0;  ///< of the runs that were asked about last
};

}  // namespace saccade::ui
