// Every op of Avey on CUDA against the CPU in double: `avey_check [name]`. Needs a GPU; without one it ends with code 77
// (skipped) and says so.
#include "kernels/ops/avey/contexts.h"
#include "kernels/ops/avey/contextualizer.h"
#include "kernels/ops/avey/decoding.h"
#include "kernels/ops/avey/fuser.h"
#include "kernels/ops/avey/neural_processor.h"
#include "kernels/ops/avey/ranker.h"
#include "tests/gpu/op_table.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;
using avey::ContextLayout;

struct Layout {
  int64_t batch, tokens, split, top_k;
  bool padding;
};
constexpr Layout kLayouts[] = {{2, 1, 4, 2, true},   {1, 3, 4, 1, false}, {2, 12, 3, 2, true},  {3, 17, 3, 2, true},
                               {3, 17, 3, 2, false}, {2, 5, 5, 0, false}, {2, 150, 16, 3, true}};

std::string text(const Layout& l) {
  return std::to_string(l.batch) + "x" + std::to_string(l.tokens) + "/" + std::to_string(l.split) + " k" + std::to_string(l.top_k) +
         (l.padding ? "" : " masked");
}
ContextLayout layout_of(const Layout& l) { return {l.batch, l.tokens, l.split, l.top_k, l.padding}; }

Input chosen_splits(const Layout& l) {
  const int64_t N = layout_of(l).splits();
  Input chosen{Input::Kind::integer, {l.batch, N, l.top_k}, {}};
  for (int64_t b = 0; b < l.batch; ++b)
    for (int64_t i = 0; i < N; ++i)
      for (int64_t s = 0; s < l.top_k; ++s) {
        const int64_t count = std::min(i, l.top_k);
        chosen.values.push_back(s < count ? static_cast<double>((b + i) % 2 ? s : i - count + s) : -1);
      }
  return chosen;
}

void add_ranks(std::vector<OpCase>& cases) {
  struct Rank {
    int64_t batch, tokens, width, split, top_k;
    avey::RankerQuery query;
    avey::WeightReference reference;
    bool weighting;
  };
  using avey::RankerQuery, avey::WeightReference;
  const Rank ranks[] = {{2, 24, 8, 4, 2, RankerQuery::split, WeightReference::max, true},
                        {3, 61, 20, 7, 3, RankerQuery::causal, WeightReference::max, true},
                        {2, 40, 33, 8, 3, RankerQuery::split, WeightReference::first, true},
                        {1, 200, 64, 16, 7, RankerQuery::split, WeightReference::max, true},
                        {2, 30, 16, 4, 2, RankerQuery::causal, WeightReference::max, false},
                        {2, 3, 16, 4, 2, RankerQuery::split, WeightReference::max, true},
                        {1, 1030, 12, 64, 4, RankerQuery::causal, WeightReference::first, true}};
  for (const Rank& r : ranks) {
    // A common direction keeps scores positive, so that weights stay near one.
    Input x = activation({r.batch, r.tokens, r.width}, 7);
    for (double& v : x.values) v += 1.5;
    cases.push_back({"rank " + std::to_string(r.tokens) + "/" + std::to_string(r.split) + " k" + std::to_string(r.top_k) +
                         (r.query == RankerQuery::causal ? " causal" : "") + (r.reference == WeightReference::first ? " first" : "") +
                         (r.weighting ? "" : " plain"),
                     {x},
                     [r](Tape& t, const Tensors& in) {
                       const avey::Ranked ranked = avey::rank(t, in[0], {r.split, r.top_k, r.weighting, r.reference, r.query});
                       return Tensors{ranked.weights, ranked.chosen, ranked.maxsim};
                     }});
  }
}

