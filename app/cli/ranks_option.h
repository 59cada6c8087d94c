#pragma once
#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "models/training/ranks.h"

namespace saccade::cli {

/// --gpus, --ranks, --rank-timeout: the same for every command that trains.
struct RanksOption {
  int ranks = 0, gpus = 0;  ///< 0: not given
  double timeout = 15;      ///< seconds
  std::string device = {};  ///< in place of the config's; empty: not given
  /// Ranks for a config's device, `wanted`, which may name several GPUs. Throws UsageError where these and the options say different
  /// numbers.
  int count(const std::string& wanted) const;
};
std::shared_ptr<RanksOption> add_ranks_option(CLI::App& app);
/// --device beside them: one rank on a device that the config does not name.
void add_device_option(CLI::App& app, const std::shared_ptr<RanksOption>& option);

/// Runs `lead` on rank 0 of so many processes and has the others follow it (models/training/rank_orders.h). With one rank it is called and
/// no more. Where a launcher has started as many processes, this one is the rank that it says; else this process starts the ranks as its
/// children, passes SIGINT, SIGTERM, SIGHUP and SIGUSR2 on to them, and ends the rest when one has failed. Gives the exit code. A lost rank
/// is named in log.txt of `directory`; for a command without a run directory it is empty, and a launcher is not asked. Throws UsageError.
int with_ranks(const RanksOption& option, const std::string& device, const std::filesystem::path& directory,
               const std::function<int(const Ranks&)>& lead);

}  // namespace saccade::cli
