#pragma once
#include <QList>
#include <QObject>
#include <QPointer>
#include <QTimer>

namespace saccade::ui {

class FigureView;

/// Keeps the plot areas of several views in the same place of each: what stands at one x (and y) of one axis stands so in all of them, as
/// long as the views are of one size.
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