void add_contexts(std::vector<OpCase>& cases) {
  for (const Layout& l : kLayouts) {
    const ContextLayout layout = layout_of(l);
    OpCase c{"contexts " + text(l), {activation({l.batch, l.tokens, 10}, 1)}, {}};
    if (l.top_k) c.inputs.insert(c.inputs.end(), {parameter({l.batch, layout.splits(), l.top_k}, 2), chosen_splits(l)});
    c.op = [layout](Tape& t, const Tensors& x) {
      return Tensors{avey::contexts(t, x[0], layout.top_k ? avey::Ranked{x[2], x[1], {}} : avey::Ranked{}, layout)};
    };
    cases.push_back(c);
    cases.push_back({"to_rectangles " + text(l), {activation({layout.rows(), 6}, 3)}, [layout](Tape& t, const Tensors& x) {
                       return Tensors{avey::to_rectangles(t, x[0], layout)};
                     }});
    for (bool own_only : {false, true})
      cases.push_back(
          {"from_rectangles " + text(l) + (own_only ? " own" : ""),
           {activation({l.batch * layout.splits(), layout.context_width(), 6}, 4)},
           [layout, own_only](Tape& t, const Tensors& x) { return Tensors{avey::from_rectangles(t, x[0], layout, own_only)}; }});
  }
}

void add_contextualizers(std::vector<OpCase>& cases) {
  for (const Layout& l : kLayouts)
    for (bool dynamic : {true, false})
      for (bool own_only : {false, true}) {
        const ContextLayout layout = layout_of(l);
        const int64_t C = layout.context_width();
        cases.push_back(
            {"contextualize " + text(l) + (dynamic ? "" : " static") + (own_only ? " own" : ""),
             {activation({layout.rows(), 14}, 5), parameter({C, C}, 6)},
             [=](Tape& t, const Tensors& x) { return Tensors{avey::contextualize(t, x[0], x[1], layout, dynamic, own_only)}; }});
      }
  // In tiles of 128: one, several, cut by C, r or the padding's end, with a partial last split.
  const std::pair<Layout, int64_t> tiled[] = {{{2, 150, 16, 3, true}, 24},
                                              {{3, 100, 16, 3, false}, 40},
                                              {{2, 520, 64, 3, true}, 136},
                                              {{3, 600, 64, 7, true}, 72},
                                              {{2, 300, 40, 4, true}, 200},
                                              {{1, 600, 64, 7, false}, 16},
                                              {{2, 264, 264, 0, false}, 48},
                                              {{20, 128, 32, 3, true}, 256},
                                              // One tile and a bit more than that, in columns or rows.
                                              {{2, 150, 24, 3, true}, 200},
                                              {{3, 128, 32, 3, false}, 64},
                                              {{2, 160, 32, 3, true}, 256},
                                              {{2, 100, 8, 2, true}, 8},
                                              {{1, 100, 16, 3, true}, 264},
                                              // In runs of 32 rows.
                                              {{3, 512, 64, 7, true}, 72},
                                              {{2, 320, 64, 2, true}, 136},
                                              {{2, 256, 64, 7, false}, 200},
                                              {{2, 640, 128, 3, false}, 64},
                                              {{2, 256, 32, 3, false}, 72},
                                              {{3, 288, 32, 4, true}, 136},
                                              {{2, 288, 96, 2, true}, 72},
                                              // As in models that users train.
                                              {{2, 512, 64, 7, true}, 256},
                                              {{10, 512, 64, 7, true}, 256}};
  for (const auto& [l, r] : tiled)
    for (bool own_only : {false, true}) {
      const ContextLayout layout = layout_of(l);
      const int64_t C = layout.context_width();
      cases.push_back({"contextualize " + text(l) + " r" + std::to_string(r) + (own_only ? " own" : ""),
                       {activation({layout.rows(), r}, 5), parameter({C, C}, 6)},
                       [=](Tape& t, const Tensors& x) { return Tensors{avey::contextualize(t, x[0], x[1], layout, true, own_only)}; }});
    }
}

struct FeedForward {
  int64_t rows, width, m, tail, gated_rows;
};
constexpr FeedForward kFeedForwards[] = {{70, 13, 40, 22, 70},      {301, 24, 96, 48, 123},   {33, 8, 16, 16, 20},
                                         {700, 136, 544, 272, 700}, {333, 64, 256, 128, 200}, {260, 192, 768, 768, 260}};

