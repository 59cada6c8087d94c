#include "analysis/remote/machine_facts.h"

#include <gnu/libc-version.h>

#include <future>
#include <sstream>

#include "analysis/slurm/program_call.h"
#include "kernels/cpu/gemm.h"
#include "kernels/engine/device.h"
#include "kernels/engine/parallel.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kPatience = 4;
constexpr size_t kMostLines = 64;

Json lines_of(const std::string& text) {
  Json lines = Json::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line) && lines.size() < kMostLines;)
    if (!line.empty()) lines.push_back(line.substr(0, 300));
  return lines;
}

Json gpu_lines(const std::string& command) {
  const ProgramAnswer answer = call_program({"sh", "-c", command}, kPatience);
  if (answer.ok() && !lines_of(answer.out).empty()) return lines_of(answer.out);
  Json lines = Json::array();
  for (const Gpu& gpu : gpus()) lines.push_back(gpu.name);
  return lines;
}

Json partition_lines() {
  const ProgramAnswer answer = call_program({"sinfo", "--noheader", "--format=%P: %a, limit %l, %D nodes, %G"}, kPatience);
  return answer.ok() ? lines_of(answer.out) : Json::array();
}

}  // namespace

Json machine_facts(const fs::path& folder, const std::string& gpu_command) {
  auto gpus = std::async(std::launch::async, gpu_lines, gpu_command);
  auto partitions = std::async(std::launch::async, partition_lines);
  std::error_code none;
  const fs::space_info space = fs::space(folder, none);
  Json facts{{"processor", cpu_name()},
             {"threads", thread_count()},
             {"memory_bytes", cpu_memory().total},
             {"disk_free_bytes", none ? Json() : Json(space.available)},
             {"glibc", ::gnu_get_libc_version()}};
  facts["gpus"] = gpus.get();
  facts["partitions"] = partitions.get();
  return facts;
}

}  // namespace saccade
