#pragma once
#include <QObject>
#include <QString>
#include <atomic>
#include <memory>
#include <vector>

#include "analysis/inspection/head_order.h"
#include "analysis/inspection/text_sources.h"

namespace saccade::ui {

/// What is known of the heads of a sample from all their queries.
struct HeadLists {
  std::vector<HeadScores> scores;
  std::vector<HeadPlace> alike;  ///< in the order HeadOrder::similarity
};
HeadLists head_lists(const Capture& sample, const std::function<bool()>& cancelled = {});

/// The captures of one step of one run, with what is computed from whole samples. Read only; shared between threads.
struct LoadedCaptures {
  QString directory;
  int64_t step = 0;
  std::vector<Capture> samples;
  std::vector<HeadLists> heads;  ///< of every sample; none where maps are so large that they come later
  std::string source = {};       ///< what the helper process was asked for, as JSON; empty: read from the run's captures
  std::vector<std::vector<KnownAnswer>> answers = {};  ///< of every sample; none: of text
  bool cut = false;                                    ///< the text was longer than the model's maps allow, and lost its end
  int64_t left_out = 0;                                ///< tokens of its beginning that it lost for that
  int64_t lost_answers = 0;                            ///< known answers whose place was among them
  int64_t query = -1;                                  ///< to look at first; −1: none before others

  const std::vector<KnownAnswer>& answers_of(const Capture& sample) const {
    return answers.at(static_cast<size_t>(&sample - samples.data()));
  }
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
  /// Of captures whose maps stay in the file, when all of them have been read.
  void scored(std::shared_ptr<const saccade::ui::LoadedCaptures> captures,
              std::shared_ptr<const std::vector<saccade::ui::HeadLists>> heads);
  void failed(const QString& reason);

 private:
  void score(const std::shared_ptr<const LoadedCaptures>& captures, int request, const std::shared_ptr<std::atomic<int>>& latest);

  int request_ = 0;
  std::shared_ptr<std::atomic<int>> latest_;  ///< outlives the loader in its workers
};

}  // namespace saccade::ui
