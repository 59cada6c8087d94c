#pragma once
#include <QWidget>

#include "analysis/figures/figure.h"
#include "analysis/figures/reads.h"

class QFormLayout;
class QLabel;
class QPlainTextEdit;

namespace saccade::ui {

class Card;
class FigureView;

/// One query in numbers: candidate scores, what was chosen and its text, how far and how widely it read, what came next.
class QueryPanel : public QWidget {
  Q_OBJECT
 public:
  explicit QueryPanel(QWidget* parent = nullptr);

  /// `chosen_text`: text of the chosen chunk or splits; `unit`: "chunk", "split" or "element"; `provenance`: of the figure.
  void show(const Capture& capture, int query, const Reads& reads, const QString& unit, const QString& chosen_text,
            const std::vector<std::string>& provenance);
  void clear();
  FigureView* scores() const { return scores_; }

 private:
  QLabel* addRow(const QString& name, const QString& help);
  void setRow(QLabel* value, const QString& text);  ///< empty: the row is hidden

  FigureView* scores_;
  Card* scores_card_;
  QFormLayout* form_;
  QLabel *chosen_, *margin_, *captured_, *entropy_, *outside_, *median_, *distance90_, *next_;
  QPlainTextEdit* text_;
};

/// "“the”": a token for a sentence, line breaks as signs.
QString quoted(const std::string& piece);

}  // namespace saccade::ui
