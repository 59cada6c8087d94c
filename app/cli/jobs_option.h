#pragma once
#include <string>

namespace CLI {
class App;
}

namespace saccade::cli {

/// --jobs N | auto, read by parse_jobs (analysis/studies/queue.h); a wrong one is refused when the command line is read.
void add_jobs_option(CLI::App& app, std::string& jobs);

}  // namespace saccade::cli
