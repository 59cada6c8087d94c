#include "models/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "kernels/engine/clock.h"
#include "kernels/engine/host_copies.h"
#include "kernels/engine/progress.h"
#include "kernels/engine/transfer.h"
#include "models/evaluation/probe_pass.h"
#include "models/training/plan.h"
#include "models/training/rank_orders.h"
#include "models/training/sharded_state.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

/// Before anything is allocated: a run that does not fit would be killed by the system in the middle.
Plan checked(const RunConfig& config, const Plan& plan) {
  require_device(config, plan);
  return plan;
}

void require_same_tensors(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to, const char* what) {
  const auto fail = [&](const std::string& problem) { throw DataError("the stored state does not fit the model: " + problem); };
  if (from.size() != to.size()) fail(std::to_string(from.size()) + " " + what + ", expected " + std::to_string(to.size()));
  for (size_t i = 0; i < to.size(); ++i) {
    const auto& [name, tensor] = from[i];
    const auto& [expected_name, target] = to[i];
    if (name != expected_name) fail(std::string(what) + " of " + name + ", expected " + expected_name);
    if (!tensor || tensor.shape() != target.shape() || tensor.dtype() != target.dtype())
      fail(std::string(what) + " of " + name + " are " +
           (tensor ? to_string(tensor.shape()) + " " + to_string(tensor.dtype()) : "missing") + ", expected " + to_string(target.shape()) +
           " " + to_string(target.dtype()));
  }
}

void copy_values(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  for (size_t i = 0; i < to.size(); ++i) copy_from_host(to[i].tensor, from[i].tensor.raw());
}

}  // namespace

TensorGroup& TrainingState::group(const std::string& name) {
  for (TensorGroup& candidate : optimizer)
    if (candidate.name == name) return candidate;
  throw std::logic_error("the optimizer keeps no " + name);
}

struct Trainer::Impl {
  RunConfig config;
  std::unique_ptr<BatchSource> data;
  Plan plan;
  TrainingStep work;
  EvaluationPass evaluation;
  ProbePass probes;
  StepRecord record;
  uint64_t position;            ///< behind the last micro-batch that was trained on
  bool fetched = false;         ///< the next one is there already
  int64_t fetched_targets = 0;  ///< of that one, other than kNoTarget
  bool stop_asked = false;
  int64_t evaluations = 0;
  std::vector<uint64_t> skipped;
  Arena batches{Device::cpu()};      ///< micro-batches on their way to the ranks
  std::optional<HostCopies> states;  ///< of a GPU

  Impl(const RunConfig& c, const Plan& p, std::unique_ptr<BatchSource> d, const Ranks& ranks)
      : config(c),
        data(std::move(d)),
        plan(checked(c, p)),
        work(c, plan.vocabulary, *plan.where, ranks),
        evaluation(
            work.model(), work.arena(), [this](Tape& tape) { work.prepare(tape); }, micro_batch_tokens(c.training)),
        probes(work.model(), work.arena(), [this](Tape& tape) { work.prepare(tape); }),
        position(data->position()) {
    use_threads(c.threads, ranks.local_count);
    if (const Device device = work.arena().device(); device.is_cuda()) states.emplace(device);
    if (shared()) rank_orders::begin(*ranks.communicator, c, plan.vocabulary);
  }

  bool shared() const { return work.ranks().count > 1; }

  int64_t sequences_of(int64_t step) const {
    return micro_batches(config.training, step) * micro_batch_tokens(config.training) / config.data.sequence_length;
  }

