// Top-1 Chunk Selection, "base capabilities" (arXiv:2505.18522) section 5 and appendix D.
//
//   exact:  r(t) = argmax_{c < c(t)} logsumexp_{j in c} s_tj      approx: r(t) = argmax_{c < c(t)} q_t · mean_{j in c} k_j
//   o_t = softmax attention over chunk r(t) and, causally, over the query's own chunk c(t), one softmax for both
#include "kernels/ops/top1_chunk/top1_chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/ops/top1_chunk/top1_chunk_decoding.h"
#include "models/architectures/registry.h"
#include "models/layers/head_probe.h"
#include "models/layers/score_heads.h"

namespace saccade {
namespace {

struct Settings : ScoreSettings {
  Settings() : ScoreSettings("rms") {}
  int64_t chunk = 128;
  int64_t top_k = 1;
  bool share_selection = false;
  std::string selection = "exact";
};

const Schema<Settings> schema{
    field<Settings>("chunk", &Settings::chunk, {1, 65536}, "Keys in a chunk, usually 16 to 1024.", "arXiv:2505.18522, section 5.1.1"),
    choice_field<Settings>("selection", &Settings::selection, {"exact", "approx", "oracle-recent", "random"},
                           "How the remote chunk is selected: by its mass, by its mean key, or a control.",
                           "arXiv:2505.18522, section 5.1.2, appendix D"),
    field<Settings>("top_k", &Settings::top_k, {1, 64}, "Remote chunks a query reads; 1 is the paper."),
    field<Settings>("share_selection", &Settings::share_selection, "All heads take the chunk with the greatest sum of scores."),
    qk_norm_field<Settings>(),
    temperature_field<Settings>(),
};

ChunkOptions chunk_options(const Settings& s, int64_t layer) {
  ChunkOptions options;
  options.chunk = s.chunk;
  options.top_k = s.top_k;
  options.share_selection = s.share_selection;
  options.selection = parse_chunk_selection(s.selection);
  options.seed = static_cast<uint64_t>(layer);
  return options;
}

ChunkReported reported(const Probe* probe) {
  if (!probe) return ChunkReported::nothing;
  return probe->wants_maps() ? ChunkReported::scores : ChunkReported::numbers;
}

struct ChunkCache : HeadCache {
  explicit ChunkCache(HeadCache heads) : HeadCache(std::move(heads)) {}
  Tensor means;  ///< [B, capacity / chunk, H, d] mean keys of complete chunks; empty unless selection goes by them

  void each(const std::function<void(Tensor&, Kept)>& f) override {
    HeadCache::each(f);
    f(means, Kept::tokens);
  }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }

  /// Those of the first n tokens of one sequence; empty where there are none or sequences lie apart.
  Tensor means_of(int64_t n, int64_t chunk) const {
    return means && means.dim(0) == 1 && n >= chunk ? rows(means, 0, n / chunk) : Tensor();
  }
};

class Top1ChunkMixer : public Mixer {
 public:
  Top1ChunkMixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : heads_(shape, settings, make, layer), options_(chunk_options(settings, layer)) {}

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const override {
    const auto [q, k, v] = heads_(tape, x, pass);
    ChunkOptions options = options_;
    if (const auto c = pass.take(heads_.layer(), Counterfactual::Kind::force, v.dim(2))) options.forced = {c->head, c->query, c->source};
    const Top1Chunk result = top1_chunk(tape, q, k, v, heads_.score(), options, reported(pass.probe));
    if (pass.probe) report(tape, q, k, result, *pass.probe);
    return heads_.output(tape, result.o, pass);
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    auto cache = std::make_unique<ChunkCache>(heads_.begin(arena, dtype, batch, capacity));
    const Tensor& k = cache->k;
    if (keeps_mean_keys(options_)) cache->means = arena.allocate({k.dim(0), capacity / options_.chunk, k.dim(2), k.dim(3)}, dtype);
    return cache;
  }

  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const override {
    ChunkCache& cache = dynamic_cast<ChunkCache&>(state);
    const auto [q, k, v] = heads_.extend(tape, x, pass, cache);
    if (cache.means) extend_mean_keys(tape, cache.k, cache.means, options_, pass.position, x.dim(1));
    const bool prompt = pass.position.first == 0 && !pass.last_only;
    const Tensor o =
        prompt ? top1_chunk(tape, q, k, v, heads_.score(), options_, ChunkReported::nothing, cache.means_of(x.dim(1), options_.chunk)).o
               : cached_top1_chunk(tape, q, cache.k, cache.v, cache.means, heads_.score(), options_, pass.queries(x.dim(1))).o;
    return heads_.output(tape, o, pass);
  }

  bool norms_input() const override { return true; }

  double state_values_per_token() const override {
    const double kept = static_cast<double>(heads_.kept_per_token());
    const bool mean_keys = options_.selection == ChunkSelection::approx;
    return mean_keys ? kept + kept / 2 / static_cast<double>(options_.chunk) : kept;
  }

