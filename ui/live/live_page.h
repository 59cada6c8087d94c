#pragma once
#include <QWidget>
#include <map>

#include "ui/live/live_figures.h"

class QComboBox;
class QLabel;
class QToolButton;

namespace saccade::ui {

class Card;
class FigureView;
class Session;

/// Pre-training and OOD loss of all visible runs, large, and what explains them beside it; follows live runs.
class LivePage : public QWidget {
  Q_OBJECT
 public:
  LivePage(Session& session, QWidget* parent);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Panel {
    Card* card;
    FigureView* view;
  };
  Panel makePanel(const QString& title, const QString& subtitle);
  void makeControls();
  void refresh();  ///< draws anew when seen, else when shown
  void updateDomains(const std::vector<const Run*>& runs);
  void fill(Panel& panel, Figure figure);
  void fillCurrent(const std::vector<const Run*>& runs);

  Session& session_;
  LiveChoice choice_;
  bool stale_ = true;
  Panel loss_, heads_, layers_, gap_, captured_, gradient_, domain_, speed_;
  QLabel* trouble_;
  QWidget* side_;  ///< the column beside the losses; hidden while it would be empty
  QComboBox *x_axis_, *smoothing_, *domains_;
  QToolButton *log_x_, *log_y_;
};

}  // namespace saccade::ui
