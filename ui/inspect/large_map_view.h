#pragma once
#include <QObject>
#include <QTimer>
#include <memory>
#include <optional>

#include "analysis/inspection/large_map.h"
#include "ui/inspect/capture_loader.h"
#include "ui/latest_job.h"

namespace saccade::ui {

class FigureView;
struct PreparedFigure;

/// Shows maps of captures in a view, whatever their size. Small ones at once; what takes longer is made in a thread. Of those with more
/// than kMostCells cells the view has a picture in blocks, and where one looks closer a finer one of that part follows; single values are
/// read from the capture.
class LargeMapView : public QObject {
  Q_OBJECT
 public:
  LargeMapView(FigureView* view, QObject* parent);
  ~LargeMapView() override;

  struct Wanted {
    std::shared_ptr<const LoadedCaptures> captures;
    size_t sample = 0;
    MapPlace place;
    std::function<Figure(Figure)> finish;                   ///< colours, marks, provenance; of any thread
    std::shared_ptr<const LoadedCaptures> minus = nullptr;  ///< the weights of another run that are taken from those; null: none
    size_t minus_sample = 0;
    MapPlace minus_place = {};
    MapSource source() const;
    bool same_map(const Wanted& other) const;
  };
  void show(Wanted wanted);
  void clear();
  /// Value of a cell where it is known by itself; nothing while it is being read, after which the view tells it again.
  std::optional<float> value(int64_t row, int64_t column);
  /// The same as it is told: "weight 0.125".
  QString words(int64_t row, int64_t column);
  /// Cells in a block of the finest picture that is seen.
  std::array<int64_t, 2> block() const;
  bool busy() const { return job_.busy() || parts_.busy(); }

 Q_SIGNALS:
  void shown();  ///< the figure is in the view, or a finer picture of it
  void failed(const QString& reason);

 private:
  struct Made {
    int request = 0;
    std::shared_ptr<const PreparedFigure> figure;
    std::shared_ptr<MapPyramid> pyramid;  ///< of a large map
    Wanted wanted;
    QString problem;
  };
  struct Part {
    int request = 0;
    std::shared_ptr<const PreparedFigure> figure;
  };
  struct Rows {
    int request = 0;
    int64_t first = 0, columns = 0;
    std::vector<float> values;
    QString problem;
  };
  static Made make(int request, const Wanted& wanted, const Made& before, const std::function<bool()>& cancelled);
  void take(const Made& made);
  void lookCloser();
  void look(std::shared_ptr<const PreparedFigure> detail);

  FigureView* view_;
  int request_ = 0;
  std::shared_ptr<std::atomic<int>> latest_ = std::make_shared<std::atomic<int>>(0);
  Made made_;
  std::shared_ptr<const PreparedFigure> detail_;
  Rows rows_;
  QTimer rest_;
  LatestJob<Made> job_;
  LatestJob<Part> parts_;
  LatestJob<Rows> reading_;
};

}  // namespace saccade::ui