  void pass_over_skipped() {
    while (std::find(skipped.begin(), skipped.end(), data->position()) != skipped.end())
      data->seek(data->position() + static_cast<uint64_t>(sequences_of(record.step + 1)));
  }
  void fetch() {
    if (fetched) return;
    pass_over_skipped();
    const std::span<int32_t> targets = work.targets();
    data->next(work.sequences(), work.tokens(), targets);
    fetched_targets = std::ssize(targets) - std::count(targets.begin(), targets.end(), kNoTarget);
    work.send_ahead();
    fetched = true;
  }
  /// That count, of the next step.
  int64_t targets_of_next_step() {
    const int64_t sequences = sequences_of(record.step + 1);
    if (shared()) {
      pass_over_skipped();
      return data->targets(data->position(), sequences);
    }
    fetch();
    return fetched_targets + data->targets(data->position(), sequences - work.sequences());
  }
  void train_on_next() {
    fetch();
    work.forward_backward();
    fetched = false;
    position = data->position();
  }
  /// A step of one rank, before its measures are known.
  void step(const rank_orders::Step& next) {
    work.begin(next.micro_batches, next.targets);
    for (int64_t i = 0; i < next.micro_batches; ++i) train_on_next();
    work.gradient_norm();
    work.update(next.learning_rate, next.number);
  }
  /// A step of all ranks.
  void shared_step(const rank_orders::Step& next) {
    const int64_t size = work.sequences() * work.length(), count = next.micro_batches;
    const Tensor tokens = batches.allocate({count, size}, DType::i32), targets = batches.allocate({count, size}, DType::i32);
    const auto span_of = [](const Tensor& x) { return std::span(x.data<int32_t>(), static_cast<size_t>(x.size())); };
    data->next(count * work.sequences(), span_of(tokens), span_of(targets));
    position = data->position();
    stop_asked = rank_orders::step(work, next, {tokens, targets}) || stop_asked;
  }
  /// Of the step that was taken: waits for the GPU.
  TrainingStep::Measures measures() const {
    const AtPace at_work(Progress::pace_after(work.steps() - 1));
    return work.measures();
  }

  /// What copied_state takes of HostCopies.
  int64_t copied_bytes() const {
    int64_t bytes = 0;
    const auto add = [&](const Tensor& tensor) { bytes += HostCopies::bytes_of(tensor); };
    for (const Parameter& p : work.model().parameters()) add(p.value);
    if (shared()) return bytes;
    for (const TensorGroup& group : work.optimizer().state())
      for (const NamedTensor& named : group.tensors) add(named.tensor);
    return bytes;
  }

  /// The state in the trainer's own memory, but for the optimizer's of several ranks, which is gathered.
  TrainingState live_state() {
    TrainingState state{record, position, {}, shared() ? std::vector<TensorGroup>() : work.optimizer().state()};
    if (shared()) {
      Arena host(Device::cpu());
      state.optimizer = whole_optimizer_state(work, host);
      rank_orders::gather_state(work, state.optimizer);
    }
    for (const Parameter& p : work.model().parameters()) state.weights.push_back({p.name, p.value});
    return state;
  }
};

Trainer::Trainer(const RunConfig& config, const Plan& plan, std::unique_ptr<BatchSource> data, const Ranks& ranks)
    : impl_(std::make_unique<Impl>(config, plan, std::move(data), ranks)) {}
Trainer::Trainer(const RunConfig& config, int64_t vocabulary, std::unique_ptr<BatchSource> data)
    : Trainer(config, make_plan(config, vocabulary), std::move(data)) {}
Trainer::~Trainer() = default;

StepRecord Trainer::step() {
  const double start = now();
  const TrainingConfig& training = impl_->config.training;
  StepRecord& record = impl_->record;
  const int64_t count = micro_batches(training, record.step + 1), tokens = impl_->targets_of_next_step();
  const rank_orders::Step next{record.step + 1, count, tokens, scheduled_learning_rate(training, record.step + 1)};
  if (impl_->shared())
    impl_->shared_step(next);
  else
    impl_->step(next);
  record.step = next.number;
  record.tokens += tokens;
  record.learning_rate = next.learning_rate;
  if (device().is_cuda() && !finished() && !impl_->shared()) impl_->fetch();  // while the GPU works
  const auto [loss, gradient_norm] = impl_->measures();
  record.loss = loss;
  record.gradient_norm = gradient_norm;
  record.flops += impl_->plan.flops_of(count);
  const double seconds = now() - start;
  record.seconds += seconds;
  record.tokens_per_second = static_cast<double>(tokens) / seconds;
  return record;
}

bool Trainer::finished() const { return impl_->record.step >= impl_->config.training.steps; }
const StepRecord& Trainer::record() const { return impl_->record; }
bool Trainer::stop_asked() const { return impl_->stop_asked; }
const Model& Trainer::model() const { return impl_->work.model(); }
const RunConfig& Trainer::config() const { return impl_->config; }
const BatchSource& Trainer::data() const { return *impl_->data; }
uint64_t Trainer::data_position() const { return impl_->position; }
Device Trainer::device() const { return impl_->work.arena().device(); }
DType Trainer::dtype() const { return impl_->work.precision().parameters; }
std::string Trainer::precision() const { return to_string(impl_->work.precision().activations); }
Arena& Trainer::arena() { return impl_->work.arena(); }
double Trainer::flops_per_step() const { return impl_->plan.flops_per_step; }

TrainingState Trainer::state() { return device().is_cpu() && !impl_->shared() ? impl_->live_state() : copied_state(); }

