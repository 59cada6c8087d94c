#include "analysis/remote/agent_commands.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <thread>

#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/slurm/program_call.h"
#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kBrief = 120, kLong = 1800;  ///< seconds: a command that only tells or submits; one that times steps
constexpr int kEvaluating = 600;              ///< seconds, of a study's runs before the answer; it is asked again
constexpr double kBeginning = 20;             ///< seconds that a run has to say why it does not begin

/// A failure of a command, with the exit code that it had.
class CommandFailed : public Error {
 public:
  CommandFailed(const std::string& what, int code) : Error(what), code_(code) {}
  int exit_code() const override { return code_; }

 private:
  int code_;
};

std::string without_name(const std::string& line) { return line.starts_with("saccade: ") ? line.substr(9) : line; }

constexpr const char* kPlanned = "plan-";

/// SERVED/.started, where what was asked for from afar lies with what it said. What an agent that was killed left there goes.
fs::path started_folder(const ServedFolder& folder) {
  fs::path started = folder.path() / ".started";
  make_run_folder(started);
  remove_abandoned_files(started);
  std::error_code none;
  const auto old = fs::file_time_type::clock::now() - std::chrono::seconds(static_cast<int>(2 * kLong));
  for (const auto& entry : fs::directory_iterator(started, none))
    if (entry.path().filename().string().starts_with(kPlanned) && entry.last_write_time(none) < old && !none)
      fs::remove(entry.path(), none);
  return started;
}

std::string last_line_of(const fs::path& log) {
  std::string text = read_text(log);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return without_name(text.substr(text.rfind('\n') + 1));
}

/// A word of a request that becomes one of a command: of plain letters, so that it is no option.
std::string plain_word(const Json& request, const char* key, const char* otherwise = "") {
  static const std::regex kWord("[A-Za-z0-9][A-Za-z0-9.,:_-]{0,199}");
  const std::string word = request.value(key, otherwise);
  if (!word.empty() && !std::regex_match(word, kWord)) throw UsageError(std::string("/") + key + " is no plain word");
  return word;
}

std::vector<std::string> assignments(const Json& request) {
  std::vector<std::string> words;
  for (const Json& each : request.value("set", Json::array())) {
    words.push_back("--set");
    words.push_back(each.get<std::string>());
  }
  return words;
}

/// What a report there is to evaluate; without it what the study says.
std::vector<std::string> evaluation_options(const Json& request) {
  std::vector<std::string> words{"--seconds", std::to_string(kEvaluating)};
  if (const std::string split = plain_word(request, "split"); !split.empty()) words.insert(words.end(), {"--split", split});
  for (const char* key : {"tokens", "length"})
    if (const int64_t number = request.value(key, int64_t{0}); number > 0)
      words.insert(words.end(), {std::string("--") + key, std::to_string(number)});
  if (const std::string data = request.value("data", ""); !data.empty()) words.insert(words.end(), {"--data", data});
  for (const char* key : {"devices", "jobs"})
    if (const std::string word = plain_word(request, key); !word.empty()) words.insert(words.end(), {std::string("--") + key, word});
  return words;
}

/// Budget, limit and jobs of a study as options.
std::vector<std::string> study_options(const Json& request) {
  std::vector<std::string> words;
  if (request.contains("budget")) words.insert(words.end(), {"--budget", std::to_string(request.at("budget").get<double>())});
  if (request.contains("limit")) words.insert(words.end(), {"--limit", std::to_string(request.at("limit").get<int64_t>())});
  if (const std::string jobs = plain_word(request, "jobs"); !jobs.empty()) words.insert(words.end(), {"--jobs", jobs});
  if (const std::string cluster = plain_word(request, "cluster"); !cluster.empty()) words.insert(words.end(), {"--on", cluster});
  if (const std::string devices = plain_word(request, "devices"); !devices.empty()) words.insert(words.end(), {"--devices", devices});
  return words;
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) { words.insert(words.end(), more.begin(), more.end()); }

