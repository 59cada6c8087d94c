#include "analysis/inspection/inspector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/probes/capture_maps.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/linear/linear.h"
#include "models/architectures/registry.h"
#include "models/architectures/stack.h"

namespace saccade {
namespace {

double log_sum_exp(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double v : values) sum += std::exp(v - most);
  return most + std::log(sum);
}

/// Heads that a layer may report, at least; where it says nothing, one.
int64_t heads_of(const nlohmann::json& layer) {
  const auto heads = layer.find("heads");
  return heads != layer.end() ? whole_number<int64_t>(*heads).value_or(1) : 1;
}

/// Whether a model takes sequences of that length: tried on the device that only plans.
bool takes(const RunConfig& config, int64_t vocabulary, int64_t length) {
  Arena arena(Device::plan());
  const auto model = make_model(config.architecture, vocabulary, config.data.sequence_length, arena, DType::f32, 1, false);
  Tape tape(arena, false);
  try {
    model->hidden(tape, arena.allocate({1, length}, DType::i32), nullptr);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

}  // namespace

Inspector::Inspector(const std::filesystem::path& run, int64_t step) : loaded_(load_model(run, step, "cpu")) {}

int64_t Inspector::longest_text() const {
  int64_t heads = 0;
  for (const nlohmann::json& layer : layers_of(config().architecture)) heads += heads_of(layer);
  const auto by_maps = static_cast<int64_t>(std::sqrt(static_cast<double>(kMostValues / std::max<int64_t>(1, heads))));
  const int64_t most = std::min(kLongest, by_maps);
  if (most <= config().data.sequence_length || takes(config(), tokenizer().vocabulary(), most)) return most;
  return config().data.sequence_length;
}

void Inspector::read(InspectedText text) {
  if (text.tokens.empty() || static_cast<int64_t>(text.tokens.size()) > longest_text())
    throw UsageError("a text of " + std::to_string(text.tokens.size()) + " tokens; expected 1 to " + std::to_string(longest_text()));
  const auto require_token = [&](int32_t token) {
    if (token < 0 || token >= tokenizer().vocabulary())
      throw UsageError("token " + std::to_string(token) + " is not one of " + std::to_string(tokenizer().vocabulary()));
  };
  for (const int32_t token : text.tokens) require_token(token);
  if (text.asked)
    for (const auto& [query, token] : *text.asked) {
      require_token(token);
      if (query < 0 || query >= static_cast<int64_t>(text.tokens.size()))
        throw UsageError("query " + std::to_string(query) + " is asked of " + std::to_string(text.tokens.size()) + " tokens");
    }
  capture_.reset();
  text_ = std::move(text);
  ProbeRecord probe;
  probe.statistics_wanted = false, probe.maps_wanted = true;
  forward_ = forward(probe);
  Capture capture;
  capture.at.step = step();
  capture.domain = text_.title;
  capture.tokens = text_.tokens;
  for (const int32_t token : text_.tokens) capture.pieces.push_back(tokenizer().piece(token));
  for (const double loss : forward_.losses) capture.token_losses.push_back(static_cast<float>(loss));
  capture.maps = std::move(probe.maps);
  capture.selections = std::move(probe.selections);
  capture.layer_mixers = layer_titles(config().architecture);
  capture_ = std::move(capture);
}

const Capture& Inspector::capture() const {
  if (!capture_) throw UsageError("no text yet");
  return *capture_;
}

std::string Inspector::text_as_typed() const { return tokenizer().decode(text_.tokens); }

Inspector::Forward Inspector::forward(Probe& probe) {
  InferenceModel& inference = *loaded_.model;
  const auto length = static_cast<int64_t>(text_.tokens.size());
  Arena& arena = inference.arena();
  Tape tape(arena, false);
  inference.prepare(tape);
  const Tensor tokens = arena.allocate({1, length}, DType::i32), targets = arena.allocate({length}, DType::i32);
  std::copy(text_.tokens.begin(), text_.tokens.end(), tokens.data<int32_t>());
  std::fill_n(targets.data<int32_t>(), length, kNoTarget);
  if (!text_.asked)
    std::copy(text_.tokens.begin() + 1, text_.tokens.end(), targets.data<int32_t>());
  else
    for (const auto& [query, token] : *text_.asked) targets.data<int32_t>()[query] = token;
  const Tensor hidden = inference.model().hidden(tape, tokens, &probe);
  Forward result;
  result.hidden.resize(static_cast<size_t>(hidden.size()));
  copy_to_host(result.hidden.data(), hidden);
  result.losses = to_doubles(linear_cross_entropy(tape, hidden, inference.model().output_weight(), targets).tokens);
  if (!text_.asked || !text_.asked->contains(length - 1)) result.losses.pop_back();
  return result;
}

std::vector<double> Inspector::logits(const Forward& forward, int64_t query) {
  InferenceModel& inference = *loaded_.model;
  const Tensor& weight = inference.model().output_weight();
  Tape tape(inference.arena(), false);
  inference.prepare(tape);
  const Tensor row = inference.arena().allocate({1, weight.dim(1)}, DType::f32);
  copy_from_host(row, forward.hidden.data() + query * weight.dim(1));
  return to_doubles(linear(tape, row, weight));
}

Prediction Inspector::prediction(const std::vector<double>& logits, int32_t token) const {
  const double logit = logits[static_cast<size_t>(token)];
  return {token, tokenizer().piece(token), logit, std::exp(logit - log_sum_exp(logits))};
}

std::vector<int32_t> Inspector::likeliest(const std::vector<double>& logits, int64_t count) const {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::clamp<int64_t>(count, 0, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    const double of_a = logits[static_cast<size_t>(a)], of_b = logits[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  return {order.begin(), end};
}

QueryPredictions Inspector::predictions_of(const std::vector<double>& logits, const std::vector<int32_t>& tokens, int64_t query) const {
  QueryPredictions result;
  for (const int32_t token : tokens) result.top.push_back(prediction(logits, token));
  const auto next = static_cast<size_t>(query) + 1;
  if (next < text_.tokens.size()) result.target = prediction(logits, text_.tokens[next]);
  if (!text_.asked) return result;
  const auto asked = text_.asked->find(query);
  const bool follows = asked != text_.asked->end() && result.target && result.target->token == asked->second;
  if (asked != text_.asked->end() && !follows) result.answer = prediction(logits, asked->second);
  return result;
}

void Inspector::require_query(int64_t query) const {
  const auto length = static_cast<int64_t>(capture().tokens.size());
  if (query < 0 || query >= length) throw UsageError("query is " + std::to_string(query) + "; expected 0 to " + std::to_string(length - 1));
}

QueryPredictions Inspector::predictions(int64_t query, int64_t count) {
  require_query(query);
  const std::vector<double> all = logits(forward_, query);
  return predictions_of(all, likeliest(all, count), query);
}

/// As the model takes it: Avey reads by splits, and chooses them in front of all layers.
Counterfactual Inspector::resolved(Counterfactual change) const {
  const Selection* selection = find_selection(capture(), change.layer);
  if (!selection || selection->unit != Selection::Unit::split) return change;
  change.query /= selection->tokens;
  if (change.kind == Counterfactual::Kind::force) change.layer = -1, change.head = 0;
  return change;
}

CounterfactualResult Inspector::change(const Counterfactual& change, int64_t asked, int64_t count) {
  require_query(asked);
  require_query(change.query);
  ProbeRecord probe;
  probe.statistics_wanted = false;
  probe.maps_wanted = true;  // by which a layer with two mixers knows whose head it is
  probe.counterfactual = resolved(change);
  const Forward changed = forward(probe);
  if (probe.counterfactual)
    throw UsageError(layer_words(capture(), change.layer) + ", head " + std::to_string(change.head) +
                     (change.kind == Counterfactual::Kind::force ? " chooses nothing that could be forced" : " has no source to mask"));
  CounterfactualResult result;
  result.losses = changed.losses;
  const auto has_loss = [&](size_t t) {
    return t < changed.losses.size() && (!text_.asked || text_.asked->contains(static_cast<int64_t>(t)));
  };
  const auto query = static_cast<size_t>(asked);
  result.loss = has_loss(query) ? forward_.losses[query] : std::numeric_limits<double>::quiet_NaN();
  for (size_t t = 0; t < changed.losses.size(); ++t) {
    if (result.changed_from < 0 && changed.losses[t] != forward_.losses[t]) result.changed_from = static_cast<int64_t>(t);
    if (result.changed_from < 0 || !has_loss(t)) continue;
    result.mean_change += changed.losses[t] - forward_.losses[t];
    ++result.mean_over;
  }
  if (result.mean_over > 0) result.mean_change /= static_cast<double>(result.mean_over);
  const std::vector<double> before = logits(forward_, asked), after = logits(changed, asked);
  std::vector<int32_t> tokens = likeliest(before, count);
  for (const int32_t token : likeliest(after, count))
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  result.before = predictions_of(before, tokens, asked);
  result.after = predictions_of(after, tokens, asked);
  return result;
}

}  // namespace saccade
