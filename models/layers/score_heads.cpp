#include "models/layers/score_heads.h"

#include <cmath>

#include "kernels/ops/embedding/embedding.h"
#include "kernels/ops/head_projection/next_heads.h"
#include "kernels/ops/heads/heads.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"
#include "models/suggest.h"

namespace saccade {

std::string score_variant(const ScoreSettings& settings, const ScoreSettings& usual) {
  std::string words;
  if (settings.qk_norm != usual.qk_norm) add_words(words, "qk-norm " + settings.qk_norm);
  if (settings.temperature != usual.temperature) add_words(words, "temperature " + nlohmann::json(settings.temperature).dump());
  return words;
}

ScoreHeads::ScoreHeads(const ModelShape& shape, const ScoreSettings& settings, ParameterMaker& make, int64_t layer, Relation relation)
    : shape_(shape), settings_(settings), layer_(layer), relation_(relation) {
  const double d = static_cast<double>(shape.head_width());
  score_.scale = 1.0 / ((settings.qk_norm == "l2" ? 1.0 : std::sqrt(d)) * settings.temperature);
  score_.alibi = shape.position == "alibi" || shape.position == "alibi-released";
  score_.released_alibi = shape.position == "alibi-released";
  time_mix_ = TimeMix(shape, make, layer);
  // Constant keys and queries start at the size that projected ones have: a row of W times a normed x.
  const double table_deviation = kDeviation * std::sqrt(static_cast<double>(shape.width));
  const auto table = [&](const char* name) {
    return make.normal(layer_name(layer, name), {shape.sequence_length, shape.width}, table_deviation);
  };

  if (relation == Relation::query_key) {
    const ParameterMaker::Stack stack(make, {shape.width, shape.width, shape.width}, shape.width);
    query_ = projection(make, "query", kDeviation);
    key_ = projection(make, "key", kDeviation);
    value_ = projection(make, "value", kDeviation);
  } else {
    if (relation == Relation::constant_both)
      query_table_ = table("query_table");
    else
      query_ = projection(make, "query", kDeviation);
    key_table_ = table("key_table");
    value_ = projection(make, "value", kDeviation);
  }
  output_ = projection(make, "output", residual_deviation(shape));
  if (settings.qk_norm == "rms") {
    query_norm_weight_ = make.constant(layer_name(layer, "query_gain"), {shape.head_width()}, 1);
    key_norm_weight_ = make.constant(layer_name(layer, "key_gain"), {shape.head_width()}, 1);
  }
}

ScoreHeads::Projection ScoreHeads::projection(ParameterMaker& make, const std::string& name, double deviation) const {
  Projection p;
  p.weight = make.normal(layer_name(layer_, name), {shape_.width, shape_.width}, deviation);
  if (shape_.biases) p.bias = make.constant(layer_name(layer_, name + "_bias"), {shape_.width}, 0);
  return p;
}

ScoreHeads::Heads ScoreHeads::operator()(Tape& tape, const Tensor& x, Pass& pass, const Tensor& before) const {
  const TokenPosition& position = pass.position;
  if (from_one_input()) {
    const auto [q, k, v] = project_heads(tape, x, head_projection(position));
    return {q, k, v};
  }
  const int64_t length = x.dim(1);
  const std::vector<Tensor> projected = project_all(tape, x, pass, before);
  const Tensor q = side(tape, query_table_, projected[0], length, position), k = side(tape, key_table_, projected[1], length, position);
  return {prepare(tape, q, query_norm_weight_, position), prepare(tape, k, key_norm_weight_, position),
          side(tape, {}, projected[2], length, position)};
}

AttendedHeads ScoreHeads::attend(Tape& tape, const Tensor& x, const ScoreOptions& score, Pass& pass) const {
  const bool want_entropy = pass.probe && pass.probe->wants_statistics();
  if (from_one_input()) return attend_heads(tape, x, head_projection({}), score, want_entropy);
  const auto [q, k, v] = (*this)(tape, x, pass);
  return {{q, k, v}, attention(tape, q, k, v, score, want_entropy)};
}

Tensor ScoreHeads::last_query(Tape& tape, const Tensor& x, const TokenPosition& position) const {
  const TokenPosition last{position.first + x.dim(1) - 1};
  return prepare(tape, side(tape, query_table_, project(tape, last_row(x), {query_})[0], 1, last), query_norm_weight_, last);
}

ScoreHeads::Heads ScoreHeads::with_last_query(Tape& tape, const Tensor& x, const TokenPosition& position) const {
  const int64_t length = x.dim(1);
  const std::vector<Tensor> projected = project(tape, x, {key_, value_});
  const Tensor k = side(tape, key_table_, projected[0], length, position);
  return {last_query(tape, x, position), prepare(tape, k, key_norm_weight_, position), side(tape, {}, projected[1], length, position)};
}

ScoreHeads::Heads ScoreHeads::extend(Tape& tape, const Tensor& input, Pass& pass, HeadCache& cache) const {
  const TokenPosition& position = pass.position;
  const InputNorm norm = pass.take_input_norm();
  if (input.dim(1) == 1 && position.first > 0 && from_one_input()) {
    const Tensor q = project_next_heads(tape, input, head_projection(position), cache.k, cache.v, norm);
    return {q, {}, {}};
  }
  const Tensor x = norm(tape, input);
  const bool only_last = pass.last_only && !time_mix_;
  // The rows of one sequence are neighbours; of a single row only the device may know the place.
  if (x.dim(0) == 1 && x.dim(1) > 1 && from_one_input()) {
    HeadProjection p = head_projection(position);
    if (only_last) p.query = {};
    p.key_rows = cache.rows(cache.k, position.first, x.dim(1)), p.value_rows = cache.rows(cache.v, position.first, x.dim(1));
    const auto [q, k, v] = project_heads(tape, x, p);
    return {only_last ? last_query(tape, x, position) : q, k, v};
  }
  const Heads heads = only_last ? with_last_query(tape, x, position) : (*this)(tape, x, pass, cache.before);
  cache.append(tape, heads.k, heads.v, position);
  if (cache.before) replace_state(tape, cache.before, last_token(tape, x));
  return heads;
}

/// Heads [B or 1, length, H, d] of a projection, or of a table where there is one.
Tensor ScoreHeads::side(Tape& tape, const Tensor& table, const Tensor& projected, int64_t length, const TokenPosition& position) const {
  if (table) return constant(tape, table, length, position);
  return projected.reshape({projected.dim(0), length, shape_.heads, shape_.head_width()});
}

/// W x of those that have a weight, empty for the others, which the relation does not take from the text.
std::vector<Tensor> ScoreHeads::project(Tape& tape, const Tensor& x, const std::vector<Projection>& all) const {
  std::vector<Tensor> weights, projected;
  for (const Projection& p : all)
    if (p.weight) weights.push_back(p.weight);
  const std::vector<Tensor> products = shape_.biases || weights.empty() ? std::vector<Tensor>() : linears(tape, x, weights);
  size_t next = 0;
  for (const Projection& p : all)
    projected.push_back(!p.weight ? Tensor() : shape_.biases ? linear(tape, x, p.weight, p.bias) : products[next++]);
  return projected;
}

/// Queries, keys and values before their norms, each of its own input where the block shifts tokens.
std::vector<Tensor> ScoreHeads::project_all(Tape& tape, const Tensor& x, Pass& pass, const Tensor& before) const {
  if (!time_mix_) return project(tape, x, {query_, key_, value_});
  const TimeMix::Inputs in = time_mix_.inputs(tape, x, before);
  pass.output_gate = in.gate;
  const Tensor v = linear(tape, in.value, value_.weight, value_.bias);
  return {linear(tape, in.query, query_.weight, query_.bias), linear(tape, in.key, key_.weight, key_.bias),
          time_mix_.values(tape, v, in.value, pass)};
}

/// `length` rows of a table, from a position on, as the heads of one sequence that stands for all; of every sequence where each has a
/// position of its own.
Tensor ScoreHeads::constant(Tape& tape, const Tensor& table, int64_t length, const TokenPosition& position) const {
  if (position.first + length > table.dim(0))
    throw UsageError("a sequence of " + std::to_string(position.first + length) + " tokens; the constant keys are trained for " +
                     std::to_string(table.dim(0)));
  const Tensor numbers = position_numbers(tape, length, position);
  return embedding(tape, table, numbers).reshape({numbers.dim(0), length, shape_.heads, shape_.head_width()});
}

Tensor ScoreHeads::prepare(Tape& tape, const Tensor& heads, const Tensor& norm_weight, const TokenPosition& position) const {
  return prepare_heads(tape, heads, norm_weight, options(position));
}

HeadOptions ScoreHeads::options(const TokenPosition& position) const {
  HeadOptions options;
  options.norm = parse_qk_norm(settings_.qk_norm);
  options.rotary_base = shape_.position == "rotary" ? shape_.rotary_base : 0;
  options.position = position;
  return options;
}

/// Of queries and keys that come from the text.
HeadProjection ScoreHeads::head_projection(const TokenPosition& position) const {
  return {query_.weight, key_.weight, value_.weight, query_norm_weight_, key_norm_weight_, shape_.heads, options(position)};
}

Tensor ScoreHeads::output(Tape& tape, const Tensor& o, Pass& pass) const {
  Tensor y = o.reshape({o.dim(0), o.dim(1), shape_.width});
  if (const Tensor gate = std::exchange(pass.output_gate, Tensor())) y = time_mix_.gated_output(tape, y, gate);
  return linear(tape, y, output_.weight, output_.bias, pass.take_residual(y.dim(1)));
}

HeadCache ScoreHeads::begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const {
  if (key_table_ && capacity > key_table_.dim(0))
    throw UsageError("a sequence of " + std::to_string(capacity) + " tokens; the constant keys are trained for " +
                     std::to_string(key_table_.dim(0)));
  HeadCache cache;
  if (time_mix_) cache.before = zero_state(arena, {batch, shape_.width}, dtype);
  cache.k = arena.allocate({key_table_ ? 1 : batch, capacity, shape_.heads, shape_.head_width()}, dtype);
  cache.v = arena.allocate({batch, capacity, shape_.heads, shape_.head_width()}, dtype);
  return cache;
}

int64_t ScoreHeads::kept_per_token() const { return relation_ == Relation::query_key ? 2 * shape_.width : shape_.width; }

}  // namespace saccade
