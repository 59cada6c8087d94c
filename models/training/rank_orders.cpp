#include "models/training/rank_orders.h"

#include <cstring>

#include "kernels/engine/progress.h"
#include "models/training/plan.h"
#include "models/training/sharded_state.h"

namespace saccade::rank_orders {
namespace {

using Json = nlohmann::json;

/// Rows that a rank takes of a batch, in its own order.
std::vector<Tensor> rows_of(const Tensor& all, const MicroBatchOrder& order, int64_t rank) {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < order.each(); ++i) {
    const int64_t number = order.number(rank, i);
    rows.push_back(all.slice(number, number + 1));
  }
  return rows;
}

/// Of what is not a step: long enough for a state that is large.
constexpr Progress::Pace kSeldom = Progress::Pace::first;

/// This rank's part of a step, the same calls on all ranks.
bool take_step(TrainingStep& work, const Step& order, const std::vector<Tensor>& tokens, const std::vector<Tensor>& targets, bool stop) {
  const AtPace at_work(Progress::pace_after(work.steps()));
  work.begin(order.micro_batches, order.targets);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::memcpy(work.tokens().data(), tokens[i].raw(), static_cast<size_t>(tokens[i].bytes()));
    std::memcpy(work.targets().data(), targets[i].raw(), static_cast<size_t>(targets[i].bytes()));
    work.forward_backward();
  }
  work.gradient_norm();
  work.update(order.learning_rate, order.number);
  return work.ranks().communicator->any(stop);
}

/// The training step of a rank that follows.
std::unique_ptr<TrainingStep> made(const Json& order, const Ranks& ranks) {
  const RunConfig config = resolve_config(order.at("config"), "the config of rank 0");
  const Plan plan = make_plan(config, order.at("vocabulary").get<int64_t>(), ranks);
  require_device(config, plan);
  use_threads(config.threads, ranks.local_count);
  return std::make_unique<TrainingStep>(config, plan.vocabulary, *plan.where, ranks);
}

bool follow_step(TrainingStep& work, const Json& order, bool stop) {
  const Ranks& ranks = work.ranks();
  const Step step{order.at("step"), order.at("micro_batches"), order.at("targets"), order.at("learning_rate")};
  const int64_t each = MicroBatchOrder{step.micro_batches, ranks.count}.each(), size = work.sequences() * work.length();
  Arena host(Device::cpu());
  std::vector<Tensor> tokens, targets;
  Communicator::Parts none(static_cast<size_t>(ranks.count)), receive(none);
  for (int64_t i = 0; i < each; ++i) receive[0].push_back(tokens.emplace_back(host.allocate({1, size}, DType::i32)));
  for (int64_t i = 0; i < each; ++i) receive[0].push_back(targets.emplace_back(host.allocate({1, size}, DType::i32)));
  ranks.communicator->all_to_all(Device::cpu(), none, receive);
  return take_step(work, step, tokens, targets, stop);
}

void give(TrainingStep& work, const char* order) { work.ranks().communicator->broadcast(Json{{"order", order}}.dump()); }

/// The weights of rank 0 on every rank, and its optimizer's state.
void take_state(TrainingStep& work, const std::vector<TensorGroup>& whole) {
  work.exchange().share_weights_of_first();
  scatter_optimizer_state(work, whole);
  work.refresh_copies();
}

}  // namespace

void begin(Communicator& ranks, const RunConfig& config, int64_t vocabulary) {
  ranks.broadcast(Json{{"order", "begin"}, {"config", to_json(config)}, {"vocabulary", vocabulary}}.dump());
}

bool step(TrainingStep& work, const Step& order, const Batch& batch) {
  const Ranks& ranks = work.ranks();
  ranks.communicator->broadcast(Json{
      {"order", "step"},
      {"step", order.number},
      {"micro_batches", order.micro_batches},
      {"targets", order.targets},
      {"learning_rate",
       order.learning_rate}}.dump());
  const MicroBatchOrder places{order.micro_batches, ranks.count};
  Communicator::Parts send, none(static_cast<size_t>(ranks.count));
  for (int64_t r = 0; r < ranks.count; ++r) {
    send.push_back(rows_of(batch.tokens, places, r));
    for (const Tensor& row : rows_of(batch.targets, places, r)) send.back().push_back(row);
  }
  ranks.communicator->all_to_all(Device::cpu(), send, none);
  return take_step(work, order, rows_of(batch.tokens, places, 0), rows_of(batch.targets, places, 0), false);
}

void gather_state(TrainingStep& work, const std::vector<TensorGroup>& whole) {
  const AtPace at_work(kSeldom);
  give(work, "state");
  gather_optimizer_state(work, whole);
}

void scatter_state(TrainingStep& work, const std::vector<TensorGroup>& whole) {
  const AtPace at_work(kSeldom);
  give(work, "restore");
  take_state(work, whole);
}

void share_gradients(TrainingStep& work) {
  const AtPace at_work(kSeldom);
  give(work, "gradients");
  work.exchange().share_gradients();
}

void end(Communicator& ranks) { ranks.broadcast(Json{{"order", "end"}}.dump()); }

void follow(const Ranks& ranks, const std::atomic<bool>& stop) {
  std::unique_ptr<TrainingStep> work;
  const AtPace following(Progress::Pace::steady);
  while (true) {
    const Json order = Json::parse(ranks.communicator->broadcast({}));
    const std::string what = order.at("order");
    const AtPace at_work(what == "step" && work ? Progress::pace_after(work->steps()) : kSeldom);
    if (what == "end") return;
    if (what == "begin") {
      work.reset();  // first, with its memory
      work = made(order, ranks);
      continue;
    }
    if (!work) throw Error("rank 0 orders \"" + what + "\" before it has ordered \"begin\"");
    Arena names(Device::plan());
    if (what == "step")
      follow_step(*work, order, stop);
    else if (what == "state")
      gather_optimizer_state(*work, whole_optimizer_state(*work, names));
    else if (what == "restore")
      take_state(*work, whole_optimizer_state(*work, names));
    else if (what == "gradients")
      work->exchange().share_gradients();
    else
      throw Error("rank 0 orders \"" + what + "\", which this version does not know");
  }
}

}  // namespace saccade::rank_orders
