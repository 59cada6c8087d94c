// saccade study list | plan | script | start | status | stop | resume | seeds | extend | advance | evaluate | report: grids of runs that
// answer a question.
#include "analysis/studies/study_folder.h"

#include <algorithm>

#include "analysis/figures/count_text.h"
#include "analysis/figures/empty_panels.h"
#include "analysis/figures/recipe.h"
#include "analysis/launchers/batch_script.h"
#include "analysis/launchers/launcher.h"
#include "analysis/remote/mirror.h"
#include "analysis/runs/run_info.h"
#include "analysis/studies/report/numbers.h"
#include "analysis/studies/report/report.h"
#include "analysis/studies/study_plan.h"
#include "analysis/studies/study_progress.h"
#include "analysis/studies/study_queues.h"
#include "analysis/training/training_run.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/host_call.h"
#include "app/cli/jobs_option.h"
#include "app/cli/output.h"
#include "app/cli/render.h"
#include "app/cli/runs_option.h"
#include "app/cli/study_counts.h"
#include "app/cli/study_evaluations.h"
#include "app/cli/study_launch.h"
#include "app/cli/study_status.h"
#include "app/cli/study_wait.h"
#include "app/cli/this_program.h"
#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

struct Options {
  std::string study, out, jobs, on, devices, script, split, data;
  std::vector<std::string> overrides;
  std::optional<double> budget;
  double seconds = std::numeric_limits<double>::infinity();
  std::optional<int64_t> limit;
  bool measure = true, wait = false, dry_run = false, recorded = false;
  double measure_seconds = PlanOptions{}.measure_seconds;
  int64_t rows = 0, seeds = 1, tokens = 0, length = 0;
  std::vector<std::string> cells;
  std::vector<double> values;
};

/// The folder of a study that has begun: as given, in the runs folder, or where `start` puts a shipped one. Throws DataError.
fs::path study_folder(const std::string& name) {
  if (holds_study(name)) return name;
  const fs::path usual = runs_folder() / (name.ends_with(".json") ? fs::path(name).stem() : fs::path(name).filename());
  if (holds_study(usual)) return usual;
  for (const std::string& host : host_names())
    if (holds_study(mirror_folder(host) / usual.filename())) return mirror_folder(host) / usual.filename();
  throw DataError(name + ": no such study has begun (looked in " + usual.string() + " too); saccade study start " + name);
}

fs::path folder_to_start(const Study& study, const Options& options) {
  return options.out.empty() ? runs_folder() / study.name : fs::path(options.out);
}

int list_studies() {
  Json json = Json::array();
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& name : shipped_studies()) {
    const Study study = load_study(find_study(name));
    json.push_back({{"name", name}, {"question", study.question}, {"source", study.source}});
    rows.emplace_back(name, study.question + (study.source.empty() ? "" : " (" + study.source + ")"));
  }
  print_result(json, list(rows));
  return 0;
}

int plan(const Options& options) {
  const bool begun = holds_study(options.study);
  const Study study = begun ? read_study_folder(options.study) : load_study(find_study(options.study), options.overrides);
  const fs::path folder = begun ? fs::path(options.study) : folder_to_start(study, options);
  const StudyView view = holds_study(folder) ? view_study(study, run_summaries(folder), read_study_state(folder)) : view_study(study, {});
  require_startable(view);
  const StudyPlan plan = plan_study(view, {options.measure, options.measure_seconds, say});
  print_result(to_json(plan, options.budget), to_text(plan, options.budget));
  return 0;
}

int status(const Options& options) { return show_study_status(study_folder(options.study), options.rows); }

