#pragma once
#include <QObject>
#include <QString>
#include <atomic>
#include <memory>
#include <vector>

#include "analysis/inspection/head_scores.h"
#include "analysis/inspection/text_sources.h"

namespace saccade::ui {

/// The captures of one step of one run, with what is computed from whole samples. Read only; shared between threads.
struct LoadedCaptures {
  QString directory;
  int64_t step = 0;
  std::vector<Capture> samples;
  std::vector<std::vector<HeadScores>> heads;  ///< one list a sample
  std::string source = {};                     ///< what the helper process was asked for, as JSON; empty: read from the run's captures
  std::vector<KnownAnswer> answers = {};       ///< of the only sample, where it is a generated task
  bool cut = false;                            ///< the text was longer than the model's maps allow
};

/// Reads captures in a worker thread. Only the last request is answered.
class CaptureLoader : public QObject {
  Q_OBJECT
 public:
  explicit CaptureLoader(QObject* parent = nullptr);
  ~CaptureLoader() override;

  void load(const QString& directory, int64_t step);
  void cancel();  ///< no answer will come any more

 Q_SIGNALS:
  void loaded(std::shared_ptr<const saccade::ui::LoadedCaptures> captures);
  void failed(const QString& reason);

 private:
  int request_ = 0;
  std::shared_ptr<std::atomic<int>> latest_;  ///< outlives the loader in its workers
};

}  // namespace saccade::ui
