#pragma once
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/evaluation/evaluation_pass.h"
#include "models/model.h"
#include "models/training/trainer.h"

namespace saccade {

/// Where a sample stands; every metric carries it, so that the x axis is a choice of the viewer.
struct Position {
  int64_t step = 0;
  int64_t tokens = 0;
  double flops = 0;
  double seconds = 0;
};

/// Where the training loss ceased to be a finite number.
struct LossGap {
  Position at;                                               ///< the first step without one
  bool infinite = false;                                     ///< it was infinite there, else NaN
  double beside = std::numeric_limits<double>::quiet_NaN();  ///< the finite loss before it, else the first one after it; NaN: none yet
};

struct DomainLoss {
  std::string domain;
  bool ood = false;                                                  ///< not among the training domains
  double loss = 0;                                                   ///< nats per token
  double standard_error = std::numeric_limits<double>::quiet_NaN();  ///< of the loss, over sequences (Evaluation); NaN: not known
  double bits_per_byte = std::numeric_limits<double>::quiet_NaN();   ///< Evaluation::bits_per_byte
  std::vector<PositionLoss> by_position = {};                        ///< loss_by_position; empty: not recorded
  double accuracy = std::numeric_limits<double>::quiet_NaN();        ///< Evaluation::accuracy, of a generated task; NaN: not known
};
struct EvaluationRecord {
  Position at;
  std::vector<DomainLoss> losses;
};
struct StatisticsRecord {
  Position at;
  std::vector<HeadStatistic> statistics;
};

/// Memory that a run takes, after it evaluated or probed.
struct MemoryRecord {
  Position at;
  int64_t device_bytes = 0;   ///< on the device it trains on: the most that tensors have taken so far, of which nothing is given back
  int64_t process_bytes = 0;  ///< of the CPU's memory, by the whole process now (resident); 0 where the system does not tell
};

/// What has been trained on of each training domain, where /data/weights set their shares.
struct DomainUse {
  std::string domain;
  int64_t sequences = 0;  ///< given so far
  double epochs = 0;      ///< how often the domain's text has come: more than 1 where it is repeated
};
struct DataRecord {
  Position at;
  std::vector<DomainUse> domains;
};

/// What a task's items gave at a checkpoint (analysis/tasks).
/// A task may have been scored several times at a step, with other options each time: `options` tells those results apart.
struct TaskScoreRecord {
  struct Score {
    std::string metric;
    double value = 0, standard_error = 0;
    int64_t items = 0;
  };
  int64_t step = 0;
  std::string task, metric;  ///< the metric that tables give
  double chance = 0;         ///< what guessing gets
  std::string data_hash, checkpoint_hash;
  std::vector<Score> scores;
  // How it was scored. Records that earlier versions wrote do not say; they are taken for whole results with the usual options.
  std::string options = {};  ///< what is unlike the task's usual options: "limit-100-shots-5"; empty: nothing
  bool partial = false;      ///< not all of the task's items were scored (--limit, --samples)
  int64_t limit = 0;         ///< items that were asked for; 0: as many as the task has
  int64_t shots = 0;         ///< examples before each item
  int64_t max_length = 0;    ///< tokens that the model read at most; 0: any number
};
/// Whether `a` is to be shown before `b`, another result of the same task and step: whole ones come before partial ones, then those with
/// the usual options, then those of more items. No two results with different options are equal in this.
bool is_preferred(const TaskScoreRecord& a, const TaskScoreRecord& b);

/// One captured sample: what the model did with a fixed text at one step.
/// Where the values of maps are kept that are too many for memory.
class StoredMaps {
 public:
  virtual ~StoredMaps() = default;
  /// Rows first … first + count of a map [H, rows, columns]; of any thread. Throws DataError.
  virtual std::vector<float> rows(const CapturedMap& map, int64_t head, int64_t first, int64_t count) const = 0;
};

/// Of a generated task the token that a query is asked for, by query: losses are of these alone. Nothing: of text, every query is asked for
/// the next token.
using AskedTokens = std::optional<std::map<int64_t, int32_t>>;

struct Capture {
  Position at;
  std::string domain;
  int64_t sample = 0;
  std::vector<int32_t> tokens;
  std::vector<std::string> pieces;  ///< what each token shows
  std::vector<float> token_losses;  ///< nats of predicting the next token, or what is `asked`; 0 where nothing is
  std::vector<CapturedMap> maps;
  std::map<int64_t, Selection> selections = {};   ///< by layer, what its queries chose among; −1: in every layer
  std::vector<std::string> layer_mixers = {};     ///< what each layer of a hybrid stack mixes with; empty where one mixer is in all
  std::shared_ptr<const StoredMaps> stored = {};  ///< of maps that have a shape but no values
  AskedTokens asked = {};
};

enum class RunState { created, running, finished, stopped, diverged, failed, crashed };
const char* to_string(RunState state);

}  // namespace saccade