/// `told`, here and below: goes into the answer.
int set_queue_going(const fs::path& directory, const Options& options, const Json& told) {
  const StudyView view = view_study(directory);
  const std::vector<DeviceQueue> queues = queues_of(view);
  std::string devices;
  for (const DeviceQueue& queue : queues) {
    devices += (devices.empty() ? "" : ", ") + queue.device();
    if (!options.jobs.empty()) queue.edit([&](QueueState& state) { state.jobs = parse_jobs(options.jobs); });
  }
  const Launched launched = launcher_of(directory, this_program())->go_on();
  if (options.wait && !launched.paused)
    if (const int code = wait_for_study(directory, queues); code != 0) return code;
  const StudyView after = options.wait ? view_study(directory) : view;
  Json json{{"directory", directory.string()},
            {"queue", devices},
            {"entry", launched.entry},
            {"paused", launched.paused},
            {"complete", after.complete()},
            {"runs", after.wanted.size()},
            {"later", after.later}};
  json.update(told);
  print_result(json, directory.string() + ": " + counts(after) + "\n" + launched.place +
                         (queues.size() == 1 ? ", entry " + launched.entry : "") +
                         (launched.paused ? "; paused: saccade queue go-on" : "") + "\nsee: saccade study status " + directory.string());
  return 0;
}

int set_cluster_going(const fs::path& directory, const std::string& cluster, const Options& options, const Json& told) {
  const auto launcher = launcher_of(directory, this_program());
  const Launched launched = launcher->go_on();
  if (options.wait)
    if (const int code = wait_on_cluster(directory, *launcher, load_cluster(cluster).poll_seconds); code != 0) return code;
  const StudyView after = view_study(directory);
  const std::string submitted =
      launched.entry.empty() ? "nothing to submit" : "submitted " + counted(launched.runs, "run") + " as job " + launched.entry;
  Json json{{"directory", directory.string()}, {"cluster", cluster},           {"job", launched.entry},       {"submitted", launched.runs},
            {"jobs_before", launched.waiting}, {"complete", after.complete()}, {"runs", after.wanted.size()}, {"later", after.later}};
  json.update(told);
  print_result(json, directory.string() + ": " + counts(after) + "\n" + launched.place + ": " + submitted +
                         (launched.waiting > 0 ? ", " + counted(launched.waiting, "job was", "jobs were") + " there before" : "") +
                         "\nsee: saccade study status " + directory.string());
  return 0;
}

/// Jobs at a time of a cluster: a number, since nothing here sees what its GPUs make together. Throws UsageError.
std::optional<int64_t> jobs_on_cluster(const Options& options) {
  if (options.jobs.empty()) return {};
  const int64_t jobs = parse_jobs(options.jobs);
  if (jobs == kJobsAsPays && options.on != "local")
    throw UsageError("--jobs auto goes with the queue of this machine; a cluster takes a number");
  return jobs == kJobsAsPays ? std::nullopt : std::optional(jobs);
}

/// Those of --devices. Throws UsageError where the study goes elsewhere.
std::vector<std::string> devices_of(const Options& options, const fs::path& directory) {
  if (options.devices.empty()) return {};
  if (options.on.empty() ? chosen_launcher(directory) != "local" : options.on != "local")
    throw UsageError("--devices goes with the queues of this machine; what a cluster's jobs have its profile says");
  return parse_devices(options.devices);
}

int set_going(const fs::path& directory, const Options& options, const Json& told = Json::object()) {
  const int64_t begun = static_cast<int64_t>(run_summaries(directory).size());
  const std::vector<std::string> devices = devices_of(options, directory);
  make_study_folders(directory);
  edit_study_state(directory, [&](StudyState& state) {
    state.gave_up.clear();
    state.left_queue.clear();
    state.stopped = false;
    state.budget_hours = options.budget;
    state.most_runs = options.limit ? std::optional(begun + *options.limit) : std::nullopt;
    if (!devices.empty()) state.devices = devices;
  });
  if (!options.on.empty()) choose_launcher(directory, options.on, jobs_on_cluster(options));
  const std::string cluster = chosen_launcher(directory);
  return cluster == "local" ? set_queue_going(directory, options, told) : set_cluster_going(directory, cluster, options, told);
}

