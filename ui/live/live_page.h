#pragma once
#include <QWidget>

#include "ui/latest_job.h"
#include "ui/live/live_figures.h"
#include "ui/live/point_in_run.h"

class QComboBox;
class QLabel;
class QToolButton;

namespace saccade::ui {

class Card;
class FigureView;
class Session;
class ScaleButton;
class SmoothingChoice;

/// Pre-training and OOD loss of all visible runs, large, and what explains them beside it; follows live runs.
class LivePage : public QWidget {
  Q_OBJECT
 public:
  LivePage(Session& session, QWidget* parent);
  ~LivePage() override;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Panel {
    Card* card;
    FigureView* view;
  };
  Panel makePanel(const QString& title, const QString& subtitle);
  void makeControls();
  static QComboBox* titleChoice(Card& card, const QString& name, const std::vector<std::pair<QString, QString>>& entries);
  void refresh(bool urgent = true);  ///< draws anew when seen, else when shown
  void show(LiveFigures figures);
  void updateDomains();
  void updateSelections();
  void updateAnswers();
  void titleCards();
  void fill(Panel& panel, LiveFigures::Place place);
  void restore();
  void remember();
  void link(const std::vector<Panel*>& panels);  ///< pointing at one points at all
  void moveMark(double x);
  void keepZooms();
  std::vector<CurveOfRun> curvesOf(const Panel& panel) const;
  std::optional<PointInRun> pointIn(const Panel& panel, double x, double y) const;
  void openAt(const Panel& panel, double x, double y);

  Session& session_;
  LiveFigures figures_;
  std::shared_ptr<LiveParts> parts_ = std::make_shared<LiveParts>();  ///< of the job alone
  QTimer part_changed_;
  LatestJob<LiveFigures> job_;
  bool stale_ = true;
  bool chosen_anew_ = false;  ///< by the reader, who waits
  bool reading_ = false;      ///< the last time there were runs unread
  Panel loss_, heads_, layers_, gap_, captured_, accuracy_, gradient_, domain_, speed_;
  std::vector<std::pair<Panel*, const char*>> zooms_;  ///< by the keys they are remembered under
  QLabel* trouble_;
  QToolButton* resume_;
  QWidget* side_;  ///< the column beside the losses; hidden while it would be empty
  QComboBox *x_axis_, *domains_;
  QComboBox *gap_choice_, *step_choice_, *resource_choice_, *selection_choice_, *answers_choice_;  ///< in place of titles
  SmoothingChoice* smoothing_;
  QComboBox *spread_, *each_domain_;
  ScaleButton *log_x_, *log_y_;
  QTimer click_;  ///< a click that is not the first half of a double click
  std::function<void()> clicked_;
};

}  // namespace saccade::ui
