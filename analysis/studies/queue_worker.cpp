#include "analysis/studies/queue_worker.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "analysis/runs/run_info.h"
#include "analysis/studies/file_lock.h"
#include "analysis/studies/pace_watch.h"
#include "analysis/studies/study_folder.h"
#include "analysis/training/training_run.h"
#include "kernels/engine/error.h"
#include "models/corpus/sha256.h"
#include "models/corpus/vocabulary.h"
#include "models/training/plan.h"
#include "models/training/run_cost.h"

namespace saccade {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kMostCrashes = 3;  ///< of a run that comes no further between them
constexpr auto kPause = std::chrono::milliseconds(100);

/// What could be started next.
struct Candidate {
  int64_t entry = 0;
  std::string name;
  fs::path directory, study;  ///< study: empty for a run that stands in the queue itself
  nlohmann::json config;      ///< null for a run that has begun
  fs::path config_file, log;
  int64_t devices = 0;  ///< that its study is spread over, whatever the config says; 0: it is not
  bool alone = false;   ///< of a study that compares seconds: shares the device with nothing where that is not asked for

  /// Empty for a begun run that cannot be read: taking it up will say why.
  nlohmann::json resolved() const try { return config.is_null() ? read_run_info(directory).config : config; } catch (const Error&) {
    return nlohmann::json::object();
  }
};

struct Job {
  Candidate what;
  int process = 0;
  int64_t bytes = 0;        ///< of device memory, as planned; 0: not asked
  int64_t step_before = 0;  ///< of the run when this process took it up
  int64_t threads = 0;      ///< of the CPU; 0: all
  std::string model = {};   ///< model_of() its config
  bool told_to_stop = false;
};

/// A run of the queue's entries that a process trains which an earlier worker started.
struct OtherJob {
  fs::path directory;
  int64_t threads = 0;
  std::string model;
};

struct KnownStudy {
  StudyView view;
  Clock::time_point read, again;
};

int64_t step_of(const fs::path& run) try { return holds_run(run) ? read_run_info(run).step : 0; } catch (const Error&) {
  return 0;
}

std::optional<RunState> state_of(const fs::path& run) try {
  return holds_run(run) ? std::optional(read_run_info(run).state) : std::nullopt;
} catch (const Error&) {
  return {};
}

std::string last_line(const fs::path& log) try {
  std::string text = read_text(log);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::string last = text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  constexpr std::string_view kSays = "saccade: ";  // who is told knows
  return last.starts_with(kSays) ? last.substr(kSays.size()) : last;
} catch (const Error&) {
  return "it said nothing";
}

/// Nothing where it cannot be told: the run will say why.
std::optional<Plan> plan_of(const nlohmann::json& config) try {
  const RunConfig run = resolve_config(config, "run");
  return make_plan(run, vocabulary_of(run.data.tokenizer));
} catch (const Error&) {
  return {};
}

int64_t device_bytes(const nlohmann::json& config) {
  const std::optional<Plan> plan = plan_of(config);
  return plan ? plan->device_bytes() : 0;
}

/// The least that a run writes: its last checkpoint.
double disk_bytes(const nlohmann::json& config) {
  const std::optional<Plan> plan = plan_of(config);
  return plan ? static_cast<double>(checkpoint_bytes(*plan)) : 0;
}

/// Where `directory` is, or is to be.
double free_bytes(fs::path directory) {
  std::error_code error;
  while (!fs::exists(directory, error) && directory.has_relative_path()) directory = directory.parent_path();
  const fs::space_info space = fs::space(directory, error);
  return error ? std::numeric_limits<double>::infinity() : static_cast<double>(space.available);
}

int64_t threads_of(const nlohmann::json& config) { return config.value("threads", int64_t{0}); }

int64_t cores() { return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency())); }

bool ended(RunState state) { return state == RunState::finished || state == RunState::diverged; }

}  // namespace

struct QueueWorker::Impl {
  DeviceQueue queue;
  fs::path program;
  std::function<void(const std::string&)> say;
  bool by_pace = false;  ///< kJobsAsPays means what it means on a GPU
  std::vector<Job> jobs = {};
  std::map<fs::path, KnownStudy> studies = {};
  std::map<fs::path, int> crashes = {};
  std::vector<OtherJob> others = {};
  int64_t waiting = 0;  ///< runs that could be started
  DeviceSharing sharing = {};
  PaceWatch paces = {};
  std::map<fs::path, double> needs = {};  ///< disk_bytes() of what could be started next
  fs::path without_room = {};             ///< the run that waits for room, as was said
  std::string not_started = {};           ///< why the last one that was to start did not, as was said