/// Budget, limit and jobs, and the cluster of the host that its runs go to.
Json going_there(Json request, const std::string& host, const Options& options) {
  if (!options.devices.empty()) request["devices"] = options.devices;
  if (options.wait) throw UsageError("--wait does not go with a study on a host; follow it with saccade host sync " + host + " --watch");
  if (options.budget) request["budget"] = *options.budget;
  if (options.limit) request["limit"] = *options.limit;
  request["jobs"] = options.jobs;
  request["cluster"] = load_host(host).cluster;
  return request;
}

int start_there(const Study& study, const fs::path& directory, const Options& options) {
  if (options.dry_run || !options.script.empty())
    throw UsageError("--dry-run and --script go with --on CLUSTER: a host has its own clusters and their scripts");
  const std::string name = directory.filename().string();
  return print_host_answer(options.on, going_there({{"ask", "study"}, {"name", name}, {"study", study.file}}, options.on, options));
}

int start(const Options& options) {
  const Study study = load_study(find_study(options.study), options.overrides);
  const fs::path directory = folder_to_start(study, options);
  const StudyView view = view_study(study, {});
  require_startable(view);  // every config, before anything is written
  if (where_named(options.on) == Where::host) return start_there(study, directory, options);
  if ((options.dry_run || !options.script.empty()) && (options.on.empty() || options.on == "local"))
    throw UsageError("--dry-run and --script go with --on CLUSTER: the queue of this machine has no script");
  if (options.dry_run) return dry_run(study, directory, options.on, jobs_on_cluster(options));
  if (!options.on.empty() && options.on != "local") static_cast<void>(load_cluster(options.on));
  static_cast<void>(devices_of(options, directory));  // what is wrong leaves no folder
  if (const bool here = options.on.empty() || options.on == "local"; here)
    if (const std::vector<std::string> missing = missing_text(view); !missing.empty()) throw DataError(missing.front());
  create_study_folder(directory, study);
  if (!options.script.empty()) take_script(directory, options.script);
  return set_going(directory, options);
}

int resume(const fs::path& directory, Options options, const Json& told) {
  if (const std::optional<OnHost> there = on_host(directory))
    return print_host_answer(there->host, going_there({{"ask", "study-resume"}, {"study", there->name}}, there->host, options));
  if (!options.budget) options.budget = read_study_state(directory).budget_hours;
  return set_going(directory, options, told);
}

int resume(const Options& options) { return resume(study_folder(options.study), options, Json::object()); }

/// More seeds for cells, one line of it; then on with the study.
int seeds(const Options& options) {
  const fs::path directory = study_folder(options.study);
  if (const std::optional<OnHost> there = on_host(directory))
    return print_host_answer(there->host,
                             {{"ask", "study-seeds"}, {"study", there->name}, {"count", options.seeds}, {"cells", options.cells}});
  const std::map<std::string, std::vector<int64_t>> added = add_seeds(directory, options.seeds, options.cells);
  for (const auto& [cell, numbers] : added) {
    std::string list;
    for (const int64_t seed : numbers) list += (list.empty() ? "" : ", ") + std::to_string(seed);
    say(cell + ": seeds " + list + " added");
  }
  return resume(directory, options, {{"seeds_added", added}});
}

/// More values of the search, more seeds, or both; then on with the study.
int extend(const Options& options) {
  const fs::path directory = study_folder(options.study);
  if (const std::optional<OnHost> there = on_host(directory))
    throw UsageError(directory.string() + " is on the host " + there->host + "; change its study file and start that again with --on " +
                     there->host + ", or call this there");
  Json told = Json::object();
  if (!options.values.empty() || options.seeds == 0) {
    const std::vector<double> values = add_values(directory, options.values);
    std::string list;
    for (const double value : values) list += (list.empty() ? "" : ", ") + plain_number(value);
    say("values added: " + list);
    told["values_added"] = values;
  }
  if (options.seeds > 0) told["seeds_added"] = add_seeds(directory, options.seeds, options.cells);
  return resume(directory, options, told);
}

