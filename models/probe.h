#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/host_copies.h"
#include "models/counterfactual.h"

namespace saccade {

/// Positions that count as near a query, its own included: what lies farther back is in the statistic outside_256.
inline constexpr int64_t kNear = 256;

/// Per layer and head numbers of one forward pass: of each sequence averaged over its queries, then the mean of the sequences.
struct HeadStatistic {
  /// entropy, entropy_normalized (of the distribution used; Top-1 Element: of the soft one); distance (tokens back, weighted)
  /// and outside_256 (share of reads beyond the last 256 positions); for chunks captured_mass, margin, chunk_distance,
  /// usage_entropy (of how often each chunk is chosen) and dead_chunks (share of the chunks that some query could choose and none did);
  /// churn (share of the queries that choose otherwise than at the probe before); for Mamba skip, D of the head: the weight of a token's
  /// own input beside what the recurrence reads, which the other statistics and the map `weights` are of.
  std::string name;
  std::string unit;  ///< nats, 1, tokens, chunks …
  int64_t layer = 0;
  std::vector<double> heads;  ///< one value a head; NaN where undefined, which a mean leaves out
  /// Of how many sequences each value is the mean; empty: one.
  std::vector<int64_t> counts = {};
};
/// Of one pass over several sequences; [sequence][head], of each sequence what it says alone.
HeadStatistic mean_of_sequences(const std::string& name, const std::string& unit, int64_t layer,
                                const std::vector<std::vector<double>>& sequences);

/// What a captured map holds. H heads, T queries, N chunks or splits.
enum class MapKind {
  weights,        ///< [H, T, T]  where each query read from, zero above the diagonal; of any sign in recurrences
  soft_weights,   ///< [H, T, T]  the softmax behind one-hot weights (Top-1 Element)
  selected,       ///< [H, T] or [H, T, k]  elements or chunks chosen by each query; −1: none
  score,          ///< [H, T, N]  of every candidate chunk; −inf: no candidate
  captured_mass,  ///< [H, T]  share of the full softmax's mass that the choice kept; NaN: no choice
  margin,         ///< [H, T]  score of what was chosen minus the best that was not; NaN: no choice
  maxsim,         ///< [N, N]  similarity of a split to each earlier one (Avey's ranker)
  chosen,         ///< [N, k]  earlier splits chosen for a split; −1: none
  split_weights,  ///< [N, k]  what the chosen splits are weighted with
};
/// Its name in capture files, in identifiers of figures and on the command line: "soft_weights".
const char* to_string(MapKind kind);
/// Nothing where no kind has that name.
std::optional<MapKind> parse_map_kind(const std::string& name);
/// Kept once for the whole model, under layer −1: maxsim, chosen, split_weights.
bool is_of_model(MapKind kind);

/// A map kept for the inspector: one array of one layer (or of the whole model, layer −1) for one sequence.
struct CapturedMap {
  MapKind kind = MapKind::weights;
  int64_t layer = 0;
  std::vector<int64_t> shape;
  std::vector<float> values;

  int64_t bytes() const { return std::accumulate(shape.begin(), shape.end(), int64_t{sizeof(float)}, std::multiplies<>()); }
};

/// What the queries of a layer choose among before they read.
struct Selection {
  enum class Unit { element, chunk, split };
  Unit unit = Unit::element;
  int64_t tokens = 1;  ///< in a candidate; the last one of a sequence may be shorter

  bool operator==(const Selection&) const = default;
};

/// What the queries of a layer chose in a sequence, to be compared from one look at the same text to the next.
struct ChosenSources {
  int64_t layer = 0;  ///< −1: of the whole model
  int64_t heads = 0, queries = 0, per_query = 1;
  std::vector<int32_t> values;  ///< [heads, queries, per_query] elements, chunks or splits; −1: none

  bool operator==(const ChosenSources&) const = default;
};

/// The share of each head's queries that chose another set than before, of those that chose at either time; NaN where none did. Empty where
/// the two are of different sizes.
std::vector<double> churn(const ChosenSources& before, const ChosenSources& now);

class Probe;

/// CPU memory that values of reports may take which are made later; what is more is waited for.
inline constexpr int64_t kMostLateBytes = int64_t{256} << 20;

/// What a pass on a GPU reports, made when the values are there, so that the pass waits for none of them.
class LateReports {
 public:
  LateReports() = default;  ///< none
  explicit LateReports(HostCopies& copies) : copies_(&copies) {}

  bool has_room(const Tensor& tensor) const { return copies_->has_room(HostCopies::bytes_of(tensor)); }
  /// A tensor of the GPU as it is at this place of the pass, on the CPU. It may be read when the reports are made, not before.
  Tensor copy(const Tensor& tensor) { return copies_->begin(tensor); }
  /// Reports are made in the order in which they are added.
  void add(std::function<void(Probe&)> report) { reports_.push_back(std::move(report)); }
  void end_pass() { computed_ = std::exchange(copies_, nullptr)->mark(); }

