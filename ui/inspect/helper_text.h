#pragma once
#include <QObject>
#include <memory>
#include <optional>

#include "models/counterfactual.h"
#include "ui/inspect/capture_loader.h"
#include "ui/inspect/inspection_client.h"

namespace saccade::ui {

/// A token that may come next, before and after a change.
struct ShownPrediction {
  QString piece;
  double logit = 0, probability = 0;
};
struct ShownPredictions {
  std::vector<ShownPrediction> top;
  std::optional<ShownPrediction> target;  ///< the token that follows
  std::optional<ShownPrediction> answer;  ///< what is to be answered, where that does not follow
};
struct ShownChange {
  Counterfactual change;
  std::vector<double> losses;  ///< of every target
  int changed_from = -1;
  double mean_change = 0;
  int mean_over = 0;  ///< queries
  double loss = 0;    ///< of the query without the change, from the same pass as `losses`; NaN where it has none
  ShownPredictions before, after;
};

/// The text that the helper process has read, and what it is asked about it.
class HelperText : public QObject {
  Q_OBJECT
 public:
  explicit HelperText(QObject* parent);
  InspectionClient* client() const { return client_; }

  /// Has a checkpoint read a text; `source`: parameters of the method "text". All its maps come with `loaded` where they are `wanted`,
  /// else it is only made ready for questions. Of texts asked for meanwhile the last one counts.
  void read(const QString& run, qint64 checkpoint, const nlohmann::json& source, bool wanted);
  void askPredictions(int query);
  void askChange(const Counterfactual& change, int query);
  void forget() { client_->forget(); }

 Q_SIGNALS:
  void loaded(std::shared_ptr<const saccade::ui::LoadedCaptures> captures);
  void predicted(int query, const saccade::ui::ShownPredictions& predictions);
  void changed(const saccade::ui::ShownChange& change);

 private:
  struct Reading;
  static void complete(Reading& reading);
  InspectionClient::Digest digestText(const std::shared_ptr<Reading>& reading);
  void askMaps(const std::shared_ptr<Reading>& reading);

  InspectionClient* client_;
};

}  // namespace saccade::ui