  void remove_entry(int64_t id) const {
    queue.edit([&](QueueState& state) { std::erase_if(state.entries, [&](const QueueEntry& e) { return e.id == id; }); });
  }

  /// Of an entry that leaves the queue; what it said stays where it said anything and did not come to its end, until the run is taken up
  /// again.
  static void remove_files(const Candidate& what, bool has_ended) {
    std::error_code none;
    if (what.study.empty()) remove_run_file(what.config_file);
    if (has_ended || fs::is_empty(what.log, none)) remove_run_file(what.log);
  }

  bool is_mine(const fs::path& directory) const {
    return std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) { return job.what.directory == directory; });
  }

  /// Read anew when a run of it ended, and every now and then: in a twentieth of the time at most.
  const StudyView& view(const fs::path& directory) {
    const auto known = studies.find(directory);
    if (known != studies.end() && Clock::now() < known->second.again) return known->second.view;
    const auto begin = Clock::now();
    KnownStudy study{view_study(directory), begin, {}};
    study.again = Clock::now() + std::max<Clock::duration>(std::chrono::seconds(1), 20 * (Clock::now() - begin));
    return (studies[directory] = std::move(study)).view;
  }

  std::optional<Candidate> of_run(const QueueEntry& entry) {
    if (is_mine(entry.directory)) return {};
    if (is_live(entry.directory)) {
      add_other(entry.directory);
      return {};
    }
    Candidate next{entry.id, entry.directory.filename().string(), entry.directory, {}, {}, {}, {}};
    const std::string file = "run-" + hex(sha256(entry.directory.string())).substr(0, 12);  // the same for each entry of this run
    next.config_file = queue.folder() / (file + ".json");
    next.log = queue.folder() / (file + ".txt");
    if (const auto state = state_of(entry.directory); state && ended(*state)) {
      say(entry.directory.string() + ": " + to_string(*state));
      remove_files(next, true);
      remove_entry(entry.id);
      return {};
    }
    if (!holds_run(entry.directory)) next.config = entry.config;
    ++waiting;
    return next;
  }

  /// Of a study that cannot go on: its status says why, as far as that can be written.
  void let_go(const fs::path& study, int64_t entry, const std::string& why) {
    say(study.string() + ": " + why);
    remove_entry(entry);
    try {
      edit_study_state(study, [&](StudyState& state) { state.left_queue = "left the queue of " + queue.device() + ", " + why; });
    } catch (const std::exception& error) {
      say(error.what());
    }
  }

  /// Takes a study out that is complete or blocked also when it is read under the lock: one that is extended meanwhile stays.
  void end_study(const QueueEntry& entry) {
    std::string why;
    queue.edit([&](QueueState& state) {
      const StudyView now = view_study(entry.directory);
      why = now.complete() ? "complete" : now.blocked();
      if (!why.empty()) std::erase_if(state.entries, [&](const QueueEntry& e) { return e.id == entry.id; });
    });
    studies.erase(entry.directory);
    if (!why.empty()) say(entry.directory.string() + ": " + why);
  }

  static fs::path log_of(const QueueEntry& study, const WantedRun& wanted) { return study.directory / "logs" / (wanted.name + ".txt"); }

  std::optional<Candidate> of_study(const QueueEntry& entry) try {
    const StudyView& study = view(entry.directory);
    const auto directory_of = [&](const WantedRun& wanted) { return entry.directory / "runs" / wanted.name; };
    for (const WantedRun& wanted : study.wanted)
      if (wanted.status == WantedRun::Status::live && !is_mine(directory_of(wanted))) add_other(directory_of(wanted));
    const std::vector<const WantedRun*> ready = study.ready();
    for (size_t i = 0; i < ready.size(); ++i) {
      const WantedRun* wanted = ready[i];
      const fs::path directory = directory_of(*wanted);
      if (is_mine(directory) || is_live(directory) || is_claimed(log_of(entry, *wanted))) continue;
      if (const auto state = state_of(directory); state && ended(*state)) continue;  // since the study was read
      waiting += static_cast<int64_t>(ready.size() - i);
      Candidate next{entry.id, wanted->name, directory, entry.directory, {}, {}, {}};
      next.devices = std::ssize(study.state.devices);
      next.config_file = entry.directory / "configs" / (wanted->name + ".json");
      next.log = log_of(entry, *wanted);
      if (!holds_run(directory)) next.config = to_json(wanted->run.config);
      next.alone = study.study.equal && study.study.equal->what == StudyEqual::What::seconds;
      return next;
    }
    const bool mine = std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) { return job.what.entry == entry.id; });
    const std::string why = study.complete() ? "complete" : study.blocked();
    if (!mine && !why.empty()) end_study(entry);
    return {};
  } catch (const std::exception& error) {
    let_go(entry.directory, entry.id, error.what());
    return {};
  }

  /// Unless it is on another device, where another queue's worker has begun it.
  void add_other(const fs::path& directory) try {
    const RunInfo info = read_run_info(directory);
    const nlohmann::json& config = info.config;
    if (info.provenance.value("device", queue.device()) != queue.device()) return;
    others.push_back({directory, threads_of(config), model_of(config)});
  } catch (const Error&) {  // nobody knows what it takes
    others.push_back({directory, 0, directory.string()});
  }

  std::optional<Candidate> next(const QueueState& state) {
    others.clear(), waiting = 0;
    std::optional<Candidate> first;
    for (const QueueEntry& entry : state.entries) {  // all, for `others`
      std::optional<Candidate> candidate = entry.kind == "study" ? of_study(entry) : of_run(entry);
      if (!first) first = std::move(candidate);
    }
    return first;
  }

  bool on_cpu() const { return queue.device() == "cpu"; }

  /// Threads of the CPU for a run that begins beside those at work; nothing where they have all cores. What waits begins with equal shares.
  std::optional<int64_t> cores_for(const Candidate& candidate) const {
    int64_t left = cores();
    const auto take = [&](int64_t threads) { left -= threads > 0 ? threads : cores(); };
    for (const Job& job : jobs) take(job.threads);
    for (const OtherJob& other : others) take(other.threads);
    if (left <= 0) return {};
    const int64_t own = threads_of(candidate.resolved());
    if (own > left) return {};
    return own > 0 ? own : std::max<int64_t>(1, left / std::clamp<int64_t>(waiting, 1, left));
  }

  std::vector<RunAtWork> at_work() const {
    std::vector<RunAtWork> runs;
    for (const Job& job : jobs) runs.push_back({job.what.directory, job.model});
    for (const OtherJob& other : others) runs.push_back({other.directory, other.model});
    return runs;
  }

  /// Measures what the runs at work make together, and says what another one has brought.
  void watch_paces() try {
    const std::vector<RunAtWork> runs = at_work();
    paces.follow(runs);
    if (paces.poll(sharing) == 0 || runs.size() < 2) return;
    std::vector<std::string> models;
    for (const RunAtWork& run : runs) models.push_back(run.model);
    const auto together = static_cast<int64_t>(runs.size());
    if (const std::optional<double> gain = sharing.gain(models, together)) {
      std::array<char, 96> text{};
      std::snprintf(text.data(), text.size(), "%d runs at a time make %.2f times the tokens a second of %d", static_cast<int>(together),
                    *gain, static_cast<int>(together - 1));
      say(text.data());
    }
  } catch (const Error& error) {
    say(std::string("paces are not known: ") + error.what());
  }

  /// Whether the queue's wish for runs at a time lets one more begin beside those at work.
  bool may_share(const Candidate& candidate, int64_t most) const {
    if (most != kJobsAsPays) return static_cast<int64_t>(jobs.size() + others.size()) < most;
    if (candidate.alone || std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.what.alone; })) return false;
    if (on_cpu() && !by_pace) return cores_for(candidate).has_value();
    std::vector<std::string> models;
    for (const RunAtWork& run : at_work()) models.push_back(run.model);
    return sharing.may_add(models);
  }

  /// One run always may; more as far as `most` and the memory go, by the plans of all of them and by what is free now.
  bool fits(const Candidate& candidate, int64_t most, int64_t& bytes) {
    const bool first = jobs.empty() && others.empty();
    if (!first && !may_share(candidate, most)) return false;
    if (most == 1) return true;
    bytes = device_bytes(candidate.resolved());
    if (first) return true;
    int64_t planned = bytes;
    for (const Job& job : jobs) planned += job.bytes;
    const MemoryState memory = device_memory(parse_device(queue.device()));
    return planned <= memory.total - memory.total / 20 && bytes + bytes / 10 <= memory.available;
  }

  /// A full disk would end one run after the other: the next one waits until it can write what it must.
  bool has_room(const Candidate& candidate) {
    constexpr double kSpare = 1.2;  // as require_free_space() has it
    if (!needs.contains(candidate.directory)) needs[candidate.directory] = disk_bytes(candidate.resolved());
    const double needed = kSpare * needs[candidate.directory], free = free_bytes(candidate.directory);
    if (needed <= free) {
      without_room.clear();
      return true;
    }
    if (std::exchange(without_room, candidate.directory) != candidate.directory) {
      std::array<char, 96> text{};
      std::snprintf(text.data(), text.size(), ": waits for room on the disk, %.1f MB are needed and %.1f free", needed / 1e6, free / 1e6);
      say(candidate.name + text.data());
    }
    return false;
  }

  /// For a run that may have company, on this device or on those that share its study; 0: as its config says.
  int64_t share_of_cores(const Candidate& candidate, int64_t most) const {
    const int64_t devices = std::max<int64_t>(1, candidate.devices);
    if (most * devices == 1 || threads_of(candidate.resolved()) > 0) return 0;
    if (most != kJobsAsPays) return std::max<int64_t>(1, cores() / (most * devices));
    return on_cpu() && !candidate.alone && !by_pace ? cores_for(candidate).value_or(0) : 0;
  }

  /// What the queue's device has of a config: a study that is spread over devices, and a config that leaves it open, go there.
  std::vector<std::string> device_words(const Candidate& candidate, const nlohmann::json& config) const {
    const std::string wanted = config.value("device", "auto");
    const bool open = wanted == "auto" || (wanted == "cuda" && !on_cpu());
    return candidate.devices > 0 || open ? std::vector<std::string>{"--device", queue.device()} : std::vector<std::string>();
  }

  /// A program that cannot be started now, for it is being replaced or the machine has no room for a process, is tried again.
  std::optional<int> started(const std::vector<std::string>& command, const Descriptor& log) try {
    const int process = start_detached(command, log);
    not_started.clear();
    return process;
  } catch (const Error& error) {
    if (std::exchange(not_started, error.what()) != error.what()) say(std::string(error.what()) + "; tried again until it can");
    return {};
  }

  void start(const Candidate& candidate, int64_t most, int64_t bytes) {
    const std::optional<Descriptor> log = claim_log(candidate.log);
    if (!log) return;  // another queue's worker was faster
    const nlohmann::json config = candidate.resolved();
    const bool begins = !candidate.config.is_null();
    int64_t threads = threads_of(config);
    std::vector<std::string> command{program.string(), "-q"};
    if (!begins) {
      command.insert(command.end(), {"resume", candidate.directory.string()});
    } else {
      replace_text(candidate.config_file, candidate.config.dump(2) + "\n");
      command.insert(command.end(), {"train", candidate.config_file.string(), "--out", candidate.directory.string()});
      if (const int64_t share = share_of_cores(candidate, most); share > 0) {  // the same bytes for any number of threads
        threads = share;
        command.insert(command.end(), {"--set", "threads=" + std::to_string(share)});
      }
    }
    for (const std::string& word : device_words(candidate, config)) command.push_back(word);
    const int64_t before = step_of(candidate.directory);
    const std::optional<int> process = started(command, *log);
    if (!process) return;
    jobs.push_back({candidate, *process, bytes, before, threads, model_of(config)});
    say(candidate.name + (begins ? ": started" : ": taken up from step " + std::to_string(before)));
  }

  void give_up(const Candidate& what, const std::string& why) {
    say(what.name + ": " + why);
    remove_files(what, false);
    if (what.study.empty())
      remove_entry(what.entry);
    else
      edit_study_state(what.study, [&](StudyState& state) { state.gave_up[what.name] = why; });
  }

  void note_end(const Job& job, int status) {
    studies.erase(job.what.study);
    const auto state = state_of(job.what.directory);
    if (is_live(job.what.directory)) return;                            // another process was faster
    if (std::error_code none; !fs::exists(job.what.log, none)) return;  // its folder was removed: a study of that name is another one
    if (state && ended(*state)) {
      say(job.what.name + ": " + to_string(*state));
      remove_files(job.what, true);
      return;
    }
    if (WIFSIGNALED(status)) {
      int& count = step_of(job.what.directory) > job.step_before ? crashes[job.what.directory] = 1 : ++crashes[job.what.directory];
      if (count >= kMostCrashes)
        give_up(job.what, "ended " + std::to_string(count) + " times by signal " + std::to_string(WTERMSIG(status)));
      return;
    }
    const QueueState now = queue.read();
    const bool wanted =
        !now.paused && std::any_of(now.entries.begin(), now.entries.end(), [&](const QueueEntry& e) { return e.id == job.what.entry; });
    if (state == RunState::stopped || WEXITSTATUS(status) == 130) {
      if (wanted) give_up(job.what, "stopped by hand");
      return;
    }
    give_up(job.what, last_line(job.what.log));
  }

  void reap() {
    for (size_t i = 0; i < jobs.size();) {
      int status = 0;
      if (::waitpid(jobs[i].process, &status, WNOHANG) != jobs[i].process) {
        ++i;
        continue;
      }
      const Job job = jobs[i];
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i));
      note_end(job, status);
    }
  }

  bool is_to_stop(const Job& job, const QueueState& state) const try {
    if (state.paused && state.stop_runs) return true;
    const bool queued =
        std::any_of(state.entries.begin(), state.entries.end(), [&](const QueueEntry& e) { return e.id == job.what.entry; });
    return !queued && !job.what.study.empty() && read_study_state(job.what.study).stopped;
  } catch (const Error&) {
    return false;
  }

  /// Whoever stops runs says so first and then signals those that hold their locks. Those that still prepare hold none: they hear of it
  /// here. (A second signal a second later would end a run without a checkpoint.)
  void stop_what_must() {
    if (jobs.empty()) return;
    const QueueState state = queue.read();
    for (Job& job : jobs) {
      if (job.told_to_stop || !is_to_stop(job, state)) continue;
      job.told_to_stop = true;
      if (!is_live(job.what.directory)) ::kill(job.process, SIGTERM);
    }
  }

  /// Under the queue's lock, so that nothing starts that was taken out or paused meanwhile. Whether it was started.
  bool start_if_wanted(const Candidate& candidate, int64_t most, int64_t bytes) {
    const size_t before = jobs.size();
    const FileLock lock(queue.edit_lock());
    const QueueState state = queue.read();
    const bool queued =
        std::any_of(state.entries.begin(), state.entries.end(), [&](const QueueEntry& e) { return e.id == candidate.entry; });
    if (queued && !state.paused) start(candidate, most, bytes);
    return jobs.size() > before;
  }

  void start_what_fits() {
    while (true) {
      const QueueState state = queue.read();
      if (state.paused) return;
      const std::optional<Candidate> candidate = next(state);
      if (state.jobs == kJobsAsPays && (by_pace || !on_cpu())) watch_paces();
      int64_t bytes = 0;
      if (!candidate || !fits(*candidate, state.jobs, bytes) || !has_room(*candidate)) return;
      try {
        if (!start_if_wanted(*candidate, state.jobs, bytes)) return;
      } catch (const Error& error) {  // a file of it cannot be written; the other entries go on
        if (candidate->study.empty())
          give_up(*candidate, error.what());
        else
          let_go(candidate->study, candidate->entry, error.what());
      }
    }
  }

  /// Gives the worker's lock up under the queue's, so that what is added then finds no worker and starts one.
  bool may_end(std::optional<RunLock>& mine) {
    if (!jobs.empty()) return false;
    const FileLock lock(queue.edit_lock());
    const QueueState state = queue.read();
    if (!state.paused && !state.entries.empty()) return false;
    mine.reset();
    return true;
  }
};

QueueWorker::QueueWorker(DeviceQueue queue, fs::path program, std::function<void(const std::string&)> say, bool by_pace)
    : impl_(std::make_unique<Impl>(Impl{std::move(queue), std::move(program), std::move(say), by_pace})) {}
QueueWorker::~QueueWorker() = default;

void QueueWorker::work(const std::atomic<bool>& stop) {
  std::optional<RunLock> mine;
  try {
    mine.emplace(impl_->queue.worker_folder());
  } catch (const DataError&) {
    return;  // another process works the queue off
  }
  while (!stop) {
    impl_->reap();
    impl_->stop_what_must();
    impl_->start_what_fits();
    if (impl_->may_end(mine)) return;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace saccade