/// What the job of a next round calls, and anybody may.
int advance(const Options& options) {
  const fs::path directory = study_folder(options.study);
  if (chosen_launcher(directory) == "local") throw UsageError(directory.string() + " is on no cluster; the queue goes on by itself");
  return set_cluster_going(directory, chosen_launcher(directory), options, Json::object());
}

int script(const Options& options) {
  const bool begun = holds_study(options.study);
  const Study study = begun ? read_study_folder(options.study) : load_study(find_study(options.study), options.overrides);
  const fs::path folder = begun ? fs::path(options.study) : folder_to_start(study, options);
  const std::string cluster = options.on.empty() ? chosen_launcher(folder) : options.on;
  if (cluster == "local") throw UsageError("study script: --on CLUSTER is missing; the queue of this machine has no script");
  const std::string text = study_script(study, folder, cluster);
  print_result({{"script", text}, {"edited", !is_generated(text)}, {"file", script_file(folder).string()}}, text);
  return 0;
}

int stop(const Options& options) {
  const fs::path directory = study_folder(options.study);
  if (const std::optional<OnHost> there = on_host(directory))
    return print_host_answer(there->host, {{"ask", "study-stop"}, {"study", there->name}});
  const std::string cluster = chosen_launcher(directory);
  const Stopped stopped = launcher_of(directory, this_program())->stop();
  const std::string out = cluster != "local" ? ": " + counted(stopped.jobs, "job") + " taken out of the cluster " + cluster
                          : stopped.jobs > 0 ? ": taken out of the queue"
                                             : ": was not in a queue";
  print_result({{"directory", directory.string()}, {"queued", stopped.jobs > 0}, {"jobs", stopped.jobs}, {"stopping", stopped.running}},
               directory.string() + out + ", " + counted(stopped.running, "run") +
                   " asked to write a checkpoint and stop\ngo on with: saccade study resume " + directory.string());
  return 0;
}

/// The study's own figures, drawn anew of its runs as they are now. The files.
std::vector<fs::path> write_figures(const fs::path& directory) {
  std::vector<fs::path> files, recipes;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory / "figures", none))
    if (entry.path().extension() == ".json") recipes.push_back(entry.path());
  std::sort(recipes.begin(), recipes.end());
  if (recipes.empty()) return files;
  const OpenedRuns runs = open_runs({(directory / "runs").string()});
  for (const fs::path& file : recipes) {
    const FigureRecipe recipe = load_recipe(file);
    const FigurePage page = make_page(recipe, runs.pointers(), {}, tuning_by_study());
    if (const std::string words = empty_words(recipe, page); !words.empty()) warn("warning: the figure " + recipe.name + ": " + words);
    for (const std::string& format : recipe.formats) {
      const bool picture = format == "pdf" || format == "svg" || format == "png";
      if (picture && page.panels.empty()) continue;
      files.push_back(directory / "figures" / (recipe.name + "." + format));
      write_page(page, files.back());
    }
  }
  return files;
}

/// What the study asks to be evaluated, or what the command line asks for in its place.
void choose_evaluation(StudyEvaluation& evaluation, const Options& options) {
  if (!options.split.empty()) evaluation.split = options.split;
  if (options.tokens > 0) evaluation.tokens = options.tokens;
  if (options.length > 0) evaluation.length = options.length;
  if (options.tokens == 0 && evaluation.tokens <= 0 && (!options.split.empty() || options.length > 0))
    throw UsageError("the study asks for no \"evaluations\": say with --tokens how many of every domain");
  if (evaluation.length > evaluation.tokens && evaluation.tokens > 0)
    throw UsageError("--length is " + std::to_string(evaluation.length) + ", more than the " + std::to_string(evaluation.tokens) +
                     " tokens of every domain");
}

EvaluationThere how_there(const Options& options) { return {options.data, options.devices, options.jobs}; }