TrainingState Trainer::copied_state() {
  TrainingState state = impl_->live_state();
  std::optional<HostCopies>& states = impl_->states;
  Arena host(Device::cpu());
  const auto copy = [&](Tensor& tensor) {
    if (tensor.device().is_cuda()) {
      tensor = states->begin(tensor);
      return;
    }
    const Tensor copied = host.allocate(tensor.shape(), tensor.dtype());
    copy_from_host(copied, tensor.raw());
    tensor = copied;
  };
  for (NamedTensor& named : state.weights) copy(named.tensor);
  if (!impl_->shared())  // what was gathered is a copy
    for (TensorGroup& group : state.optimizer)
      for (NamedTensor& named : group.tensors) copy(named.tensor);
  if (states) states->mark().wait();
  return state;
}

void Trainer::prepare_copies() {
  if (!impl_->states) return;
  impl_->states->reserve(impl_->copied_bytes());
  impl_->probes.reserve(impl_->plan.capture_bytes);
}

int64_t Trainer::state_bytes() const {
  Arena names(Device::plan());
  int64_t bytes = 0;
  for (const Parameter& p : model().parameters()) bytes += p.value.bytes();
  for (const TensorGroup& group : whole_optimizer_state(impl_->work, names))
    for (const NamedTensor& named : group.tensors) bytes += named.tensor.bytes();
  return bytes;
}

std::vector<NamedTensor> Trainer::gradients() {
  if (impl_->shared()) rank_orders::share_gradients(impl_->work);
  Arena host(Device::cpu());
  std::vector<NamedTensor> gradients;
  const std::vector<Parameter>& parameters = model().parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& gradient = impl_->work.slots()[i].grad;
    gradients.push_back({parameters[i].name, device().is_cpu() ? gradient : on_host(host, gradient)});
  }
  return gradients;
}

TrainedBatch Trainer::last_batch() {
  BatchSource& data = *impl_->data;
  const int64_t sequences = impl_->sequences_of(impl_->record.step), length = impl_->work.length();
  const auto values = static_cast<size_t>(sequences * length);
  TrainedBatch last{impl_->position - static_cast<uint64_t>(sequences),
                    {"", std::vector<int32_t>(values), std::vector<int32_t>(values), sequences, length}};
  const uint64_t next = data.position();
  data.seek(last.data_position);
  data.next(sequences, last.batch.tokens, last.batch.targets);
  data.seek(next);
  return last;
}

void Trainer::skip(std::vector<uint64_t> positions) { impl_->skipped = std::move(positions); }

void Trainer::restore(const TrainingState& restored) {
  std::vector<NamedTensor> weights;
  for (const Parameter& p : model().parameters()) weights.push_back({p.name, p.value});
  require_same_tensors(restored.weights, weights, "weights");
  Arena names(Device::plan());
  std::vector<TensorGroup> optimizer;
  for (const TensorGroup& group : whole_optimizer_state(impl_->work, names)) {
    const auto same = [&](const TensorGroup& other) { return other.name == group.name; };
    const auto found = std::find_if(restored.optimizer.begin(), restored.optimizer.end(), same);
    if (found == restored.optimizer.end())
      throw DataError("the stored state does not fit the optimizer " + impl_->config.training.optimizer + ": it has no " + group.name);
    require_same_tensors(found->tensors, group.tensors, group.name.c_str());
    optimizer.push_back(*found);
  }
  copy_values(restored.weights, weights);
  if (impl_->shared())
    rank_orders::scatter_state(impl_->work, optimizer);
  else
    scatter_optimizer_state(impl_->work, optimizer);
  impl_->work.refresh_copies();
  impl_->record = restored.record;
  impl_->data->seek(restored.data_position);
  impl_->position = restored.data_position;
  impl_->fetched = false;
}

void Trainer::follow(const TrainingConfig& training) { impl_->config.training = training; }

Evaluation Trainer::evaluate(const FrozenBatch& batch) { return std::move(evaluate(std::span(&batch, 1)).front()); }

std::vector<Evaluation> Trainer::evaluate(std::span<const FrozenBatch> batches) {
  const AtPace at_work(Progress::pace_after(impl_->evaluations++));
  return impl_->evaluation.evaluate(batches);
}

void Trainer::probe(const FrozenBatch& batch, Probe& probe) { impl_->probes.run(batch, probe); }

LateReports Trainer::probe_later(const FrozenBatch& batch, ProbeRecord& probe) { return impl_->probes.run_later(batch, probe); }

}  // namespace saccade
