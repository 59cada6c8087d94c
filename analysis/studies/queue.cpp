#include "analysis/studies/queue.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/studies/file_lock.h"
#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/file_mark.h"
#include "models/corpus/vocabulary.h"
#include "models/training/plan.h"

extern char** environ;

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* kQueueFile = "queue.json";

fs::path queues_folder() { return data_folder() / "queue" / host_name(); }

Json to_json(const QueueEntry& e) {
  return {{"id", e.id}, {"kind", e.kind}, {"directory", e.directory.string()}, {"config", e.config}, {"added", e.added}};
}

QueueEntry entry_from(const Json& e) {
  return {e.at("id"), e.at("kind"), fs::path(e.at("directory").get<std::string>()), e.at("config"), e.at("added")};
}

Json to_json(const QueueState& state) {
  Json entries = Json::array(), taken = Json::array();
  for (const QueueEntry& e : state.entries) entries.push_back(to_json(e));
  for (const TakenEntry& t : state.taken) taken.push_back({{"entry", to_json(t.entry)}, {"place", t.place}});
  return {{"format_version", 1}, {"paused", state.paused}, {"stop_runs", state.stop_runs}, {"jobs", state.jobs}, {"next_id", state.next_id},
          {"entries", entries},  {"taken", taken}};
}

QueueState state_from(const Json& object, const fs::path& file) try {
  QueueState state;
  state.paused = object.at("paused"), state.stop_runs = object.at("stop_runs"), state.jobs = object.at("jobs"),
  state.next_id = object.at("next_id");
  for (const Json& e : object.at("entries")) state.entries.push_back(entry_from(e));
  if (object.contains("taken"))
    for (const Json& t : object.at("taken")) state.taken.push_back({entry_from(t.at("entry")), t.at("place")});
  return state;
} catch (const Json::exception&) {
  throw DataError(file.string() + " is damaged; remove it to begin an empty queue");
}

int64_t add(QueueState& state, const std::string& kind, const fs::path& directory, const Json& config) {
  state.entries.push_back({state.next_id, kind, fs::absolute(directory).lexically_normal(), config, utc_now()});
  return state.next_id++;
}

}  // namespace

DeviceQueue::DeviceQueue(const std::string& device) : device_(device) {
  std::string name = device;
  std::replace(name.begin(), name.end(), ':', '-');
  folder_ = queues_folder() / name;
  make_folders_above(folder_);
  make_run_folder(folder_);
  make_run_folder(worker_folder());
}

std::vector<DeviceQueue> DeviceQueue::all() {
  std::vector<DeviceQueue> queues;
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(queues_folder(), none))
    if (fs::exists(entry.path() / kQueueFile, none)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  for (std::string& name : names) {
    if (name.starts_with("cuda-")) name[4] = ':';
    queues.emplace_back(name);
  }
  return queues;
}

QueueState DeviceQueue::read() const {
  const fs::path file = folder_ / kQueueFile;
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  return state_from(read_sealed_json(file), file);
}

QueueState DeviceQueue::edit(const std::function<void(QueueState&)>& change) const {
  const FileLock lock(edit_lock());
  QueueState state = read();
  change(state);
  write_sealed_json(folder_ / kQueueFile, to_json(state));
  return state;
}

std::optional<LockHolder> DeviceQueue::worker() const { return lock_holder(worker_folder()); }

bool DeviceQueue::ensure_worker(const fs::path& program) const {
  const FileLock lock(edit_lock());  // a worker that finds nothing to do gives its own lock up under this one
  const QueueState state = read();
  if (worker() || state.paused || state.entries.empty()) return false;
  try {
    start_detached({program.string(), "-q", "queue", "work", "--device", device_},
                   open_run_file(log_file(), O_WRONLY | O_CREAT | O_APPEND));
  } catch (const Error& error) {
    throw Error("the worker of the queue of " + device_ + " cannot be started: " + error.what() + " (its log: " + log_file().string() +
                "); what waits there goes on with saccade queue go-on --device " + device_);
  }
  return true;
}

int64_t parse_jobs(const std::string& text) {
  constexpr int64_t kMost = 64;
  if (text == "auto") return kJobsAsPays;
  int64_t jobs = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), jobs);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || jobs < 1 || jobs > kMost)
    throw UsageError(text + " is no number of runs at a time; expected auto, or a number from 1 to " + std::to_string(kMost));
  return jobs;
}

std::string jobs_text(int64_t jobs) { return jobs == kJobsAsPays ? "auto" : std::to_string(jobs); }

