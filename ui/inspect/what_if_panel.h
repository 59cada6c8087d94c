#pragma once
#include <QWidget>
#include <optional>

#include "ui/inspect/helper_text.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSpinBox;
class QTableWidget;

namespace saccade::ui {

/// What can be done otherwise for one query of a head.
struct WhatIfOffer {
  Counterfactual::Kind kind = Counterfactual::Kind::force;
  QString question;  ///< "reads chunk", "does not see position"
  int least = 0, most = 0, proposed = 0;
};

/// What the model predicts behind a query, and what that becomes when it reads something else.
class WhatIfPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WhatIfPanel(QWidget* parent = nullptr);

  void setMessage(const QString& text);  ///< which checkpoint answers, or why none does
  void setPredictions(const std::optional<ShownPredictions>& predictions);
  void setOffers(std::vector<WhatIfOffer> offers);
  /// The one that is chosen among them; null: there is none.
  const WhatIfOffer* offer() const;
  void setChange(const ShownChange& change, int query);
  void clearChange();
  bool changed() const { return change_.has_value(); }
  int source() const;
  void setSource(int source);  ///< moved into what is offered
  void moveSource(int by) { setSource(source() + by); }
  void tryIt();
  void setBusy(bool busy);

 Q_SIGNALS:
  void tryRequested(int source);
  void dropRequested();

 private:
  void fillTable();
  void makeTable();

  void showOffer();

  QLabel *message_, *result_, *mean_;
  QComboBox* question_;
  QTableWidget* table_;
  QSpinBox* source_;
  QPushButton *try_, *drop_;
  std::optional<ShownPredictions> predictions_;
  std::vector<WhatIfOffer> offers_;
  std::optional<ShownChange> change_;
};

}  // namespace saccade::ui
