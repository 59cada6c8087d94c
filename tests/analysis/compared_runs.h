#pragma once
#include <QTemporaryDir>
#include <memory>

#include "analysis/comparison/comparison.h"
#include "analysis/runs/run_info.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

/// Runs of made-up numbers in a folder of their own, to be compared.
class ComparedRuns {
 public:
  std::filesystem::path path(const std::string& name) const { return std::filesystem::path(folder_.path().toStdString()) / name; }
  std::vector<Run> write(const std::vector<FixtureOptions>& all) const {
    std::vector<Run> runs;
    for (const FixtureOptions& options : all) {
      const std::filesystem::path directory = path(options.mixer + std::to_string(options.seed) + "-" + std::to_string(options.layers));
      write_fixture(directory, options);
      RunInfo info = read_run_info(directory);
      info.config["training"]["steps"] = 200;
      write_run_info(info);
      runs.emplace_back(directory);
    }
    return runs;
  }
  static FixtureOptions small(int64_t seed, double offset) {
    return {.seed = seed, .layers = 1, .heads = 1, .length = 16, .offset = offset};
  }
  /// The run with one value of its run.json, "/config/…" or "/provenance/…", replaced.
  static Run rewritten(const Run& run, const QString& pointer, const QString& value) {
    RunInfo info = read_run_info(run.info().directory);
    nlohmann::json both{{"config", info.config}, {"provenance", info.provenance}};
    both[nlohmann::json::json_pointer(pointer.toStdString())] = nlohmann::json::parse(value.toStdString());
    info.config = both.at("config"), info.provenance = both.at("provenance");
    write_run_info(info);
    return Run(info.directory);
  }
  static std::vector<const Run*> pointers_to(const std::vector<Run>& runs) {
    std::vector<const Run*> list;
    for (const Run& run : runs) list.push_back(&run);
    return list;
  }

 private:
  QTemporaryDir folder_;
};

}  // namespace saccade::test
