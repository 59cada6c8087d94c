// saccade queue list | add | seeds | pause | go-on | move | remove | put-back | jobs: what waits for a device of this machine.
#include "analysis/studies/queue.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "analysis/studies/queue_worker.h"
#include "analysis/studies/study_folder.h"
#include "analysis/training/training_run.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/host_call.h"
#include "app/cli/jobs_option.h"
#include "app/cli/output.h"
#include "app/cli/this_program.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

struct Options {
  std::string device, entry, out, jobs, on;
  std::vector<std::string> overrides;
  int64_t place = 1, count = 1, id = 0;
  bool now = false;
};

/// The queue of --device, or the only one there is. Throws UsageError.
DeviceQueue chosen_queue(const std::string& device) {
  if (!device.empty()) return DeviceQueue(to_string(parse_device(device)));
  std::vector<DeviceQueue> queues = DeviceQueue::all();
  if (queues.size() == 1) return queues.front();
  if (queues.empty()) return DeviceQueue("cpu");
  throw UsageError("there are queues of several devices; name one with --device");
}

Json to_json(const DeviceQueue& queue) {
  const QueueState state = queue.read();
  Json entries = Json::array();
  for (const QueueEntry& e : state.entries)
    entries.push_back({{"id", e.id}, {"kind", e.kind}, {"directory", e.directory.string()}, {"added", e.added}});
  const auto worker = queue.worker();
  return {{"device", queue.device()},
          {"paused", state.paused},
          {"jobs", state.jobs == kJobsAsPays ? Json("auto") : Json(state.jobs)},
          {"worker", worker ? Json(worker->process) : Json()},
          {"entries", entries},
          {"log", queue.log_file().string()}};
}

std::string to_text(const DeviceQueue& queue) {
  const QueueState state = queue.read();
  const auto worker = queue.worker();
  const std::string jobs = state.jobs == kJobsAsPays ? "as many runs as pay" : jobs_text(state.jobs) + (state.jobs == 1 ? " run" : " runs");
  std::string text = queue.device() + ": " + jobs + " at a time, " +
                     (state.paused ? "paused"
                      : worker     ? "worked off by process " + std::to_string(worker->process)
                                   : "at rest") +
                     "\n";
  if (!state.paused && !worker && !state.entries.empty()) text += "nobody works it off (the machine was restarted?): saccade queue go-on\n";
  std::vector<std::vector<std::string>> rows;
  for (const QueueEntry& e : state.entries) rows.push_back({std::to_string(e.id), e.kind, e.directory.string(), e.added});
  return text + (rows.empty() ? "empty\n" : table({"id", "kind", "folder", "added"}, rows));
}

int there(const std::string& verb, const Options& options);

int list_queues(const Options& options) {
  if (!options.on.empty()) return there("list", options);
  std::vector<DeviceQueue> queues = DeviceQueue::all();
  if (!options.device.empty()) queues = {chosen_queue(options.device)};
  Json json = Json::array();
  std::string text;
  for (const DeviceQueue& queue : queues) json.push_back(to_json(queue)), text += (text.empty() ? "" : "\n") + to_text(queue);
  print_result(json, text.empty() ? "no queue has been used on this machine" : text);
  return 0;
}

int show(const DeviceQueue& queue) {
  print_result(to_json(queue), to_text(queue));
  return 0;
}

/// A worker that has just been started takes a moment to say so: until then the queue would be shown as one that nobody works off.
int work_off_and_show(const DeviceQueue& queue) {
  constexpr int kTries = 40;
  constexpr std::chrono::milliseconds kPause(50);
  if (queue.ensure_worker(this_program()))
    for (int i = 0; i < kTries && !queue.worker() && !queue.read().entries.empty(); ++i) std::this_thread::sleep_for(kPause);
  return show(queue);
}

void set_jobs(const DeviceQueue& queue, const Options& options) {
  if (!options.jobs.empty()) queue.edit([&](QueueState& state) { state.jobs = parse_jobs(options.jobs); });
}

/// The same command for the queue of a host. Throws UsageError where --on names none.
int there(const std::string& verb, const Options& options) {
  if (where_named(options.on) != Where::host) throw UsageError("--on " + options.on + " is no host; only those have queues");
  const std::string entry = options.id > 0 ? std::to_string(options.id) : options.entry;
  Json request{{"ask", "queue"}, {"verb", verb}, {"device", options.device}, {"entry", entry}, {"place", options.place}};
  request.update({{"now", options.now}, {"jobs", options.jobs}});
  return print_host_answer(options.on, std::move(request));
}

/// A config, for the queue of a host.
int add_there(const Options& options) {
  if (where_named(options.on) != Where::host) throw UsageError("--on " + options.on + " is no host; only those have queues");
  if (options.out.empty()) throw UsageError("queue add: --out is missing, the name of the run to create");
  return start_on_host(options.on, options.out, saccade::to_json(load_config_file(options.entry, options.overrides)), true);
}