void add_feed_forwards(std::vector<OpCase>& cases) {
  for (Activation f : {Activation::none, Activation::gelu, Activation::relu, Activation::relu2, Activation::silu})
    for (const FeedForward& size : kFeedForwards) {
      const int64_t rows = size.rows, width = size.width, m = size.m, tail = size.tail, Q = size.gated_rows;
      const std::string name = std::to_string(rows) + "x" + std::to_string(m) + " f" + std::to_string(static_cast<int>(f)) +
                               (Q < rows ? " own" : "") + (tail == m ? " tail" : "");
      // Next to relu's kink rounding decides the slope; without a bias the sign of the product is sure.
      const double bias = f == Activation::relu ? 0 : 1;
      const auto enriched = [=](Tape& t, const Tensor& x, const Tensor& w, const Tensor& b) {
        return avey::enrich(t, x, w, b, f, tail, Q);
      };
      cases.push_back({"enrich " + name,
                       {activation({rows, width}, 1), parameter({m, width}, 2, 0.4), parameter({m}, 3, bias)},
                       [=](Tape& t, const Tensors& x) {
                         const avey::Enriched z = enriched(t, x[0], x[1], x[2]);
                         return z.h ? Tensors{z.r, z.l, z.h} : Tensors{z.r, z.l};
                       }});
      const int64_t in = tail / 2 + (m - tail);
      std::vector<Input> inputs{activation({rows, width}, 4), activation({Q, tail / 2}, 5), activation({Q, tail / 2}, 6),
                                parameter({width, in}, 7, 0.3), parameter({width}, 8)};
      if (m > tail) inputs.push_back(activation({Q, m - tail}, 9));
      cases.push_back({"fuse " + name, inputs, [=](Tape& t, const Tensors& x) {
                         const avey::Enriched z{x[1], x[2], x.size() > 5 ? x[5] : Tensor()};
                         return Tensors{avey::fuse(t, x[0], x[1], z, x[3], x[4], f)};
                       }});
    }
}

/// A layer without its norm: gradients take f' with them on their way.
void add_processors(std::vector<OpCase>& cases) {
  for (Activation f : {Activation::none, Activation::relu2, Activation::silu})
    for (const auto& [l, width] : {std::pair<Layout, int64_t>{{2, 150, 16, 3, true}, 64},
                                   {{3, 100, 16, 3, false}, 32},
                                   {{2, 12, 3, 2, true}, 10},
                                   {{1, 300, 40, 4, true}, 32},
                                   {{2, 192, 64, 2, true}, 128},
                                   {{3, 160, 32, 3, true}, 256},
                                   {{2, 192, 64, 2, true}, 256},
                                   {{2, 512, 64, 7, true}, 128},
                                   {{2, 512, 64, 7, true}, 256}})
      for (const auto& [own_only, g] : {std::pair(false, Activation::none), {true, Activation::none}, {false, Activation::silu}}) {
        const ContextLayout layout = layout_of(l);
        const int64_t C = layout.context_width(), D = width, m = 4 * D, tail = 2 * D;
        cases.push_back(
            {"processor " + text(l) + " f" + std::to_string(static_cast<int>(f)) + (own_only ? " own" : "") +
                 (g == Activation::none ? "" : " active"),
             {activation({layout.rows(), D}, 1), parameter({m, D}, 2, 0.2), parameter({m}, 3), parameter({C, C}, 4, 0.2),
              parameter({D, D + m - tail}, 5, 0.2), parameter({D}, 6)},
             [=, own_only = own_only, g = g](Tape& t, const Tensors& x) {
               return Tensors{
                   avey::neural_processor(t, x[0], x[0], {x[1], x[2], x[3], x[4], x[5]}, layout, {f, g, tail, true, own_only}).y};
             },
             1.5});  // three ops round to bf16, one after the other
      }
}

struct Decoding {
  int64_t capacity, width, split, top_k;
  std::vector<int64_t> at;  ///< of each sequence: where its tokens begin
  int64_t from, count;
  avey::RankerQuery query = avey::RankerQuery::split;
  avey::WeightReference reference = avey::WeightReference::max;
  bool weighting = true, packed = false;
};

std::string text(const Decoding& d) {
  std::string at;
  for (int64_t place : d.at) at += (at.empty() ? "" : ",") + std::to_string(place);
  return std::to_string(d.width) + "/" + std::to_string(d.split) + " k" + std::to_string(d.top_k) + " at " + at + "+" +
         std::to_string(d.from) + " n " + std::to_string(d.count) + (d.query == avey::RankerQuery::causal ? " causal" : "") +
         (d.reference == avey::WeightReference::first ? " first" : "") + (d.weighting ? "" : " plain") + (d.packed ? " packed" : "");
}

