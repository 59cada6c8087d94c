#include "app/cli/jobs_option.h"

#include <CLI/CLI.hpp>

#include "analysis/studies/queue.h"
#include "kernels/engine/error.h"

namespace saccade::cli {

void add_jobs_option(CLI::App& app, std::string& jobs, const std::string& help) {
  app.add_option("--jobs", jobs, help)->check([](const std::string& text) {
    try {
      parse_jobs(text);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  });
}

}  // namespace saccade::cli
