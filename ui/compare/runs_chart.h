#pragma once
#include <QWidget>
#include <functional>
#include <memory>

#include "ui/charts/prepared_figure.h"
#include "ui/latest_job.h"
#include "ui/shown_runs.h"

namespace saccade::ui {

class Card;
class FigureView;
class Session;

/// A card with a chart of the shown runs, made in a thread while it is looked at.
class RunsChart : public QWidget {
  Q_OBJECT
 public:
  /// Makes the figure, in another thread.
  using Make = std::function<Figure(const ShownRuns&)>;
  /// `maker` is asked in the window's thread for what makes the figure as things are chosen now. `empty`: what is said where nothing is to
  /// be drawn.
  RunsChart(Session& session, const QString& title, const QString& subtitle, const QString& empty, std::function<Make()> maker,
            QWidget* parent);

  Card& card() { return *card_; }
  FigureView& view() { return *view_; }
  void setEmptyText(const QString& text) { empty_ = text; }  ///< with the next figure
  void refresh() { make(true); }                             ///< something else was chosen

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void make(bool urgent);

  Session& session_;
  std::function<Make()> maker_;
  QString empty_;
  FigureView* view_;
  Card* card_;
  LatestJob<std::shared_ptr<const PreparedFigure>> job_;
  bool stale_ = true;
};

}  // namespace saccade::ui