  /// Once, on any thread, when the pass has ended: waits for the values and hands all reports to `probe`, each of which lets go of its own.
  void make(Probe& probe) {
    computed_.wait();
    for (auto& report : reports_) std::exchange(report, {})(probe);
    reports_.clear();
  }

 private:
  HostCopies* copies_ = nullptr;  ///< while the pass runs
  HostCopies::Mark computed_;
  std::vector<std::function<void(Probe&)>> reports_;
};

/// Handed into a forward pass by whoever wants to look; mixers ask what is wanted and report it. Costs nothing when null.
class Probe {
 public:
  virtual ~Probe() = default;
  virtual bool wants_statistics() const { return false; }
  virtual bool wants_maps() const { return false; }  ///< maps of sequence 0 only
  /// The pass only plans (Device::plan): maps are reported without values, statistics not at all.
  virtual bool plans() const { return false; }
  /// Where reports go that are made later, all of them; null: they are made at once.
  virtual LateReports* late() { return nullptr; }
  /// Tokens of the longest sequence that memory is planned for, which bounds what is looked at together; 0: those of the pass.
  virtual int64_t longest() const { return 0; }
  /// CPU memory, in bytes, that looking at a layer takes and gives back; said where a pass plans.
  virtual void needs_memory(int64_t /*host_bytes*/) {}
  virtual void statistic(HeadStatistic statistic) = 0;
  virtual void map(CapturedMap map) = 0;
  /// Goes with the maps: what the queries of a layer choose among; −1: those of the whole model.
  virtual void selects(int64_t layer, const Selection& selection) = 0;
  /// Goes with the statistics: what was chosen in a sequence of the pass.
  virtual void chose(int64_t /*sequence*/, ChosenSources /*choices*/) {}
  /// What a layer leaves to the next one, x [B, T, D], where layers are blocks.
  virtual void stream(int64_t /*layer*/, const Tensor& /*x*/) {}
  /// What a mixer with `heads` heads, `first` of its layer's heads before them, is to do otherwise; its head then counts from `first`.
  /// Asked by those that can; answered at most once a pass. On the CPU only.
  virtual std::optional<Counterfactual> take(int64_t /*layer*/, Counterfactual::Kind /*kind*/, int64_t /*heads*/, int64_t /*first*/) {
    return {};
  }
};

/// Hands a report to a probe, now or later.
inline void report(Probe& probe, std::function<void(Probe&)> made) {
  if (LateReports* late = probe.late())
    late->add(std::move(made));
  else
    made(probe);
}

/// Collects what is reported.
struct ProbeRecord : Probe {
  bool statistics_wanted = true, maps_wanted = false;
  std::vector<HeadStatistic> statistics;
  std::vector<CapturedMap> maps;
  std::vector<std::vector<ChosenSources>> choices;    ///< by sequence, in the order of layers; empty where nothing is chosen
  std::map<int64_t, Selection> selections;            ///< by layer; nothing where queries read from all there is
  std::optional<Counterfactual> counterfactual = {};  ///< after the pass: nobody could do it
  Probe* whole = nullptr;                             ///< asked instead, where this is the record of a part of a layer
  int64_t first_head = 0;                             ///< of the part
  bool planned = false;
  int64_t longest_planned = 0;     ///< see `longest`
  int64_t host_bytes = 0;          ///< most that a layer takes
  LateReports* reports = nullptr;  ///< see `late`; while the pass runs
  LateReports* late() override { return reports; }
  bool plans() const override { return planned; }
  int64_t longest() const override { return longest_planned; }
  void needs_memory(int64_t bytes) override { host_bytes = std::max(host_bytes, bytes); }
  bool wants_statistics() const override { return statistics_wanted; }
  bool wants_maps() const override { return maps_wanted; }
  void statistic(HeadStatistic s) override { statistics.push_back(std::move(s)); }
  void map(CapturedMap m) override { maps.push_back(std::move(m)); }
  void selects(int64_t layer, const Selection& s) override { selections[layer] = s; }
  void chose(int64_t sequence, ChosenSources c) override {
    choices.resize(std::max(choices.size(), static_cast<size_t>(sequence) + 1));
    choices[static_cast<size_t>(sequence)].push_back(std::move(c));
  }
  std::optional<Counterfactual> take(int64_t layer, Counterfactual::Kind kind, int64_t heads, int64_t first) override {
    if (whole) return whole->take(layer, kind, heads, first_head + first);
    const std::optional<Counterfactual>& c = counterfactual;
    if (!c || c->layer != layer || c->kind != kind || c->head < first || c->head >= first + heads) return {};
    std::optional<Counterfactual> taken = std::exchange(counterfactual, {});
    taken->head -= first;
    return taken;
  }
};

}  // namespace saccade
