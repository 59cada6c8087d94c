#include "models/training/decoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/linear/linear.h"
#include "models/architectures/registry.h"
#include "models/training/training_step.h"

namespace saccade {

InferenceModel::InferenceModel(const nlohmann::json& architecture, int64_t vocabulary, int64_t sequence_length, Device device,
                               const std::string& precision, uint64_t seed)
    : arena_(device), tape_(arena_, false) {
  const Precision types = parse_precision(precision, device);
  activations_ = types.activations;
  model_ = make_model(architecture, vocabulary, sequence_length, arena_, types.parameters, seed, false);
  const std::vector<Parameter>& parameters = model_->parameters();
  const std::vector<Tensor> copies =
      allocate_for(parameters, arena_, DType::bf16, [&](const Parameter& p) { return activations_ == DType::bf16 && p.value.rank() == 2; });
  for (size_t i = 0; i < parameters.size(); ++i)
    if (copies[i]) copies_.emplace_back(parameters[i].value, copies[i]);
  prepare(tape_);
  refresh_copies();
}

void InferenceModel::prepare(Tape& tape) const {
  if (activations_ == DType::bf16) tape.set_activation_dtype(DType::bf16);
  for (const auto& [value, copy] : copies_) tape.bind_compute_copy(value, copy);
}

void InferenceModel::load(const std::vector<NamedTensor>& weights) {
  for (const Parameter& p : model_->parameters()) {
    const auto found = std::find_if(weights.begin(), weights.end(), [&](const NamedTensor& w) { return w.name == p.name; });
    if (found == weights.end() || found->tensor.shape() != p.value.shape() || found->tensor.dtype() != p.value.dtype())
      throw DataError("the stored state does not fit the model: weights of " + p.name + " are " +
                      (found == weights.end() ? "missing" : to_string(found->tensor.shape()) + " " + to_string(found->tensor.dtype())) +
                      ", expected " + to_string(p.value.shape()) + " " + to_string(p.value.dtype()));
    copy_from_host(p.value, found->tensor.raw());
  }
  refresh_copies();
}

void InferenceModel::refresh_copies() {
  for (const auto& [value, copy] : copies_) convert(copy, value);
}

Decoder::Decoder(InferenceModel& model, int64_t capacity)
    : model_(model),
      state_(model.model().begin(model.arena(), model.activations(), 1, capacity)),
      token_(model.arena().allocate({1, 1}, DType::i32)),
      next_token_(token_) {
  state_.last_only = true;
}

Tensor Decoder::last_logits(const Tensor& tokens) {
  const Tensor hidden = model_.model().extend(model_.tape(), tokens, state_);
  const int64_t n = hidden.dim(1), width = hidden.dim(2);
  return linear(model_.tape(), hidden.reshape({n, width}).slice(n - 1, n), model_.model().output_weight());
}

void Decoder::feed(std::span<const int32_t> tokens) {
  const auto n = static_cast<int64_t>(tokens.size());
  const int64_t after = state_.length + n;
  state_.pass(n);  // throws when they do not fit
  if (n == 1 && state_.length > 0) {
    *static_cast<int32_t*>(next_token_.next()) = tokens[0];
    next_token_.send();
    step_(model_.arena().device(), [&] { step_logits_ = last_logits(token_); });
    state_.length = after;  // a replayed step does nothing on the host
    logits_ = step_logits_;
    return;
  }
  const Tensor piece = model_.arena().allocate({1, n}, DType::i32);
  copy_from_host(piece, tokens.data());
  logits_ = last_logits(piece);
}

std::vector<double> Decoder::logits() const { return to_doubles(logits_); }

namespace {

/// The tokens that top_k and top_p leave, the likeliest first, with their weights exp((l − max) / temperature).
std::vector<std::pair<double, int32_t>> candidates(const std::vector<double>& logits, const Sampling& sampling, double top) {
  std::vector<std::pair<double, int32_t>> all;
  for (size_t i = 0; i < logits.size(); ++i) all.emplace_back(std::exp((logits[i] - top) / sampling.temperature), static_cast<int32_t>(i));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < all.size()) all.resize(static_cast<size_t>(sampling.top_k));
  double sum = 0, reached = 0;
  for (const auto& [weight, token] : all) sum += weight;
  size_t kept = 0;
  while (kept < all.size() && (kept == 0 || reached < sampling.top_p * sum)) reached += all[kept++].first;
  all.resize(kept);
  return all;
}

}  // namespace

int32_t choose_token(const std::vector<double>& logits, const Sampling& sampling, uint64_t index) {
  const auto top = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0) return static_cast<int32_t>(top - logits.begin());
  const double drawn = Random(sampling.seed, "generate").uniform(index);
  if (sampling.top_k > 0 || sampling.top_p < 1) {
    const auto left = candidates(logits, sampling, *top);
    double sum = 0;
    for (const auto& [weight, token] : left) sum += weight;
    double rest = sum * drawn;
    for (const auto& [weight, token] : left)
      if (rest -= weight; rest < 0) return token;
    return left.back().second;
  }
  double sum = 0;
  for (double l : logits) sum += std::exp((l - *top) / sampling.temperature);
  double left = sum * drawn;
  for (size_t i = 0; i < logits.size(); ++i) {
    left -= std::exp((logits[i] - *top) / sampling.temperature);
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(top - logits.begin());
}

}  // namespace saccade
