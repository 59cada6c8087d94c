#include "models/training/batch_decoder.h"

#include <algorithm>
#include <numeric>

#include "kernels/engine/transfer.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/first_largest/first_largest.h"
#include "kernels/ops/linear/linear.h"

namespace saccade {
namespace {

constexpr int64_t kCpuStateBytes = int64_t{2} << 30;

}  // namespace

BatchDecoder::BatchDecoder(InferenceModel& model, int64_t sequences, int64_t capacity)
    : model_(model),
      state_(model.model().begin(model.arena(), model.activations(), sequences, capacity)),
      lengths_(static_cast<size_t>(sequences)),
      taken_(static_cast<size_t>(sequences)),
      likeliest_(static_cast<size_t>(sequences)),
      tokens_(model.arena().allocate({sequences, 1}, DType::i32)),
      next_tokens_(tokens_),
      logits_(model.arena().allocate({sequences, model.model().output_weight().dim(0)}, model.activations())),
      likeliest_on_device_(model.arena().allocate({sequences}, DType::i32)) {
  state_.let_lengths_differ(model.arena());
}

void BatchDecoder::keep(const Tensor& hidden, int64_t first) {
  const int64_t n = hidden.dim(0);
  const Tensor logits = linear(model_.tape(), hidden, model_.model().output_weight());
  append_rows(model_.tape(), logits.reshape({n, 1, logits.dim(1)}), logits_.slice(first, first + n).reshape({n, 1, logits.dim(1)}), {});
  first_largest(model_.tape(), logits, likeliest_on_device_.slice(first, first + n));
}

void BatchDecoder::start(int64_t place, std::span<const int32_t> prompt) {
  const auto n = static_cast<int64_t>(prompt.size());
  if (n < 1) throw UsageError("a prompt without tokens; expected one or more");
  state_.clear(place);
  DecodingState one = state_.sequence(place, 0);
  one.last_only = true;
  const Tensor piece = model_.arena().allocate({1, n}, DType::i32);
  copy_from_host(piece, prompt.data());
  const Tensor hidden = model_.model().extend(model_.tape(), piece, one);
  keep(last_row(hidden).reshape({1, hidden.dim(2)}), place);
  lengths_[static_cast<size_t>(place)] = n;
  taken_[static_cast<size_t>(place)] = true;
  copy_to_host(&likeliest_[static_cast<size_t>(place)], likeliest_on_device_.slice(place, place + 1));
}

void BatchDecoder::leave(int64_t place) {
  state_.clear(place);
  lengths_[static_cast<size_t>(place)] = 0;
  taken_[static_cast<size_t>(place)] = false;
}

void BatchDecoder::feed(std::span<const int32_t> tokens) {
  if (static_cast<int64_t>(tokens.size()) != places())
    throw std::logic_error(std::to_string(tokens.size()) + " tokens for " + std::to_string(places()) + " sequences");
  for (int64_t b = 0; b < places(); ++b)
    if (!taken_[static_cast<size_t>(b)] && length(b) == state_.capacity) leave(b);
  state_.length = *std::max_element(lengths_.begin(), lengths_.end());
  state_.pass(1);  // throws where one is full
  std::copy(tokens.begin(), tokens.end(), static_cast<int32_t*>(next_tokens_.next()));
  next_tokens_.send();
  step_(model_.arena().device(), [&] {
    const Tensor hidden = model_.model().extend(model_.tape(), tokens_, state_);
    keep(hidden.reshape({places(), hidden.dim(2)}), 0);
  });
  for (int64_t& length : lengths_) ++length;
  copy_to_host(likeliest_.data(), likeliest_on_device_);
}

std::vector<double> BatchDecoder::logits(int64_t place) const {
  std::vector<double> logits = to_doubles(logits_.slice(place, place + 1));
  if (model_.tokens() < static_cast<int64_t>(logits.size())) logits.resize(static_cast<size_t>(model_.tokens()));
  return logits;
}

int32_t BatchDecoder::likeliest(int64_t place) const {
  const int32_t found = likeliest_[static_cast<size_t>(place)];
  if (found < model_.tokens()) return found;
  const std::vector<double> left = logits(place);  // padding was: without it
  return static_cast<int32_t>(std::max_element(left.begin(), left.end()) - left.begin());
}

int64_t places_that_fit(InferenceModel& model, int64_t capacity, int64_t wanted) {
  const Device device = model.arena().device();
  Arena plan(Device::plan(device.engine));
  const DecodingState one = model.model().begin(plan, model.activations(), 1, capacity);
  int64_t room = kCpuStateBytes;
  if (device.is_cuda())
    for (const Gpu& gpu : gpus())
      if (gpu.index == device.index) room = gpu.memory_free / 2;
  return std::clamp<int64_t>(room / std::max<int64_t>(1, plan.used()), 1, wanted);
}

void continue_prompts(InferenceModel& model, std::span<const Prompt> prompts, int64_t side_by_side,
                      const std::function<int32_t(const NextToken&)>& choose, const std::atomic<bool>& stop) {
  std::vector<size_t> waiting(prompts.size());  // the longest last
  std::iota(waiting.begin(), waiting.end(), size_t{0});
  const auto length = [&](size_t i) { return static_cast<int64_t>(prompts[i].tokens.size()) + prompts[i].most; };
  std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) { return length(a) < length(b); });
  if (waiting.empty()) return;
  const int64_t capacity = length(waiting.back()), wanted = std::min(side_by_side, static_cast<int64_t>(prompts.size()));
  BatchDecoder decoder(model, places_that_fit(model, capacity, wanted), capacity);

  struct Place {
    bool taken = false;
    size_t which = 0;
    int64_t written = 0;
  };
  std::vector<Place> places(static_cast<size_t>(decoder.places()));
  std::vector<int32_t> next(places.size(), 0);
  // Chooses what follows at a place; one that has ended makes room for those that wait.
  const auto advance = [&](int64_t b) {
    Place& place = places[static_cast<size_t>(b)];
    while (!stop) {
      if (place.taken && place.written < prompts[place.which].most) {
        const int32_t token = choose({place.which, place.written, decoder.likeliest(b), [&] { return decoder.logits(b); }});
        if (token >= 0 && ++place.written < prompts[place.which].most) {
          next[static_cast<size_t>(b)] = token;
          return;
        }
      }
      if (waiting.empty()) {
        if (place.taken) decoder.leave(b);
        place = {};
        next[static_cast<size_t>(b)] = 0;
        return;
      }
      place = {true, waiting.back(), 0};
      waiting.pop_back();
      decoder.start(b, prompts[place.which].tokens);
    }
  };
  while (!stop) {
    for (int64_t b = 0; b < decoder.places(); ++b) advance(b);
    if (stop || std::none_of(places.begin(), places.end(), [](const Place& p) { return p.taken; })) return;
    decoder.feed(next);
  }
}

}  // namespace saccade