/// A config to train (with --out), a run to take up again, or a study.
int add(const Options& options) {
  if (!options.on.empty()) return add_there(options);
  const bool study = holds_study(options.entry), run = holds_run(options.entry);
  if (!study && !run && options.out.empty()) throw UsageError("queue add: --out is missing, the run directory to create");
  if ((study || run) && !(options.out.empty() && options.overrides.empty()))
    throw UsageError("queue add: --out and --set go with a config, and " + options.entry + " is a " + (study ? "study" : "run"));
  RunConfig config;
  if (study)
    config = view_study(options.entry).wanted.front().run.config;
  else if (run)
    config = resolve_config(read_run_info(options.entry).config, options.entry);
  else
    config = load_config_file(options.entry, options.overrides);
  const DeviceQueue queue(options.device.empty() ? queue_device(config) : to_string(parse_device(options.device)));
  if (study)
    enqueue_study(queue, options.entry);
  else
    enqueue_run(queue, run ? options.entry : options.out, run ? Json() : saccade::to_json(config));
  set_jobs(queue, options);
  return work_off_and_show(queue);
}

/// Seeds of the runs in a folder that repeat this one, its own too.
std::set<int64_t> seeds_beside(const fs::path& directory) {
  std::set<int64_t> seeds;
  const Run of(directory, {.most_points = 0, .outline = true});
  for (const fs::path& other : find_runs(directory.parent_path())) {
    const Run run(other, {.most_points = 0, .outline = true});
    if (run.setting() == of.setting()) seeds.insert(run.info().seed);
  }
  return seeds;
}

/// More seeds of a run: in its study, where it is of one, else runs beside it.
int seeds(const Options& options) {
  const fs::path directory = fs::absolute(options.entry).lexically_normal();
  if (!holds_run(directory)) throw UsageError(options.entry + " is no run directory");
  if (const auto origin = read_run_origin(directory))
    throw UsageError(options.entry + " is a mirror of a run on " + origin->host +
                     "; its seeds are queued there: saccade queue seeds, on that host");
  RunConfig config = resolve_config(read_run_info(directory).config, options.entry);
  const DeviceQueue queue(options.device.empty() ? queue_device(config) : to_string(parse_device(options.device)));
  if (const auto study = study_of_run(directory)) {
    const StudyView view = view_study(*study);
    const auto wanted =
        std::find_if(view.wanted.begin(), view.wanted.end(), [&](const WantedRun& w) { return w.name == directory.filename(); });
    if (wanted == view.wanted.end())
      throw UsageError(options.entry + " is a branch, or no longer a run of its study; name the study's cell: saccade study seeds");
    const std::string cell = view.cells[wanted->run.cell].name;
    const std::map<std::string, std::vector<int64_t>> added = add_seeds(*study, options.count, {cell});
    for (const int64_t seed : added.at(cell)) say(cell + ": seed " + std::to_string(seed) + " added");
    enqueue_study(queue, *study);
  } else {
    std::set<int64_t> taken = seeds_beside(directory);
    std::string name = directory.filename().string();
    const std::string own = "-seed" + std::to_string(config.training.seed);
    if (name.ends_with(own)) name.resize(name.size() - own.size());
    int64_t added = 0;
    for (int64_t seed = 1; added < options.count; ++seed) {
      const fs::path to = directory.parent_path() / (name + "-seed" + std::to_string(seed));
      if (!taken.insert(seed).second || fs::exists(to)) continue;
      config.training.seed = seed;
      enqueue_run(queue, to, saccade::to_json(config));
      say(to.filename().string() + " added");
      ++added;
    }
  }
  return work_off_and_show(queue);
}

/// The runs that entries of the queue have at work.
std::vector<fs::path> live_runs(const QueueState& state) {
  std::vector<fs::path> live;
  for (const QueueEntry& entry : state.entries) {
    std::error_code none;
    if (entry.kind == "run" && is_live(entry.directory)) live.push_back(entry.directory);
    for (const auto& run : fs::directory_iterator(entry.directory / "runs", none))
      if (entry.kind == "study" && is_live(run.path())) live.push_back(run.path());
  }
  return live;
}

int pause(const Options& options) {
  if (!options.on.empty()) return there("pause", options);
  const DeviceQueue queue = chosen_queue(options.device);
  const QueueState state = queue.edit([&](QueueState& s) { s.paused = true, s.stop_runs = options.now; });
  if (options.now)
    for (const fs::path& run : live_runs(state)) stop_run(run);
  return show(queue);
}

int go_on(const Options& options) {
  if (!options.on.empty()) return there("go-on", options);
  const DeviceQueue queue = chosen_queue(options.device);
  queue.edit([](QueueState& s) { s.paused = s.stop_runs = false; });
  set_jobs(queue, options);
  return work_off_and_show(queue);
}

