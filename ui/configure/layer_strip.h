#pragma once
#include <QColor>
#include <QStringList>
#include <QWidget>

namespace saccade::ui {

/// The layers of a model in their order, first to last, each in the colour of its block.
class LayerStrip : public QWidget {
  Q_OBJECT
 public:
  explicit LayerStrip(QWidget* parent = nullptr);
  /// `order`: the block of every layer; colours and titles are those of the blocks.
  void setLayers(const std::vector<size_t>& order, const QList<QColor>& colours, const QStringList& titles);
  void setCurrent(int block);  ///< its layers stand out
  QSize sizeHint() const override { return {200, 30}; }
  QSize minimumSizeHint() const override { return {60, 30}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF cell(size_t layer) const;

  std::vector<size_t> order_;
  QList<QColor> colours_;
  QStringList titles_;
  int current_ = -1;
};

}  // namespace saccade::ui
