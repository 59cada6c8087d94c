#pragma once
#include <QList>
#include <QObject>
#include <QPointer>
#include <QTimer>

namespace saccade::ui {

class FigureView;

/// Keeps the plot areas of several views equally large and in line: what stands at one x (and y) of one axis stands so in all of them, also
/// where one view is smaller than another.
class AlignedViews : public QObject {
  Q_OBJECT
 public:
  explicit AlignedViews(QObject* parent);
  /// These and no others; those that leave have the room again that they need.
  void setViews(const QList<FigureView*>& views);

 private:
  void align();

  QList<QPointer<FigureView>> views_;
  QTimer soon_;
};

}  // namespace saccade::ui
