#pragma once
#include <QWidget>

#include "analysis/figures/figure.h"
#include "analysis/figures/reads.h"
#include "analysis/inspection/known_answers.h"

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

  /// `of_answers`: losses are of what a task asks, which need not follow in the text. `chosen_text`: text of the chosen chunk or splits;
  /// `unit`: "chunk", "split" or "element"; `provenance`: of the figure.
  void show(const Capture& capture, int query, bool of_answers, const Reads& reads, const QString& unit, const QString& chosen_text,
            const std::vector<std::string>& provenance);
  /// What the query, of so many positions, reads of what it is to predict; nothing where that is not known. After show().
  void showAnswer(const std::optional<AnswerRead>& answer, int64_t positions);
  void clear();
  FigureView* scores() const { return scores_; }

 private:
  QLabel* addRow(const QString& name, const QString& help);
  void setRow(QLabel* value, const QString& text);  ///< empty: the row is hidden

  FigureView* scores_;
  Card* scores_card_;
  QFormLayout* form_;
  QLabel *chosen_, *margin_, *captured_, *entropy_, *outside_, *median_, *distance90_, *answer_, *next_, *asked_;
  QPlainTextEdit* text_;
};

/// "“the”": a token for a sentence, line breaks as signs.
QString quoted(const std::string& piece);

}  // namespace saccade::ui