int evaluate(const Options& options) {
  const fs::path directory = study_folder(options.study);
  StudyView view = view_study(directory);
  choose_evaluation(view.study.evaluation, options);
  choose_data(view.study, options.data);
  const std::optional<OnHost> there = on_host(directory);
  const EvaluatedStudy evaluated = there ? evaluate_on_host(*there, view.study.evaluation, how_there(options), say)
                                         : evaluate_here(view, say, options.seconds, workers_of(view, options.devices, options.jobs));
  Json files = Json::array();
  for (const fs::path& file : evaluated.files) files.push_back(file.string());
  std::string text = counted(evaluated.made, "evaluation") + " made, " + std::to_string(evaluated.files.size()) + " kept in " +
                     directory.string() + (evaluated.complete ? "" : "; more are to be made");
  if (!evaluated.left_out.empty()) text += "\nleft out:";
  for (const std::string& why : evaluated.left_out) text += "\n  " + why;
  const auto has_ended = [](const WantedRun& run) { return run.status == WantedRun::Status::finished; };
  if (std::none_of(view.wanted.begin(), view.wanted.end(), has_ended))
    text += "\nno run of this study has ended that could be evaluated; see saccade study status " + directory.string();
  print_result({{"made", evaluated.made}, {"complete", evaluated.complete}, {"files", files}, {"left_out", evaluated.left_out}}, text);
  return 0;
}

/// By the host, where the checkpoints are: what it could not make. A study that asks for nothing to be evaluated is reported without it,
/// too.
std::vector<std::string> left_out_on_host(const OnHost& there, const Study& study, const EvaluationThere& how) try {
  std::vector<std::string> told = evaluate_on_host(there, study.evaluation, how, say).left_out;
  for (std::string& why : told) why.insert(0, "On the host " + there.host + ": ");
  return told;
} catch (const Error& error) {
  if (study.evaluation.tokens != StudyEvaluation::kAsErrorAsks || !study.tasks.empty()) throw;
  warn("warning: " + std::string(error.what()) + "; the report shows what training recorded");
  return {};
}

int report(const Options& options) {
  const fs::path directory = study_folder(options.study);
  const fs::path out = options.out.empty() ? directory / "report" : fs::path(options.out);
  StudyView view = view_study(directory);
  choose_evaluation(view.study.evaluation, options);
  choose_data(view.study, options.data);
  if (options.recorded) show_what_is_there(view.study);
  const bool asks = !options.recorded && (view.study.evaluation.tokens != 0 || !view.study.tasks.empty());
  const std::optional<OnHost> there = asks ? on_host(directory) : std::nullopt;
  std::vector<std::string> left_out;
  if (there && !evaluate_here(view, {}, 0).complete) left_out = left_out_on_host(*there, view.study, how_there(options));
  if (there) show_scores_of_host(view.study, there->host);
  StudyReport report = make_report(view, say, there ? StudyWorkers{} : workers_of(view, options.devices, options.jobs));
  report.remarks.insert(report.remarks.end(), left_out.begin(), left_out.end());
  auto [files, not_drawn] = write_report(report, out, write_figure, write_page);
  const std::vector<fs::path> figures = write_figures(directory);
  files.insert(files.end(), figures.begin(), figures.end());
  std::string text = to_markdown(report) + "\n";
  Json names = Json::array();
  for (const fs::path& file : files) names.push_back(file.string()), text += file.string() + "\n";
  Json json = to_json(report);
  json["files"] = names;
  print_result(json, text);
  if (!not_drawn.empty()) throw DataError("the report is in " + out.string() + ", but figures are not drawn: " + not_drawn);
  if (!view.problems.empty())
    throw DataError("the report is in " + out.string() + ", but it lacks a run that cannot be read: " + view.problems.front());
  return 0;
}

/// What evaluate and report start to evaluate side by side: not for people.
int work(const Options& options) {
  serve_pieces(options.study);
  return 0;
}

