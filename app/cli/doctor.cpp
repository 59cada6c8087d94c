// saccade doctor: what this machine and this build can do.
#include <unistd.h>

#include <filesystem>

#include "analysis/figures/count_text.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/render.h"
#include "app/cli/version.h"
#include "kernels/cpu/gemm.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/device.h"
#include "kernels/engine/gpu_communicator.h"
#include "kernels/engine/parallel.h"
#include "models/corpus/corpus.h"

namespace saccade::cli {
namespace fs = std::filesystem;
namespace {

/// GFLOP/s of a float32 product of 1024 x 1024 matrices, best of five.
double gemm_rate() {
  constexpr int64_t n = 1024;
  std::vector<float> a(n * n, 0.5f), b(n * n, 0.25f), c(n * n);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = now();
    cpu::gemm<float>(false, true, n, n, n, 1.0f, a.data(), n, b.data(), n, false, c.data(), n);
    best = std::max(best, 2.0 * n * n * n / (now() - start));
  }
  return best / 1e9;
}

/// Looks without making anything: a folder that is not there yet is made in the nearest one that is.
std::string describe_folder(const fs::path& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, error)) return folder.string() + ", unusable: " + there.string() + " is no folder";
  if (access(there.c_str(), W_OK) != 0) return folder.string() + ", unusable: " + there.string() + " cannot be written";
  const auto space = fs::space(there, error);
  if (error) return folder.string() + ", unusable: " + error.message();
  return folder.string() + ", " + human_bytes(static_cast<double>(space.available)) + " free";
}

/// GPUs that this build can train on: for JSON, and a line each.
struct Gpus {
  nlohmann::json json = nlohmann::json::array();
  nlohmann::json devices{"cpu"};
  std::vector<std::string> lines;
};
Gpus find_gpus() {
  Gpus found;
  std::string why_none;
  for (const Gpu& gpu : gpus(&why_none)) {
    const std::string device = to_string(Device::cuda(gpu.index));
    found.devices.push_back(device);
    found.json.push_back({{"device", device},
                          {"name", gpu.name},
                          {"compute_capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
                          {"multiprocessors", gpu.multiprocessors},
                          {"memory_bytes", gpu.memory_total},
                          {"memory_free_bytes", gpu.memory_free}});
    found.lines.push_back(device + ": " + gpu.name + ", " + human_bytes(static_cast<double>(gpu.memory_total)) + ", " +
                          human_bytes(static_cast<double>(gpu.memory_free)) + " free");
  }
  if (found.lines.empty()) found.lines.push_back("none: " + why_none + ", training runs on the CPU");
  return found;
}

std::string describe_cudnn() {
  std::string why_none;
  const std::string version = cudnn_version(&why_none);
  return version.empty() ? "none, dense attention runs on own kernels: " + why_none
                         : version + ", for dense attention forward where it applies";
}

std::string describe_nccl() {
  std::string why_none;
  const std::string version = nccl_version(&why_none);
  return version.empty() ? "none, a run has one GPU: " + why_none : version + ", for runs on several GPUs";
}

int run() {
  const Gpus gpus = find_gpus();
  const MemoryState memory = cpu_memory();
  const double rate = gemm_rate();
  const std::filesystem::path workbench = find_workbench();
  nlohmann::json json{{"versions", version_json()},
                      {"processor", cpu_name()},
                      {"threads", thread_count()},
                      {"memory_bytes", memory.total},
                      {"memory_available_bytes", memory.available},
                      {"gemm_gflops", rate},
                      {"devices", gpus.devices},
                      {"gpus", gpus.json},
                      {"workbench", workbench.string()},
                      {"runs_folder", runs_folder().string()},
                      {"data_folder", data_folder().string()},
                      {"cache_folder", cache_folder().string()}};
  std::vector<std::pair<std::string, std::string>> rows{
      {"processor", cpu_name() + ", " + counted(thread_count(), "thread")},
      {"memory", human_bytes(static_cast<double>(memory.total)) + ", " + human_bytes(static_cast<double>(memory.available)) + " available"},
      {"matrix product", number(rate, 0) + " GFLOP/s in float32"},
      {"window", workbench.empty() ? "saccade-workbench is not installed; figures only as CSV and JSON" : workbench.string()},
      {"runs", describe_folder(runs_folder())},
      {"corpora", describe_folder(data_folder())},
      {"cache", describe_folder(cache_folder())}};
  if (!gpus.json.empty()) rows.insert(rows.begin() + 3, {{"cuDNN", describe_cudnn()}, {"NCCL", describe_nccl()}});
  for (const std::string& line : gpus.lines) rows.insert(rows.begin() + 3, {"GPU", line});
  print_result(json, version_text() + "\n\n" + list(rows));
  return 0;
}

const RegisterCommand command{
    {"doctor", "Devices, libraries and folders that this build uses.", "saccade doctor", [](CLI::App&) { return [] { return run(); }; }}};

}  // namespace
}  // namespace saccade::cli
