#include "models/layers/score_heads.h"

#include <cmath>
#include <numeric>

#include "kernels/cuda/basic.h"
#include "kernels/embedding.h"
#include "kernels/head_projection.h"
#include "kernels/heads.h"
#include "kernels/linear.h"
#include "models/layers/initialise.h"

namespace saccade {

std::string score_variant(const ScoreSettings& settings, const ScoreSettings& usual) {
  std::string words;
  if (settings.qk_norm != usual.qk_norm) add_words(words, "qk-norm " + settings.qk_norm);
  if (settings.temperature != usual.temperature) add_words(words, "temperature " + nlohmann::json(settings.temperature).dump());
  return words;
}

void add_words(std::string& title, const std::string& words) {
  if (!title.empty() && !words.empty()) title += ' ';
  title += words;
}

ScoreHeads::ScoreHeads(const ModelShape& shape, const ScoreSettings& settings, ParameterMaker& make, int64_t layer, Relation relation)
    : shape_(shape), settings_(settings), layer_(layer), relation_(relation) {
  const double d = static_cast<double>(shape.head_width());
  score_.scale = 1.0 / ((settings.qk_norm == "l2" ? 1.0 : std::sqrt(d)) * settings.temperature);
  score_.alibi = shape.position == "alibi";
  // Constant keys and queries start at the size that projected ones have: a row of W times a normed x.
  const double table_deviation = kDeviation * std::sqrt(static_cast<double>(shape.width));
  const auto table = [&](const char* name) {
    return make.normal(layer_name(layer, name), {shape.sequence_length, shape.width}, table_deviation);
  };

  if (relation == Relation::constant_both)
    query_table_ = table("query_table");
  else
    query_ = projection(make, "query", kDeviation);
  if (relation == Relation::query_key)
    key_ = projection(make, "key", kDeviation);
  else
    key_table_ = table("key_table");
  value_ = projection(make, "value", kDeviation);
  output_ = projection(make, "output", residual_deviation(shape));
  if (settings.qk_norm == "rms") {
    query_gain_ = make.constant(layer_name(layer, "query_gain"), {shape.head_width()}, 1);
    key_gain_ = make.constant(layer_name(layer, "key_gain"), {shape.head_width()}, 1);
  }
}

ScoreHeads::Projection ScoreHeads::projection(ParameterMaker& make, const std::string& name, double deviation) const {
  Projection p;
  p.weight = make.normal(layer_name(layer_, name), {shape_.width, shape_.width}, deviation);
  if (shape_.biases) p.bias = make.constant(layer_name(layer_, name + "_bias"), {shape_.width}, 0);
  return p;
}

ScoreHeads::Heads ScoreHeads::operator()(Tape& tape, const Tensor& x) const {
  if (relation_ == Relation::query_key && !shape_.biases) {
    const auto [q, k, v] =
        project_heads(tape, x, {query_.weight, key_.weight, value_.weight, query_gain_, key_gain_, shape_.heads, options()});
    return {q, k, v};
  }
  const int64_t length = x.dim(1);
  const Shape heads{x.dim(0), length, shape_.heads, shape_.head_width()};
  const std::vector<Tensor> projected = project(tape, x);
  size_t next = 0;
  const auto side = [&](const Tensor& table) { return table ? constant(tape, table, length) : projected[next++].reshape(heads); };
  const Tensor q = side(query_table_), k = side(key_table_), v = side({});
  return {prepare(tape, q, query_gain_), prepare(tape, k, key_gain_), v};
}

/// Those of W_q x, W_k x, W_v x that the relation takes from the text.
std::vector<Tensor> ScoreHeads::project(Tape& tape, const Tensor& x) const {
  std::vector<Projection> used;
  for (const Projection& p : {query_, key_, value_})
    if (p.weight) used.push_back(p);
  std::vector<Tensor> projected;
  if (shape_.biases) {
    for (const Projection& p : used) projected.push_back(linear(tape, x, p.weight, p.bias));
    return projected;
  }
  for (const Projection& p : used) projected.push_back(p.weight);
  return linears(tape, x, projected);
}

/// Rows 0 … length-1 of a table as the heads of one sequence that stands for all.
Tensor ScoreHeads::constant(Tape& tape, const Tensor& table, int64_t length) const {
  if (length > table.dim(0))
    throw UsageError("a sequence of " + std::to_string(length) + " tokens; the constant keys are trained for " +
                     std::to_string(table.dim(0)));
  const Tensor rows = tape.empty({1, length}, DType::i32);
  tape.run(
      "row_numbers", {0, static_cast<double>(rows.bytes())}, [&] { std::iota(rows.data<int32_t>(), rows.data<int32_t>() + length, 0); },
      [&] { cuda::count_up(tape.stream(), rows); });
  return embedding(tape, table, rows).reshape({1, length, shape_.heads, shape_.head_width()});
}

Tensor ScoreHeads::prepare(Tape& tape, const Tensor& heads, const Tensor& gain) const {
  return prepare_heads(tape, heads, gain, options());
}

HeadOptions ScoreHeads::options() const {
  HeadOptions options;
  options.norm = parse_qk_norm(settings_.qk_norm);
  options.rotary_base = shape_.position == "rotary" ? shape_.rotary_base : 0;
  return options;
}

Tensor ScoreHeads::output(Tape& tape, const Tensor& o, const Tensor& residual) const {
  return linear(tape, o.reshape({o.dim(0), o.dim(1), shape_.width}), output_.weight, output_.bias, residual);
}

int64_t ScoreHeads::kept_per_token() const { return relation_ == Relation::query_key ? 2 * shape_.width : shape_.width; }

}  // namespace saccade