/// What was asked for under a name is asked for again when its answer was lost: the token says that it is the same wish. Throws UsageError
/// where another one has the name.
void claim(const fs::path& file, const Json& request, const fs::path& folder) {
  const std::string token = request.at("token");
  std::error_code none;
  const bool there = fs::exists(folder, none);
  const Json before = there && fs::exists(file, none) ? read_sealed_json(file) : Json();
  if (there && !(before.is_object() && before.contains("token") && before["token"] == token))
    throw UsageError(folder.string() + " is there already; expected another name");
  write_sealed_json(file, {{"format_version", 1}, {"token", token}, {"asked", utc_now()}});
}

}  // namespace

Frame AgentCommands::call(std::vector<std::string> words, double seconds, const Json& request) const {
  const std::string command = words.front();
  if (!request.value("text", false)) words.insert(words.begin(), "--json");
  words.insert(words.begin(), {program_.string(), "-q"});
  const ProgramAnswer answer = call_program(words, seconds);
  if (answer.timed_out) throw Error("saccade " + command + " took longer than " + std::to_string(static_cast<int>(seconds)) + " s");
  if (!answer.ok()) throw CommandFailed(without_name(answer.last_line()), answer.code);
  return {Json::object(), answer.out};
}

Frame AgentCommands::plan(const ServedFolder& folder, const Json& request) const {
  const fs::path file = started_folder(folder) / (kPlanned + plain_word(request, "token") + ".json");
  replace_text(file, request.at("config").dump());
  try {
    std::vector<std::string> words{"plan", file.string()};
    if (request.value("measure", false)) words.push_back("--measure");
    const Frame answer = call(words, kLong, request);
    remove_run_file(file);
    return answer;
  } catch (...) {
    remove_run_file(file);
    throw;
  }
}

/// Starts a run that outlives this process, and waits until it stands, has ended, or takes its time.
Frame AgentCommands::begin(const fs::path& run, const std::vector<std::string>& words, const fs::path& log) const {
  replace_text(log, "");
  std::vector<std::string> command{program_.string(), "-q"};
  append(command, words);
  const int process = start_detached(command, open_run_file(log, O_WRONLY | O_CREAT | O_APPEND));
  int status = 0;
  for (const double end = now() + kBeginning; now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    const bool ended = ::waitpid(process, &status, WNOHANG) == process;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == kRunInUse) break;  // begun by the same wish before
    if (ended) throw CommandFailed(last_line_of(log), WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    if (holds_run(run) && lock_holder(run)) break;
  }
  return {Json{{"directory", run.string()}, {"process", process}, {"log", log.string()}}, ""};
}

/// Trains now, waits in the queue of its device, or goes to a cluster of the host.
Frame AgentCommands::start(const ServedFolder& folder, const Json& request) const {
  const fs::path run = folder.new_entry(request.at("name")), started = started_folder(folder);
  const fs::path file = started / (run.filename().string() + ".json");
  claim(started / (run.filename().string() + ".wish"), request, run);
  if (holds_run(run)) return {Json{{"directory", run.string()}, {"before", true}}, ""};
  replace_text(file, request.at("config").dump(2) + "\n");
  if (const std::string cluster = plain_word(request, "cluster"); !cluster.empty())
    return call({"train", file.string(), "--out", run.string(), "--on", cluster}, kBrief, request);
  if (request.value("queue", false)) {
    for (const DeviceQueue& queue : DeviceQueue::all())
      for (const QueueEntry& entry : queue.read().entries)
        if (entry.directory == run) return {Json{{"directory", run.string()}, {"before", true}}, ""};
    return call({"queue", "add", file.string(), "--out", run.string()}, kBrief, request);
  }
  return begin(run, {"train", file.string(), "--out", run.string()}, started / (run.filename().string() + ".log"));
}

Frame AgentCommands::fork(const ServedFolder& folder, const Json& request) const {
  const fs::path run = folder.new_entry(request.at("name")), parent = folder.folder(request.at("parent")), started = started_folder(folder);
  claim(started / (run.filename().string() + ".wish"), request, run);
  if (holds_run(run)) return {Json{{"directory", run.string()}, {"before", true}}, ""};
  std::vector<std::string> words{"fork",  parent.string(), "--step", std::to_string(request.at("step").get<int64_t>()),
                                 "--out", run.string()};
  append(words, assignments(request));
  return begin(run, words, started / (run.filename().string() + ".log"));
}