/// Scores that some tokens have given already, then what a step makes of them: choice, weights, context, cleared padding, last rows.
Tensors decoded(Tape& t, const Tensors& in, const Decoding& d) {
  const auto batch = static_cast<int64_t>(d.at.size());
  const Tensor &x = in[0], &scores = in[1];
  const int64_t first = *std::max_element(d.at.begin(), d.at.end());
  const avey::SplitTokens tokens{{first, in[2]}, d.from, d.count};
  const avey::RankerOptions options{d.split, d.top_k, d.weighting, d.reference, d.query};
  const Tensor inverse = avey::inverse_lengths(t, x);
  avey::Ranked ranked;
  if (d.top_k > 0) {
    avey::add_maxsim(t, x, inverse, options, tokens, scores);
    ranked = avey::rank_split(t, scores, options, tokens);
  }
  const avey::SplitContext context{d.split, d.top_k, d.packed, d.split * (d.top_k + 1), tokens};
  const Tensor rows = avey::split_context(t, x, ranked, context), last = avey::rows_of_last(t, rows, context, (d.count + 1) / 2);
  Tensors out{inverse, scores, rows, last};
  if (d.top_k > 0) out.insert(out.end(), {ranked.chosen, ranked.weights});
  if (d.packed || d.top_k == 0) return out;
  const Tensor z = in[3];
  avey::clear_padding(t, z, context);
  out.push_back(z);
  if (z.dim(0) != batch * context.rows) throw std::logic_error("a context of other rows");
  return out;
}

void add_decoding(std::vector<OpCase>& cases) {
  using avey::RankerQuery, avey::WeightReference;
  std::vector<Decoding> all{{40, 8, 4, 2, {0}, 0, 1},
                            {40, 8, 4, 2, {3, 3}, 0, 1},
                            {41, 33, 7, 3, {20, 0, 34, 6, 7}, 0, 1},
                            {41, 33, 7, 3, {20, 0, 33, 5, 7}, 1, 1, RankerQuery::causal},
                            {41, 24, 7, 3, {21, 28, 35}, 0, 1, RankerQuery::causal, WeightReference::first},
                            {60, 16, 8, 3, {40}, 0, 8},
                            {60, 16, 8, 3, {41}, 0, 7, RankerQuery::split, WeightReference::first},
                            {60, 16, 8, 3, {35}, 5, 5, RankerQuery::causal, WeightReference::max, false},
                            {60, 16, 8, 3, {9, 50}, 0, 3, RankerQuery::split, WeightReference::max, false, true},
                            {50, 20, 50, 0, {0, 49, 17}, 0, 1},
                            {2048, 256, 64, 7, {511, 512, 2047, 63, 64, 1100}, 0, 1},
                            {2048, 256, 64, 7, {512, 0, 1984, 2047}, 0, 1, RankerQuery::causal},
                            {1301, 768, 64, 7, {1220, 64}, 0, 22, RankerQuery::split, WeightReference::max, true, true}};
  Decoding many{600, 64, 32, 7, {}, 0, 1};
  for (int64_t b = 0; b < 64; ++b) many.at.push_back((b * 97) % 599);
  all.push_back(many);
  for (const Decoding& d : all) {
    const auto batch = static_cast<int64_t>(d.at.size());
    Input positions{Input::Kind::integer, {batch}, {}};
    for (int64_t place : d.at) positions.values.push_back(static_cast<double>(place));
    Input x = activation({batch, d.capacity, d.width}, 7);
    for (double& v : x.values) v += 0.5;  // as where tokens are ranked above: weights stay near one
    Input scores = parameter({batch, d.capacity / d.split + 1}, 8);
    for (double& v : scores.values) v += 20;
    std::vector<Input> inputs{x, scores, positions};
    if (d.top_k > 0) inputs.push_back(activation({batch * d.split * (d.top_k + 1), 24}, 9));
    cases.push_back({"decode " + text(d), inputs, [d](Tape& t, const Tensors& in) { return decoded(t, in, d); }});
  }
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_ranks(all);
  add_contexts(all);
  add_contextualizers(all);
  add_feed_forwards(all);
  add_processors(all);
  add_decoding(all);
  return all;
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, cases); }