int move(const Options& options) {
  if (!options.on.empty()) return there("move", options);
  const DeviceQueue queue = chosen_queue(options.device);
  queue.edit([&](QueueState& state) {
    const size_t at = find_entry(state, options.entry);
    const QueueEntry entry = state.entries[at];
    state.entries.erase(state.entries.begin() + static_cast<std::ptrdiff_t>(at));
    const auto place = std::min<int64_t>(options.place - 1, static_cast<int64_t>(state.entries.size()));
    state.entries.insert(state.entries.begin() + place, entry);
  });
  return show(queue);
}

int remove(const Options& options) {
  if (!options.on.empty()) return there("remove", options);
  const DeviceQueue queue = chosen_queue(options.device);
  take_out(queue, options.entry);
  return show(queue);
}

int put_back(const Options& options) {
  if (!options.on.empty()) return there("put-back", options);
  const DeviceQueue queue = chosen_queue(options.device);
  saccade::put_back(queue, options.id);
  return work_off_and_show(queue);
}

/// What `ensure_worker` starts: not for people.
int work(const Options& options) {
  catch_stop_signals();
  const DeviceQueue queue(options.device);
  QueueWorker(queue, this_program(), [](const std::string& line) { warn(utc_now() + " " + line); }).work(stop_requested());
  return 0;
}

void add_jobs(CLI::App& app, const std::shared_ptr<Options>& options) { add_jobs_option(app, options->jobs); }

void add_entry(CLI::App& app, const std::shared_ptr<Options>& options) {
  app.add_option("ENTRY", options->entry, "Its id, folder or the folder's name")->required();
}

const RegisterCommand command{
    {"queue", "What waits for a device of this machine: studies and runs, in order.", "saccade queue list", [](CLI::App& app) {
       auto chosen = std::make_shared<std::function<int()>>();
       const auto declare = [&](const std::string& name, const std::string& example, const std::string& summary, auto perform,
                                auto options_of) {
         CLI::App* sub = app.add_subcommand(name, summary);
         auto options = std::make_shared<Options>();
         sub->add_option("--device", options->device, "cpu, cuda:0 … (default: the only queue there is)");
         sub->add_option("--on", options->on, "On a host that is set up (saccade host list)");
         options_of(*sub, options);
         sub->footer("Example: saccade queue " + example);
         sub->callback([chosen, options, perform] { *chosen = [options, perform] { return perform(*options); }; });
         return sub;
       };
       using Shared = std::shared_ptr<Options>;
       app.require_subcommand(1);
       declare("list", "list", "Entries, order, and who works them off.", list_queues, [](CLI::App&, const Shared&) {});
       declare("add", "add run.json --out runs/first", "Add a config to train, a stopped run, or a study.", add,
               [](CLI::App& sub, const Shared& o) {
                 sub.add_option("CONFIG-OR-FOLDER", o->entry, "Config file, preset, run directory or study folder")->required();
                 sub.add_option("--out,-o", o->out, "Run directory to create, for a config");
                 one_at_a_time(sub.add_option("--set", o->overrides, "Override a value of the config: --set training.seed=2"), "KEY=VALUE");
                 add_jobs(sub, o);
               });
       declare("seeds", "seeds runs/first 2", "Repeat a run with seeds that it has not had: in its study, or as runs beside it.", seeds,
               [](CLI::App& sub, const Shared& o) {
                 sub.add_option("RUN", o->entry, "Run directory")->required();
                 sub.add_option("COUNT", o->count, "How many more: the smallest that there are not, so that they pair")
                     ->check(CLI::Range(1, 1000))
                     ->capture_default_str();
               });
       declare("pause", "pause --now", "Start nothing more; runs at work go on.", pause, [](CLI::App& sub, const Shared& o) {
         sub.add_flag("--now", o->now, "Stop runs at work too, at a checkpoint; go-on takes them up again");
       });
       declare("go-on", "go-on", "Work the queue off (again).", go_on, add_jobs);
       declare("move", "move 7 1", "Move an entry to a place in the order.", move, [](CLI::App& sub, const Shared& o) {
         add_entry(sub, o);
         sub.add_option("PLACE", o->place, "1: first")->required()->check(CLI::Range(1, 1'000'000));
       });
       declare("remove", "remove 7", "Take an entry out of the queue; its runs stay, and those at work go on.", remove, add_entry);
       declare("put-back", "put-back 7", "Undo of remove: the entry stands again where it stood.", put_back,
               [](CLI::App& sub, const Shared& o) {
                 sub.add_option("ID", o->id, "The number that it had")
                     ->required()
                     ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
               });
       declare("work", "work --device cpu", "", work, [](CLI::App&, const Shared&) {})->group("");  // started by the others
       return [chosen] { return (*chosen)(); };
     }}};

}  // namespace
}  // namespace saccade::cli