Frame AgentCommands::resume(const ServedFolder& folder, const Json& request) const {
  const fs::path run = folder.folder(request.at("run"));
  if (lock_holder(run)) return {Json{{"directory", run.string()}, {"before", true}}, ""};
  if (const std::string cluster = plain_word(request, "cluster"); !cluster.empty())
    return call({"resume", run.string(), "--on", cluster}, kBrief, request);
  std::vector<std::string> words{"resume", run.string()};
  if (request.contains("from")) append(words, {"--from", std::to_string(request.at("from").get<int64_t>())});
  if (request.value("skip_batch", false)) words.push_back("--skip-batch");
  append(words, assignments(request));
  return begin(run, words, started_folder(folder) / (run.filename().string() + ".log"));
}

Frame AgentCommands::study(const ServedFolder& folder, const Json& request) const {
  const fs::path study = folder.new_entry(request.at("name"));
  const fs::path file = started_folder(folder) / (study.filename().string() + ".json");  // its name is the study's
  replace_text(file, request.at("study").dump(2) + "\n");
  std::vector<std::string> words{"study", "start", file.string(), "--out", study.string()};
  append(words, study_options(request));
  return call(words, kBrief, request);
}

Frame AgentCommands::go_on_with_study(const ServedFolder& folder, const Json& request) const {
  const std::string verb = request.at("ask").get<std::string>().substr(6);  // study-stop
  std::vector<std::string> words{"study", verb, folder.folder(request.at("study")).string()};
  if (verb == "resume") append(words, study_options(request));
  if (verb == "evaluate") append(words, evaluation_options(request));
  if (verb == "seeds") append(words, {std::to_string(request.at("count").get<int64_t>())});
  for (const Json& cell : request.value("cells", Json::array())) append(words, {"--cell", cell.get<std::string>()});
  return call(words, verb == "evaluate" ? kLong : kBrief, request);
}

Frame AgentCommands::queue(const ServedFolder&, const Json& request) const {
  const std::string verb = plain_word(request, "verb", "list");
  std::vector<std::string> words{"queue", verb};
  static const std::vector<std::string> kVerbs{"list", "pause", "go-on", "move", "remove", "put-back"};
  if (std::find(kVerbs.begin(), kVerbs.end(), verb) == kVerbs.end())
    throw UsageError("/verb is none of list, pause, go-on, move, remove, put-back");
  if (verb == "move" || verb == "remove" || verb == "put-back") words.push_back(plain_word(request, "entry"));
  if (verb == "move") words.push_back(std::to_string(request.at("place").get<int64_t>()));
  if (verb == "pause" && request.value("now", false)) words.push_back("--now");
  if (const std::string device = plain_word(request, "device"); !device.empty()) append(words, {"--device", device});
  if (const std::string jobs = plain_word(request, "jobs"); verb == "go-on" && !jobs.empty()) append(words, {"--jobs", jobs});
  return call(words, kBrief, request);
}

bool AgentCommands::knows(const std::string& ask) {
  static const std::vector<std::string> kAll{"plan",       "start",        "fork",        "resume",         "stop", "study",
                                             "study-stop", "study-resume", "study-seeds", "study-evaluate", "queue"};
  return std::find(kAll.begin(), kAll.end(), ask) != kAll.end();
}

Frame AgentCommands::perform(const ServedFolder& folder, const Json& request) const {
  const std::string ask = request.at("ask");
  if (ask == "plan") return plan(folder, request);
  if (ask == "start") return start(folder, request);
  if (ask == "fork") return fork(folder, request);
  if (ask == "resume") return resume(folder, request);
  if (ask == "stop") return call({"stop", folder.folder(request.at("run")).string()}, kBrief, request);
  if (ask == "study") return study(folder, request);
  if (ask == "queue") return queue(folder, request);
  return go_on_with_study(folder, request);
}

}  // namespace saccade
