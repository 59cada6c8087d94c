// Trains on several GPUs, a process on each over NCCL, and compares the bytes of weights and the measures of every step with one GPU that
// does the whole step. First the communicator alone, on as many GPUs as there are, one included. Without a GPU or without NCCL it ends with
// code 77 (skipped) and says so; with one GPU it does what one can and says what it left out.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/engine/gpu_communicator.h"
#include "kernels/engine/socket_communicator.h"
#include "kernels/engine/transfer.h"
#include "models/training/rank_orders.h"
#include "tests/gpu/first_gpu.h"

using namespace saccade;
using nlohmann::json;

namespace {

constexpr int64_t kVocabulary = 512, kMicroBatches = 4, kSteps = 6;

RunConfig config_of(const json& architecture, const char* optimizer) {
  return resolve_config({{"name", "ranks"},
                         {"architecture", architecture},
                         {"data", {{"sequence_length", 128}}},
                         {"training",
                          {{"batch_tokens", kMicroBatches * 4 * 128},
                           {"gradient_accumulation", kMicroBatches},
                           {"optimizer", optimizer},
                           {"max_grad_norm", 0.5},
                           {"steps", kSteps},
                           {"warmup_steps", 1}}},
                         {"device", "cuda"}},
                        "ranks_check");
}

rank_orders::Batch batch_of(Arena& host, int64_t size, int64_t step) {
  rank_orders::Batch batch{host.allocate({kMicroBatches, size}, DType::i32), host.allocate({kMicroBatches, size}, DType::i32)};
  for (int64_t i = 0; i < kMicroBatches * size; ++i) {
    batch.tokens.data<int32_t>()[i] = static_cast<int32_t>((i * 7919 + step * 31) % kVocabulary);
    batch.targets.data<int32_t>()[i] = static_cast<int32_t>((i * 104729 + step * 17) % kVocabulary);
  }
  return batch;
}

/// Weights and measures after the steps, as bytes.
std::string bytes_of(const TrainingStep& step, const std::vector<double>& measures) {
  std::string bytes(reinterpret_cast<const char*>(measures.data()), measures.size() * sizeof(double));
  for (const Parameter& p : step.model().parameters()) {
    std::string values(static_cast<size_t>(p.value.bytes()), 0);
    copy_to_host(values.data(), p.value);
    bytes += values;
  }
  return bytes;
}

/// What rank 0 computes: with the others, or alone.
std::string trained(const RunConfig& config, const Ranks& ranks) {
  if (ranks.count > 1) rank_orders::begin(*ranks.communicator, config, kVocabulary);
  TrainingStep step(config, kVocabulary, Device::cuda(0), ranks);
  Arena host(Device::cpu());
  std::vector<double> measures;
  const int64_t size = step.sequences() * step.length();
  for (int64_t s = 1; s <= kSteps; ++s) {
    const rank_orders::Batch batch = batch_of(host, size, s);
    if (ranks.count > 1) {
      rank_orders::step(step, {s, kMicroBatches, 0, 1e-3}, batch);
    } else {
      step.begin();
      for (int64_t i = 0; i < kMicroBatches; ++i) {
        std::memcpy(step.tokens().data(), batch.tokens.data<int32_t>() + i * size, static_cast<size_t>(size) * sizeof(int32_t));
        std::memcpy(step.targets().data(), batch.targets.data<int32_t>() + i * size, static_cast<size_t>(size) * sizeof(int32_t));
        step.forward_backward();
      }
      step.gradient_norm();
      step.update(1e-3, s);
    }
    const TrainingStep::Measures m = step.measures();
    measures.push_back(m.loss), measures.push_back(m.gradient_norm);
  }
  return bytes_of(step, measures);
}

const std::vector<std::pair<const char*, json>>& architectures() {
  static const std::vector<std::pair<const char*, json>> list{
      {"attention", {{"block", "llama"}, {"mixer", "attention"}, {"width", 128}, {"layers", 2}, {"heads", 2}}},
      {"mamba2", {{"block", "llama"}, {"mixer", "mamba2"}, {"width", 128}, {"layers", 2}, {"heads", 2}}}};
  return list;
}

/// All to all of numbers that say whence and whither they go.
bool sends_right(Communicator& c, int index) {
  Arena arena(Device::cuda(index));
  Communicator::Parts send, receive;
  for (int r = 0; r < c.size(); ++r) {
    send.push_back({arena.allocate({1000}, DType::f32)}), receive.push_back({arena.allocate({1000}, DType::f32)});
    from_doubles(send.back()[0], std::vector<double>(1000, 100.0 * c.rank() + r));
    fill_zero(receive.back()[0]);
  }
  c.all_to_all(Device::cuda(index), send, receive);
  bool right = true;
  for (int r = 0; r < c.size(); ++r) {
    const double expected = r == c.rank() ? 0 : 100.0 * r + c.rank();
    right = right && to_doubles(receive[static_cast<size_t>(r)][0]) == std::vector<double>(1000, expected);
  }
  return !c.any(!right);
}

/// One rank's process; its exit code.
int run_rank(RankSockets sockets) try {
  const int rank = sockets.rank, count = sockets.size();
  const std::unique_ptr<Communicator> communicator = with_gpus(std::make_unique<SocketCommunicator>(std::move(sockets)));
  const Ranks ranks{count, rank, rank, count, communicator.get()};
  int faults = sends_right(*communicator, rank) ? 0 : 1;
  if (rank == 0) std::printf("%-40s %s\n", ("all_to_all over NCCL, ranks: " + std::to_string(count)).c_str(), faults ? "FAILED" : "ok");
  if (count == 1) return faults;
  if (rank > 0) {
    const std::atomic<bool> stop = false;
    rank_orders::follow(ranks, stop);
    return faults;
  }
  for (const auto& [name, architecture] : architectures())
    for (const char* optimizer : {"adamw", "muon"}) {
      const RunConfig config = config_of(architecture, optimizer);
      const bool same = trained(config, ranks) == trained(config, {});
      std::printf("%-40s %s\n", (std::string(name) + " " + optimizer + ", ranks: " + std::to_string(count)).c_str(),
                  same ? "ok" : "FAILED");
      faults += !same;
    }
  rank_orders::end(*communicator);
  return faults ? 1 : 0;
} catch (const std::exception& error) {
  std::printf("FAILED: %s\n", error.what());
  return 1;
}

/// As many processes; the sum of their exit codes.
int run_ranks(int count) {
  std::vector<RankSockets> sockets = connected_ranks(count);
  std::fflush(nullptr);
  std::vector<pid_t> processes;
  for (int r = 0; r < count; ++r) {
    processes.push_back(::fork());
    if (processes.back() > 0) continue;
    RankSockets own = std::move(sockets[static_cast<size_t>(r)]);
    sockets.clear();
    const int code = run_rank(std::move(own));
    std::fflush(nullptr);
    std::_Exit(code);
  }
  sockets.clear();
  int failed = 0;
  for (const pid_t process : processes) {
    int status = 0;
    ::waitpid(process, &status, 0);
    failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  return failed;
}

/// GPUs of this machine, counted by a child, since a process that has used a GPU can start no others that do. 0 without NCCL.
int usable_gpus() {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(test::first_gpu());
    std::string why;
    if (nccl_version(&why).empty()) std::printf("SKIPPED: %s\n", why.c_str()), std::fflush(nullptr), std::_Exit(77);
    std::_Exit(static_cast<int>(std::min<size_t>(cuda::gpus().size(), 64)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 77 ? WEXITSTATUS(status) : 0;
}

}  // namespace

int main() {
  const int gpus = usable_gpus();
  if (gpus == 0) return 77;
  int failed = run_ranks(1);
  for (const int count : {2, 4})
    if (count <= gpus) failed += run_ranks(count);
  if (gpus < 2) std::printf("LEFT OUT: ranks that share a step need 2 GPUs, and there is one\n");
  return failed ? 1 : 0;
}
