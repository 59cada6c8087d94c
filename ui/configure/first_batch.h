#pragma once
#include <QStringList>
#include <QThreadPool>
#include <QWidget>
#include <atomic>
#include <vector>

#include "models/config/config.h"
#include "models/corpus/corpus.h"

class QLabel;
class QPushButton;
class QTextEdit;

namespace saccade::ui {

/// The beginning of the first training batch, decoded: what the model will see. Read in a worker thread.
class FirstBatch : public QWidget {
  Q_OBJECT
 public:
  explicit FirstBatch(QWidget* parent = nullptr);
  ~FirstBatch() override;

  void setConfig(const RunConfig& config);

 Q_SIGNALS:
  /// What there is to choose from, once it has been looked up.
  void corporaKnown(const std::vector<saccade::CorpusSummary>& corpora);

 private:
  void findCorpora();
  void offer();
  void decode();
  void showPieces(const QStringList& pieces);

  QThreadPool pool_;
  std::atomic<int> wish_{0};
  std::vector<CorpusSummary> corpora_;
  bool known_ = false;
  RunConfig config_;
  QLabel* note_;
  QPushButton* read_;
  QTextEdit* text_;
};

}  // namespace saccade::ui
