#pragma once
#include <QColor>
#include <QListWidget>

namespace saccade::ui {

/// Groups of layers as blocks, one below the other; dragging one moves it.
class LayerList : public QListWidget {
  Q_OBJECT
 public:
  struct Block {
    QString title, words, problem;  ///< "3 × Gated DeltaNet", "heads 2", why it cannot be
    QColor colour;
  };
  explicit LayerList(QWidget* parent = nullptr);
  void setBlocks(const QList<Block>& blocks);
  QSize sizeHint() const override;

 Q_SIGNALS:
  void dragged(int from, int to);

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  int dragged_ = -1;
};

}  // namespace saccade::ui
