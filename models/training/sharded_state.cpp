#include "models/training/sharded_state.h"

#include <map>

#include "kernels/engine/transfer.h"

namespace saccade {
namespace {

/// Tensors of an optimizer's state, by what they are: the group and the parameter.
std::map<std::pair<std::string, std::string>, Tensor> by_name(const std::vector<TensorGroup>& groups) {
  std::map<std::pair<std::string, std::string>, Tensor> tensors;
  for (const TensorGroup& group : groups)
    for (const NamedTensor& named : group.tensors) tensors[{group.name, named.name}] = named.tensor;
  return tensors;
}

/// Calls visit(rank, piece of a whole tensor, own tensor of this rank or empty) in an order that is the same on every rank.
template <class Visit>
void each_part(const TrainingStep& step, const std::vector<TensorGroup>& whole, Visit visit) {
  const auto own = by_name(step.optimizer().state());
  const std::vector<std::vector<Piece>>& shards = step.exchange().shards();
  const std::vector<Parameter>& parameters = step.model().parameters();
  std::multimap<std::string, std::pair<size_t, Piece>> places;
  for (size_t r = 0; r < shards.size(); ++r)
    for (const Piece& piece : shards[r]) places.emplace(parameters[piece.parameter].name, std::pair(r, piece));
  for (const TensorGroup& group : whole)
    for (const NamedTensor& named : group.tensors) {
      const auto [first, last] = places.equal_range(named.name);
      for (auto at = first; at != last; ++at) {
        const auto& [rank, piece] = at->second;
        const bool mine = rank == static_cast<size_t>(step.ranks().rank);
        visit(rank, part_of(named.tensor, piece), mine ? own.at({group.name, named.name}) : Tensor());
      }
    }
}

}  // namespace

std::vector<TensorGroup> whole_optimizer_state(const TrainingStep& step, Arena& arena) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < step.slots().size(); ++i) pieces.push_back({i, 0, step.slots()[i].value.size()});
  const TrainingConfig& training = step.training();
  return optimizer(training.optimizer).make(training.optimizer_settings, {step.model(), step.slots(), pieces, arena})->state();
}

void gather_optimizer_state(const TrainingStep& step, const std::vector<TensorGroup>& whole) {
  const Ranks& ranks = step.ranks();
  Communicator::Parts send(static_cast<size_t>(ranks.count)), receive(send);
  Arena host(Device::cpu());
  each_part(step, whole, [&](size_t rank, const Tensor& part, const Tensor& own) {
    if (ranks.rank == 0 && rank == 0)
      copy_to_host(part.raw(), own);
    else if (ranks.rank == 0)
      receive[rank].push_back(part);
    else if (own)
      send[0].push_back(on_host(host, own));
  });
  if (ranks.communicator) ranks.communicator->all_to_all(Device::cpu(), send, receive);
}

void scatter_optimizer_state(const TrainingStep& step, const std::vector<TensorGroup>& whole) {
  const Ranks& ranks = step.ranks();
  Communicator::Parts send(static_cast<size_t>(ranks.count)), receive(send);
  Arena host(Device::cpu());
  std::vector<Tensor> targets;
  each_part(step, whole, [&](size_t rank, const Tensor& part, const Tensor& own) {
    if (ranks.rank == 0 && rank == 0) {
      copy_from_host(own, part.raw());
    } else if (ranks.rank == 0) {
      send[rank].push_back(part);
    } else if (own) {
      targets.push_back(own);
      receive[0].push_back(own.device().is_cpu() ? own : host.allocate(own.shape(), own.dtype()));
    }
  });
  if (ranks.communicator) ranks.communicator->all_to_all(Device::cpu(), send, receive);
  for (size_t i = 0; i < targets.size(); ++i)
    if (!targets[i].device().is_cpu()) copy_from_host(targets[i], receive[0][i].raw());
}

}  // namespace saccade
