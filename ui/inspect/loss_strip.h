#pragma once
#include <QWidget>
#include <vector>

namespace saccade::ui {

/// Loss of every query as bars from zero, in the order of the text; with a change, what it makes of them. A click selects a query.
class LossStrip : public QWidget {
  Q_OBJECT
 public:
  explicit LossStrip(QWidget* parent = nullptr);

  void setLosses(std::vector<float> losses);
  void setChanged(std::vector<double> losses);  ///< with the counterfactual, as many; empty: none
  void setQuery(int query);
  QString summary() const;  ///< in words

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void queryClicked(int query);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int queryAt(double x) const;
  double largest() const;
  QString label() const;
  int labelWidth() const;
  void describe();

  std::vector<float> losses_;
  std::vector<double> changed_;
  int query_ = -1;
};

}  // namespace saccade::ui
