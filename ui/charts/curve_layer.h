#pragma once
#include <QImage>
#include <QObject>
#include <atomic>
#include <memory>
#include <optional>

#include "ui/charts/prepared_figure.h"

namespace saccade::ui {

/// The curves of a figure as a picture, drawn in a worker thread when they are many. Until a new one is there, the last is moved and scaled
/// to the place it belongs to. Of a figure in which few curves changed, only those are drawn.
class CurveLayer : public QObject {
  Q_OBJECT
 public:
  struct Job {
    std::shared_ptr<const PreparedFigure> figure;
    Plane plane;
    QSize size;  ///< pixels
    double ratio = 1, unit = 1;
    bool dark = false;
    QColor ground;
  };

  explicit CurveLayer(QObject* parent = nullptr);
  ~CurveLayer() override;

  /// What is to be seen; drawn at once when that is quick.
  void show(const Job& job);
  void paint(QPainter& painter, const Plane& plane) const;
  bool busy() const { return running_ || waiting_; }
  void clear();

 Q_SIGNALS:
  void ready();

 private:
  struct Picture;
  void start();
  static std::shared_ptr<const Picture> draw(const Job& job, const std::shared_ptr<const Picture>& last);

  std::shared_ptr<const Picture> picture_;
  std::optional<Job> waiting_;
  bool running_ = false;
  int generation_ = 0;
  std::shared_ptr<std::atomic<bool>> alive_;
};

}  // namespace saccade::ui