 private:
  void report(Tape& tape, const Tensor& q, const Tensor& k, const Top1Chunk& result, Probe& probe) const {
    HeadProbe heads(probe, heads_.layer());
    const auto weights = [&](const Sequences& s) { return top1_chunk_weights(tape, q, k, result, heads_.score(), options_, s); };
    if (heads.wants_statistics()) {
      heads.entropy(result.entropy);
      heads.reads(tape, result.lse.shape(), weights);
      report_selection(heads, result);
      heads.chose(result.selected);
    }
    if (heads.wants_maps()) {
      heads.selects({Selection::Unit::chunk, options_.chunk});
      heads.map(MapKind::weights, weights(0));
      heads.map_of_first(MapKind::selected, result.selected);
      heads.map_of_first(MapKind::score, result.report.score);
      heads.map_of_first(MapKind::captured_mass, result.report.captured_mass);
      heads.map_of_first(MapKind::margin, result.report.margin);
    }
  }

  /// Over the queries that have a remote chunk: captured mass, margin (where there was a choice), distance, and how evenly
  /// the chunks are used, and which share of them by no query.
  void report_selection(HeadProbe& heads, const Top1Chunk& result) const {
    if (heads.plans()) return;
    constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
    const Shape& bht = result.lse.shape();
    const std::vector<double> selected = to_doubles(result.selected), mass = to_doubles(result.report.captured_mass),
                              margin = to_doubles(result.report.margin);
    const auto query = [&](int64_t b, int64_t h, int64_t t) { return static_cast<size_t>((b * bht[1] + h) * bht[2] + t); };
    const auto choices = [&](size_t i) {
      return std::span(selected).subspan(i * static_cast<size_t>(options_.top_k), static_cast<size_t>(options_.top_k));
    };

    heads.mean("captured_mass", "1", bht, [&](int64_t b, int64_t h, int64_t t) {
      const size_t i = query(b, h, t);
      return choices(i)[0] < 0 ? nothing : mass[i];
    });
    heads.mean("margin", "nats", bht, [&](int64_t b, int64_t h, int64_t t) {
      const double m = margin[query(b, h, t)];
      return std::isfinite(m) ? m : nothing;
    });
    heads.mean("chunk_distance", "chunks", bht, [&](int64_t b, int64_t h, int64_t t) {
      double sum = 0;
      int64_t count = 0;
      for (double c : choices(query(b, h, t)))
        if (c >= 0) sum += static_cast<double>(t / options_.chunk) - c, ++count;
      return count ? sum / static_cast<double>(count) : nothing;
    });
    const auto candidates = static_cast<size_t>((bht[2] - 1) / options_.chunk);  // of the last query, which has most
    std::vector<std::vector<double>> usage(static_cast<size_t>(bht[0])), dead(usage);
    for (int64_t b = 0; b < bht[0]; ++b)
      for (int64_t h = 0; h < bht[1]; ++h) {
        std::vector<double> counts(candidates);
        for (int64_t t = 0; t < bht[2]; ++t)
          for (double c : choices(query(b, h, t)))
            if (c >= 0) ++counts[static_cast<size_t>(c)];
        const auto unused = static_cast<double>(std::count(counts.begin(), counts.end(), 0.0));
        usage[static_cast<size_t>(b)].push_back(entropy_of(counts));
        dead[static_cast<size_t>(b)].push_back(unused / static_cast<double>(candidates));  // NaN without candidates
      }
    heads.sequences("usage_entropy", "nats", usage);
    heads.sequences("dead_chunks", "1", dead);
  }

  static double entropy_of(const std::vector<double>& counts) {
    double total = 0, sum = 0;
    for (double n : counts) total += n;
    if (total == 0) return std::numeric_limits<double>::quiet_NaN();
    for (double n : counts)
      if (n > 0) sum -= n / total * std::log(n / total);
    return sum;
  }

  ScoreHeads heads_;
  ChunkOptions options_;
};

void check(const ModelShape& shape, const nlohmann::json& values, const std::string& pointer) {
  const int64_t chunk = values.at("chunk");
  if (chunk > shape.sequence_length)
    throw UsageError(pointer + "/chunk is " + std::to_string(chunk) + "; expected at most the sequence length, " +
                     std::to_string(shape.sequence_length));
}

std::string variant(const nlohmann::json& values) {
  const Settings s = schema.read(values, "");
  std::string words = s.selection;
  if (s.top_k > 1) add_words(words, "top " + std::to_string(s.top_k));
  if (s.share_selection) add_words(words, "shared");
  add_words(words, score_variant(s, Settings()));
  return words;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "top1_chunk",
    .title = "Top-1 Chunk",
    .paper = "arXiv:2505.18522, section 5 and appendix D",
    .settings = schema.settings(),
    .takes_block_inputs = true,
    .variant = variant,
    .check = check,
    .make_mixer = maker_of<Top1ChunkMixer>(schema),
}};

}  // namespace
}  // namespace saccade