int64_t enqueue_study(const DeviceQueue& queue, const fs::path& study) {
  int64_t id = 0;
  const fs::path directory = fs::absolute(study).lexically_normal();
  queue.edit([&](QueueState& state) {
    const auto there =
        std::find_if(state.entries.begin(), state.entries.end(), [&](const QueueEntry& e) { return e.directory == directory; });
    id = there != state.entries.end() ? there->id : add(state, "study", directory, Json());
  });
  return id;
}

int64_t enqueue_run(const DeviceQueue& queue, const fs::path& run, const Json& config) {
  int64_t id = 0;
  const fs::path directory = fs::absolute(run).lexically_normal();
  queue.edit([&](QueueState& state) {
    for (const QueueEntry& entry : state.entries)
      if (entry.directory == directory) throw UsageError(run.string() + " waits already, as entry " + std::to_string(entry.id));
    id = add(state, "run", directory, config);
  });
  return id;
}

size_t find_entry(const QueueState& state, const std::string& name) {
  const fs::path directory = fs::absolute(name).lexically_normal();
  std::string known;
  for (size_t i = 0; i < state.entries.size(); ++i) {
    const QueueEntry& entry = state.entries[i];
    if (std::to_string(entry.id) == name || entry.directory == directory || entry.directory.filename() == name) return i;
    known += (known.empty() ? "" : ", ") + std::to_string(entry.id) + " (" + entry.directory.filename().string() + ")";
  }
  throw UsageError("the queue has no entry \"" + name + "\"; " + (known.empty() ? "it is empty" : "it has " + known));
}

void take_out(const DeviceQueue& queue, const std::string& name) {
  queue.edit([&](QueueState& state) {
    const size_t place = find_entry(state, name);
    state.taken.push_back({state.entries[place], place});
    if (state.taken.size() > kMostTaken) state.taken.erase(state.taken.begin());
    state.entries.erase(state.entries.begin() + static_cast<std::ptrdiff_t>(place));
  });
}

void put_back(const DeviceQueue& queue, int64_t id) {
  queue.edit([&](QueueState& state) {
    if (std::any_of(state.entries.begin(), state.entries.end(), [&](const QueueEntry& e) { return e.id == id; })) return;
    const auto found = std::find_if(state.taken.begin(), state.taken.end(), [&](const TakenEntry& t) { return t.entry.id == id; });
    if (found == state.taken.end()) throw UsageError("nothing with the number " + std::to_string(id) + " was taken out of the queue");
    const TakenEntry taken = *found;
    state.taken.erase(found);
    for (const QueueEntry& entry : state.entries)
      if (entry.directory == taken.entry.directory) return;
    const size_t place = std::min(taken.place, state.entries.size());
    state.entries.insert(state.entries.begin() + static_cast<std::ptrdiff_t>(place), taken.entry);
  });
}

std::string queue_device(const RunConfig& config) {
  return to_string(run_device(config, config.device == "auto" ? vocabulary_of(config.data.tokenizer) : 1));
}

namespace {

/// Whether a program's file is this process's own: in its place, or replaced since.
bool is_this_program(const std::string& program) {
  std::error_code none;
  const std::string own = fs::read_symlink("/proc/self/exe", none).string();
  return own == program || own == program + " (deleted)";
}

/// What starting a file fails with that a linker, or a copy, is writing: it is not there, not executable yet, open, or a part of itself.
bool is_half_written(int error) { return error == ENOENT || error == EACCES || error == ETXTBSY || error == ENOEXEC; }

}  // namespace

int start_detached(const std::vector<std::string>& command, const Descriptor& log) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, log.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, log.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int failed = ::posix_spawn(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  if (is_half_written(failed) && is_this_program(command.front()))
    failed = ::posix_spawn(&child, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw Error("cannot start " + command.front() + ": " + std::strerror(failed));
  return child;
}

namespace {

/// Whether the file that is open stands there still: whoever had it may have removed it when it had done.
bool stands_at(const Descriptor& file, const fs::path& path) {
  struct stat open {
  }, there{};
  return ::fstat(file.get(), &open) == 0 && ::lstat(path.c_str(), &there) == 0 && open.st_ino == there.st_ino &&
         open.st_dev == there.st_dev;
}

}  // namespace

std::optional<Descriptor> claim_log(const fs::path& log) {
  while (true) {
    Descriptor file = open_run_file(log, O_WRONLY | O_CREAT | O_APPEND);
    if (mark_file(file.get(), false) == FileMark::anothers) return {};
    if (!stands_at(file, log)) continue;
    if (::ftruncate(file.get(), 0) != 0) throw_file_error("empty", log);
    return file;
  }
}

bool is_claimed(const fs::path& log) {
  const Descriptor file = open_run_file_if_there(log, O_WRONLY);
  return file.get() >= 0 && mark_file(file.get(), false) == FileMark::anothers;
}

}  // namespace saccade