/// One to begin, or with `has_begun` one that has a folder already.
void add_study(CLI::App& app, const std::shared_ptr<Options>& options, bool has_begun) {
  if (has_begun)
    app.add_option("NAME-OR-FOLDER", options->study, "A study that has begun: its name or folder")->required();
  else
    app.add_option("NAME-OR-FILE", options->study, "A study that comes with the program, or a study file")->required();
}

void add_overrides(CLI::App& app, const std::shared_ptr<Options>& options) {
  one_at_a_time(
      app.add_option("--set", options->overrides, "Set a value in every config, as the study file's set does: --set data.corpus=mine"),
      "KEY=VALUE");
}

void add_evaluation(CLI::App& app, const std::shared_ptr<Options>& options) {
  app.add_option("--split", options->split, "Text that is evaluated (default: as the study says)")
      ->check(CLI::IsMember({"validation", "test"}));
  app.add_option("--tokens", options->tokens, "Of every domain, and more where a difference needs them (default: as the study says)")
      ->check(CLI::PositiveNumber);
  app.add_option("--length", options->length, "Tokens of a sequence (default: as the study says, or those that each run was trained with)")
      ->check(CLI::PositiveNumber);
  app.add_option("--data", options->data, "Folder with the files of the study's tasks, in place of those that the study names");
  app.add_option(
      "--devices", options->devices,
      "Evaluate and score runs on these devices side by side, as study start has it (default: those that the study is spread over)");
  add_jobs_option(app, options->jobs,
                  "Runs at a time on each device (default: as many as its queue has); auto: one for each core, one on a GPU");
}

void add_on(CLI::App& app, const std::shared_ptr<Options>& options) {
  app.add_option("--on", options->on,
                 "Where its runs go: a host (saccade host list), a cluster (saccade cluster list), or local for the queue of this machine");
}

void add_going(CLI::App& app, const std::shared_ptr<Options>& options) {
  app.add_option("--budget", options->budget,
                 "GPU-hours (on the CPU hours) of training, all runs of the study together; then nothing more is started")
      ->check(CLI::PositiveNumber);
  app.add_option("--devices", options->devices,
                 "Spread its runs over these devices of this machine: all (its GPUs), or such as cuda:0-3; kept for resume");
  app.add_option("--limit", options->limit, "Begin so many runs at most, this time")->check(CLI::PositiveNumber);
  add_jobs_option(app, options->jobs);
  app.add_flag("--wait", options->wait, "Wait until the study has ended; the queue goes on without this command");
  add_on(app, options);
}

