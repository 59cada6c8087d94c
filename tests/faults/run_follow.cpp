// Follows a run as the window does and says, a line of JSON whenever it changed, what it saw: state, steps, damage. When its standard input
// ends it goes on for as long as the run says that something may be on its way, says "end", and ends.
//
//   run_follow RUN outline|whole
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>

#include "analysis/runs/run.h"
#include "kernels/engine/error.h"

using namespace saccade;

namespace {

constexpr double kPatience = 60;

nlohmann::json seen(const Run& run) {
  const Series* losses = run.find("train/loss");
  return {{"state", to_string(run.info().state)},
          {"steps", losses ? losses->step.size() : 0},
          {"last", losses && !losses->step.empty() ? losses->step.back() : 0.0},
          {"damage", run.damage()},
          {"lost", run.lost()}};
}

/// Whether the other end has let go.
bool ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return ::poll(&input, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) <= 0;
}

void follow(const std::filesystem::path& directory, bool outline) {
  std::optional<Run> run;
  nlohmann::json before;
  for (bool stopping = false;;) {
    stopping = stopping || ended();
    const bool last_look = stopping && run && !run->waits();
    try {
      if (!run)
        run.emplace(directory, RunDetail{.outline = outline, .patience = kPatience});
      else if (last_look || run->outdated())
        run->poll();
    } catch (const Error& error) {  // as the window: told, and looked at again
      std::cout << nlohmann::json{{"error", error.what()}}.dump() << std::endl;
      if (stopping && !run) return;
    }
    if (run)
      if (nlohmann::json now = seen(*run); now != before) std::cout << (before = std::move(now)).dump() << std::endl;
    if (last_look && !run->waits()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::cout << nlohmann::json{{"end", before}}.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  follow(argv[1], std::string_view(argv[2]) == "outline");
  return 0;
}
