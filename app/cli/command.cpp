#include "app/cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <limits>

#include "analysis/launchers/job_work.h"
#include "app/cli/exit_code.h"
#include "app/cli/output.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"

namespace saccade::cli {
namespace {

std::vector<Command>& registered() {
  static std::vector<Command> list;
  return list;
}

OutputMode mode;
Progress* shown_bar = nullptr;
std::atomic<bool> stop{false}, to_be_continued{false};

std::string duration(double seconds) {
  char text[32];
  const int s = static_cast<int>(seconds + 0.5);
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%d:%02d h", s / 3600, s / 60 % 60);
  else if (s >= 60)
    std::snprintf(text, sizeof text, "%d:%02d min", s / 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%d s", s);
  return text;
}

std::atomic<int64_t> stopped_at{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

/// `timeout`, a batch system or a closed terminal send one wish to stop more than once, to the process and to its group: within a second
/// signals are one.
extern "C" void on_stop_signal(int) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = time.tv_sec * 1'000'000'000LL + time.tv_nsec;
  if (!stop.exchange(true))
    stopped_at = now;
  else if (const int64_t first = stopped_at; first != 0 && now - first > 1'000'000'000LL && !to_be_continued)
    _exit(130);
}

extern "C" void on_end_of_time(int) {
  to_be_continued = true;
  stop = true;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

RegisterCommand::RegisterCommand(Command command) { registered().push_back(std::move(command)); }

const std::vector<Command>& commands() {
  std::vector<Command>& list = registered();
  std::sort(list.begin(), list.end(), [](const Command& a, const Command& b) { return a.name < b.name; });
  return list;
}

OutputMode& output_mode() { return mode; }
bool json_output() { return mode.json; }

void print_result(const nlohmann::json& json, const std::string& text) {
  // Text from run directories may hold any bytes: replace what is not UTF-8 rather than fail.
  std::cout << (mode.json ? json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) : text);
  if (mode.json || text.empty() || text.back() != '\n') std::cout << '\n';
  if (!std::cout.flush()) throw Error("the result cannot be written to standard output");
}

void say(const std::string& line) {
  if (mode.quiet) return;
  if (shown_bar) shown_bar->clear();
  std::cerr << line << std::endl;
}

void warn(const std::string& line) {
  if (shown_bar) shown_bar->clear();
  std::cerr << printable(line) << std::endl;
}

Progress::Progress(std::string label) : label_(std::move(label)), started_(now()) {
  const char* terminal = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) && !(terminal && std::string(terminal) == "dumb");
}

Progress::~Progress() {
  if (shown_bar == this) std::cerr << std::endl;
  shown_bar = nullptr;
}

void Progress::clear() {
  std::cerr << "\r\033[K";
  shown_bar = nullptr;
}

double Progress::left(double fraction, double time) const {
  if (!first_ || fraction <= first_->fraction) return std::numeric_limits<double>::quiet_NaN();
  return (time - first_->time) * (1 - fraction) / (fraction - first_->fraction);
}

void Progress::update(double fraction, const std::string& detail) {
  if (mode.quiet) return;
  const double time = now(), pause = terminal_ ? 0.1 : 10.0;
  fraction = std::clamp(fraction, 0.0, 1.0);
  if (!first_) first_ = Mark{fraction, time};
  if (drawn_ && time - last_ < pause && fraction < 1) return;
  const double seconds = left(fraction, time);
  const std::string eta = fraction >= 1 ? duration(time - started_) : std::isnan(seconds) ? "" : duration(seconds) + " left";
  if (terminal_) {
    constexpr int kWidth = 24;
    const int filled = static_cast<int>(fraction * kWidth);
    std::string bar;
    for (int i = 0; i < kWidth; ++i) bar += i < filled ? "█" : "·";
    std::cerr << "\r\033[K" << label_ << ' ' << bar << ' ' << static_cast<int>(fraction * 100) << " %  " << detail << "  " << eta
              << std::flush;
    shown_bar = this;
  } else {
    std::cerr << label_ << ": " << static_cast<int>(fraction * 100) << " %" << (detail.empty() ? "" : ", " + detail)
              << (eta.empty() ? "" : ", " + eta) << std::endl;
  }
  drawn_ = true;
  last_ = time;
}

const std::atomic<bool>& stop_requested() { return stop; }
int exit_code_of(int code) { return code == 130 && to_be_continued ? kToBeContinued : code; }

void unblock_end_of_time() {
  sigset_t end_of_time;
  sigemptyset(&end_of_time), sigaddset(&end_of_time, SIGUSR2);
  ::sigprocmask(SIG_UNBLOCK, &end_of_time, nullptr);
}

void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal, on_stop_signal);
  handle(SIGUSR2, on_end_of_time);
  unblock_end_of_time();
  std::signal(SIGPIPE, SIG_IGN);
  heed_stop(stop);
}

}  // namespace saccade::cli