const RegisterCommand command{
    {"study", "Grids of runs that answer a question: tuned, repeated, compared at equal loss.", "saccade study start tuned-tiny --wait",
     [](CLI::App& app) {
       auto chosen = std::make_shared<std::function<int()>>();
       const auto add = [&](const std::string& name, const std::string& summary, auto perform, auto declare) {
         CLI::App* sub = app.add_subcommand(name, summary);
         auto options = std::make_shared<Options>();
         declare(*sub, options);
         sub->footer("Example: saccade study " + name + (name == "list" ? "" : name == "seeds" ? " tuned-tiny 2" : " tuned-tiny"));
         sub->callback([chosen, options, perform] { *chosen = [options, perform] { return perform(*options); }; });
       };
       using Shared = std::shared_ptr<Options>;
       constexpr bool file = false, begun = true;
       app.require_subcommand(1);
       add(
           "list", "Studies that come with the program.", [](const Options&) { return list_studies(); }, [](CLI::App&, const Shared&) {});
       add("plan", "Runs, tokens, time on this machine and disk of a study.", plan, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, file);
         add_overrides(sub, o);
         sub.add_option("--budget", o->budget, "GPU-hours (on the CPU hours) of training: say how many runs fit")
             ->check(CLI::PositiveNumber);
         sub.add_flag("!--no-measure", o->measure, "Do not time training steps");
         sub.add_option("--measure-seconds", o->measure_seconds, "Time no further model once timing has taken so long")
             ->check(CLI::NonNegativeNumber)
             ->capture_default_str();
       });
       add("start", "Put a study's runs into the queue of their device.", start, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, file);
         add_overrides(sub, o);
         sub.add_option("--out,-o", o->out, "Folder of the study (default: NAME in the runs folder)");
         add_going(sub, o);
         sub.add_flag("--dry-run", o->dry_run, "Show the script of the jobs and how many there would be; submit nothing");
         sub.add_option("--script", o->script, "A script of your own for the jobs, as saccade study script shows it, edited");
       });
       add("script", "The script of a study's jobs on a cluster, to be read and edited.", script, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, file);
         add_overrides(sub, o);
         sub.add_option("--out,-o", o->out, "Folder of the study (default: NAME in the runs folder)");
         add_on(sub, o);
       });
       add("advance", "Submit to the cluster what the runs that have ended decide.", advance,
           [=](CLI::App& sub, const Shared& o) { add_study(sub, o, begun); });
       add("status", "How far a study is, and what it has tuned.", status, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, begun);
         sub.add_option("--limit", o->rows, "Show so many runs at most")->check(CLI::PositiveNumber);
       });
       add("stop", "Take a study out of the queue and stop its runs at a checkpoint.", stop,
           [=](CLI::App& sub, const Shared& o) { add_study(sub, o, begun); });
       add(
           "resume", "Go on with a study, and try again what failed.", [](const Options& o) { return resume(o); },
           [=](CLI::App& sub, const Shared& o) {
             add_study(sub, o, begun);
             add_going(sub, o);
           });
       add("seeds", "Train more seeds of a study's cells, at their best values.", seeds, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, begun);
         sub.add_option("COUNT", o->seeds, "How many more each cell gets: the smallest that it does not have, so that they pair")
             ->required()
             ->check(CLI::Range(1, 1000));
         one_at_a_time(sub.add_option("--cell", o->cells, "One of the study's cells, as status names them (default: all); may be repeated"),
                       "CELL");
         add_going(sub, o);
       });
       add("extend", "Try more values of a study's search, or train more seeds, and go on with it.", extend,
           [=](CLI::App& sub, const Shared& o) {
             o->seeds = 0;
             add_study(sub, o, begun);
             sub.add_option("--values,--rates", o->values,
                            "More values of the searched setting, for all cells: 0.016,0.032 (default: for each cell at an edge the next "
                            "one beyond it)")
                 ->delimiter(',')
                 ->allow_extra_args(false);
             sub.add_option("--seeds", o->seeds, "How many more seeds each cell gets, as saccade study seeds")->check(CLI::Range(1, 1000));
             one_at_a_time(sub.add_option("--cell", o->cells, "With --seeds: one of the study's cells (default: all); may be repeated"),
                           "CELL");
             add_going(sub, o);
           });
       add("evaluate", "Evaluate the checkpoints that a report needs, where they are; report does by itself what is missing.", evaluate,
           [=](CLI::App& sub, const Shared& o) {
             add_study(sub, o, begun);
             add_evaluation(sub, o);
             sub.add_option("--seconds", o->seconds, "Begin no further evaluation once so long has passed")->check(CLI::NonNegativeNumber);
           });
       add("report", "Tables and figures of a study, with the source of every number.", report, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, begun);
         sub.add_option("--out,-o", o->out, "Folder of the report (default: report in the study)");
         add_evaluation(sub, o);
         sub.add_flag("--recorded", o->recorded,
                      "Report the validation losses that training recorded, and scores that stand in the runs; evaluate no checkpoint");
       });
       add("work", "", work, [=](CLI::App& sub, const Shared& o) {
         add_study(sub, o, begun);
         sub.group("");  // started by the others
       });
       return [chosen] { return (*chosen)(); };
     }}};

}  // namespace
}  // namespace saccade::cli
