#include "app/cli/ranks_option.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "analysis/runs/run_writer.h"
#include "analysis/training/rank_meeting.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/rank_processes.h"
#include "kernels/engine/device.h"
#include "kernels/engine/gpu_communicator.h"
#include "models/training/rank_orders.h"

namespace saccade::cli {
namespace {

constexpr double kGrace = 8;      // seconds for a rank to end by itself when another one is lost
constexpr double kPatience = 10;  // seconds after which the parent ends what is left
constexpr double kMeeting = 300;  // seconds for the ranks that a launcher starts to come together

RankWatchOptions watch_options(int rank, double timeout, const std::filesystem::path& directory) {
  RankWatchOptions options{.silence = timeout, .grace = kGrace};
  options.lost = [rank, directory](const std::string& line) {
    const bool first_lives = !line.starts_with("rank 0 ");
    if (!directory.empty() && (rank == 0 || !first_lives))
      append_log_line(directory, rank == 0 ? line : "rank " + std::to_string(rank) + ": " + line);
  };
  options.overdue = [rank](const std::string& line) {
    std::fprintf(stderr, "saccade: rank %d: %s\n", rank, printable(line).c_str());
    std::_Exit(1);
  };
  return options;
}

/// The folder where the ranks meet, unless a live process has it.
void make_ready(const std::filesystem::path& directory) {
  if (const auto holder = lock_holder(directory)) throw RunInUse(directory.string() + " is in use by " + describe(*holder));
  make_folders_above(directory);
  if (!std::filesystem::is_directory(directory)) make_run_folder(directory);
}

/// One rank's whole life.
int run_rank(Ranks ranks, RankSockets sockets, double timeout, const std::filesystem::path& directory,
             const std::function<int(const Ranks&)>& lead) {
  const std::unique_ptr<Communicator> communicator =
      with_gpus(std::make_unique<SocketCommunicator>(std::move(sockets), watch_options(ranks.rank, timeout, directory)));
  ranks.communicator = communicator.get();
  if (ranks.rank == 0) {
    const int code = lead(ranks);
    rank_orders::end(*communicator);
    return code;
  }
  catch_stop_signals();
  try {
    rank_orders::follow(ranks, stop_requested());
  } catch (const RankLost& error) {
    throw RankLost("rank " + std::to_string(ranks.rank) + ": " + error.what());
  }
  return 0;
}

}  // namespace

int RanksOption::count(const std::string& wanted) const {
  const int named = ranks_of_device(wanted), given = std::max(ranks, gpus);
  if (ranks > 0 && gpus > 0 && ranks != gpus)
    throw UsageError("--ranks " + std::to_string(ranks) + " and --gpus " + std::to_string(gpus) + " are different; expected one of them");
  if (!device.empty() && given > 1)
    throw UsageError("--device " + device + " and " + std::to_string(given) + " ranks; expected one of them");
  if (!device.empty()) return 1;
  if (gpus > 0 && wanted == "cpu") throw UsageError("--gpus " + std::to_string(gpus) + " and /device \"cpu\"; expected --ranks");
  if (named > 1 && given > 0 && named > given)
    throw UsageError("/device is \"" + wanted + "\", " + std::to_string(named) + " GPUs, for " + std::to_string(given) +
                     " ranks; expected as many");
  return given > 0 ? given : named;
}

std::shared_ptr<RanksOption> add_ranks_option(CLI::App& app) {
  auto option = std::make_shared<RanksOption>();
  app.add_option("--gpus", option->gpus, "Train on so many GPUs, a process on each, which share every batch")->check(CLI::Range(1, 1024));
  app.add_option("--ranks", option->ranks, "The same for any device: processes that share every batch, on the CPU too")
      ->check(CLI::Range(1, 1024));
  app.add_option("--rank-timeout", option->timeout,
                 "Seconds without a sign of life after which a process counts as hung and the run ends; so does one that lives and stands "
                 "still for as long, and for five times as long as ever before")
      ->check(CLI::Range(2.0, 86400.0))
      ->capture_default_str();
  return option;
}

void add_device_option(CLI::App& app, const std::shared_ptr<RanksOption>& option) {
  app.add_option("--device", option->device, "Here on this device, cpu or cuda:N, whatever the config's says, which stays as it is")
      ->check([](const std::string& text) {
        return text == "cpu" || (text.starts_with("cuda:") && !gpu_range(text)) ? std::string() : text + " is not cpu or cuda:N";
      });
}

int with_ranks(const RanksOption& option, const std::string& device, const std::filesystem::path& directory,
               const std::function<int(const Ranks&)>& lead) {
  const int count = option.count(device);
  const bool on_gpus = option.gpus > 0;
  if (count == 1) return lead({.on_gpus = on_gpus, .device = option.device});
  const std::optional<LaunchedRank> launched = directory.empty() ? std::nullopt : launched_rank();
  if (launched) {
    if (launched->count != count)
      throw UsageError("the launcher has started " + std::to_string(launched->count) + " processes for " + std::to_string(count) +
                       " ranks; expected as many");
    if (launched->rank == 0) make_ready(directory);
    return run_rank({count, launched->rank, launched->local, launched->local_count, nullptr, on_gpus, {}},
                    meet(directory, *launched, kMeeting), option.timeout, directory, lead);
  }
  int code = 0;
  std::optional<RankSockets> sockets = start_rank_processes(count, kPatience, code);
  if (!sockets) return code;
  const int rank = sockets->rank;
  return run_rank({count, rank, rank, count, nullptr, on_gpus, {}}, std::move(*sockets), option.timeout, directory, lead);
}

}  // namespace saccade::cli
