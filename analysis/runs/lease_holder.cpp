#include "analysis/runs/lease_holder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "analysis/runs/run_lock.h"
#include "analysis/slurm/slurm_jobs.h"
#include "models/json.h"

namespace saccade {
namespace {

constexpr double kSlurmSeconds = 30;

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

double seconds_of(const timespec& time) { return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec); }

std::string own_pid_namespace() {
  std::array<char, 64> target{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", target.data(), target.size() - 1);
  return length > 0 ? std::string(target.data(), static_cast<size_t>(length)) : "";
}

/// State and start of a process, by proc(5): fields 3 and 22, counted behind its name, which may hold anything.
struct ProcessStat {
  char state = 0;
  int64_t started = 0;
};
std::optional<ProcessStat> stat_of(const std::string& process) {
  const std::string line = first_line("/proc/" + process + "/stat");
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.started;
  return fields ? std::optional(stat) : std::nullopt;
}

/// Whether it runs on this machine. One that ended and that nobody waited for yet does not.
bool runs(const LeaseHolder& holder) {
  if (const auto stat = stat_of(std::to_string(holder.process)))
    return stat->started == holder.started && stat->state != 'Z' && stat->state != 'X';
  return ::kill(holder.process, 0) == 0 || errno != ESRCH;  // where /proc shows no processes of others
}

int64_t own_restarts() {
  const char* count = std::getenv("SLURM_RESTART_COUNT");
  return count ? std::atoll(count) : 0;
}

/// Nothing where the text is no lease of a process: kill(2) takes numbers below 1 for groups of processes, which there always are, and an
/// empty token is that of nobody.
std::optional<LeaseHolder> holder_from(const std::string& text) try {
  const nlohmann::json object = nlohmann::json::parse(text);
  LeaseHolder holder;
  const int64_t process = object.at("process");
  if (process < 1 || process > std::numeric_limits<int>::max()) return {};
  object.at("process").get_to(holder.process);
  object.at("started").get_to(holder.started);
  object.at("host").get_to(holder.host);
  object.at("boot").get_to(holder.boot);
  object.at("pid_namespace").get_to(holder.pid_namespace);
  object.at("job").get_to(holder.job);
  object.at("restart").get_to(holder.restart);
  object.at("token").get_to(holder.token);
  object.at("inode").get_to(holder.inode);
  return holder.token.empty() ? std::nullopt : std::optional(holder);
} catch (const nlohmann::json::exception&) {
  return {};
}

}  // namespace

bool of_this_machine(const LeaseHolder& holder) {
  static const LeaseHolder here = this_process();
  return !holder.boot.empty() && holder.boot == here.boot && holder.pid_namespace == here.pid_namespace;
}

LeaseHolder this_process() {
  LeaseHolder holder;
  holder.process = ::getpid();
  if (const auto stat = stat_of("self")) holder.started = stat->started;
  holder.host = host_name();
  holder.boot = first_line("/proc/sys/kernel/random/boot_id");
  holder.pid_namespace = own_pid_namespace();
  holder.job = own_slurm_job();
  holder.restart = own_restarts();
  std::random_device device;
  while (holder.token.size() < 32) holder.token += "0123456789abcdef"[device() % 16];
  return holder;
}

std::string lease_text(const LeaseHolder& h) {
  const nlohmann::ordered_json object{
      {"process", h.process}, {"started", h.started}, {"host", h.host},   {"boot", h.boot},  {"pid_namespace", h.pid_namespace},
      {"job", h.job},         {"restart", h.restart}, {"token", h.token}, {"inode", h.inode}};
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string describe(const LeaseHolder& holder) {
  return "process " + std::to_string(holder.process) + " on " + holder.host + (holder.job.empty() ? "" : ", Slurm job " + holder.job);
}

std::optional<FoundLease> find_lease(const std::filesystem::path& file) {
  constexpr int kReopened = 5;  // times, when the file server has forgotten what was opened
  for (int tries = 0;; ++tries) {
    const Descriptor open = open_run_file_if_there(file, O_RDONLY);
    if (!open && errno == ENOENT) return {};
    struct stat state {};
    std::array<char, 4096> text{};
    const ssize_t size = open ? ::pread(open.get(), text.data(), text.size(), 0) : -1;
    if (size < 0 || ::fstat(open.get(), &state) != 0) {
      if (errno == ESTALE && tries < kReopened) continue;
      throw_file_error("read", file);
    }
    FoundLease found{holder_from(std::string(text.data(), static_cast<size_t>(size))), false, seconds_of(state.st_mtim)};
    found.copied = found.holder && found.holder->inode != state.st_ino;
    return found;
  }
}

bool known_gone(const LeaseHolder& holder, bool ask_slurm) {
  if (of_this_machine(holder)) return !runs(holder);
  const LeaseHolder here = this_process();
  if (!holder.job.empty() && holder.job == here.job) return holder.restart < here.restart;
  const bool ours = holder.host == here.host && holder.host != "localhost" && !holder.host.empty();
  if (ours && !holder.boot.empty() && !here.boot.empty() && holder.boot != here.boot) return true;  // this machine started again since
  return ask_slurm && !holder.job.empty() && slurm_job_life(holder.job, kSlurmSeconds) == JobLife::ended;
}

bool seems_alive(const FoundLease& lease) {
  if (lease.holder && !lease.copied && of_this_machine(*lease.holder)) return runs(*lease.holder);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::abs(seconds_of(now) - lease.changed) <= kLeaseSilence;
}

}  // namespace saccade
