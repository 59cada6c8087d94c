#pragma once
#include <string>

namespace CLI {
class App;
}

namespace saccade::cli {

/// --jobs N | auto, read by parse_jobs (analysis/studies/queue.h); a wrong one is refused when the command line is read.
void add_jobs_option(CLI::App& app, std::string& jobs,
                     const std::string& help = "Runs at a time on the device, as far as its memory reaches; auto: as many as pay");

}  // namespace saccade::cli
