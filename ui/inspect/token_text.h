#pragma once
#include <QAbstractScrollArea>
#include <optional>
#include <vector>

#include "analysis/figures/reads.h"

namespace saccade::ui {

/// A sample's tokens as flowing text. Background: how much of its weight the query gives a token; bar beneath: the token
/// stands in what was chosen; bar above: it belongs to a known answer; frame: the query itself. A click selects a query.
class TokenText : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit TokenText(QWidget* parent = nullptr);

  void setPieces(const std::vector<std::string>& pieces);
  void setReads(int query, const Reads& reads);  ///< scrolls to the query when it moved
  /// Tokens with a bar above: answers that are known, and where they stand before.
  void setKnown(std::vector<bool> known);
  void clear();

  /// Text of tokens [begin, end) as a person would type it.
  QString text(int64_t begin, int64_t end) const;
  QString summary() const;  ///< what is shown, in words
  QSize sizeHint() const override;
  int textHeight() const { return text_height_; }  ///< of all lines, at the present width

 Q_SIGNALS:
  void queryClicked(int query);
  void textHeightChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  struct Token {
    QString shown, typed;
    QRectF box;
    double advance = 0;
  };
  void measure();
  void arrange();
  void showQuery();
  std::optional<int> tokenAt(const QPointF& viewport_position) const;
  QColor shade(size_t token) const;

  std::vector<Token> tokens_;
  std::vector<double> weights_;
  std::vector<bool> chosen_, known_;
  double largest_ = 0;
  int query_ = -1, text_height_ = 0;
};

}  // namespace saccade::ui
