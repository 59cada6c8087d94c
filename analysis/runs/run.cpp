#include "analysis/runs/run.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include "analysis/runs/capture_file.h"
#include "analysis/runs/history.h"
#include "analysis/runs/journal.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/runs/run_origin.h"
#include "analysis/runs/signs_of_life.h"
#include "kernels/engine/error.h"
#include "models/config/config.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr double kPatience = 60;     // seconds for which another machine's bytes may be on their way
constexpr double kPatienceHere = 5;  // this machine's, when a copy is under way: run.json may come before its journal

/// `auto` is another precision on a GPU than on the CPU, so what was computed in counts, not what was asked for.
nlohmann::json experiment_of_run(const RunInfo& info) {
  nlohmann::json experiment = experiment_of(info.config);
  if (info.provenance.contains("precision")) experiment["precision"] = info.provenance.at("precision");
  return experiment;
}

}  // namespace

struct Run::Impl {
  Impl(const fs::path& directory, const RunDetail& wanted) : Impl(directory, wanted, version_of(directory / "run.json")) {}
  /// `are`: of run.json before it is read.
  Impl(const fs::path& directory, const RunDetail& wanted, std::pair<ino_t, int64_t> are)
      : detail(wanted),
        info(read_run_info(directory)),
        recorded(info.state),
        journal(directory / "journal.jsonl"),
        history(wanted.most_points),
        signs(directory),
        identity(are) {
    take_experiment();
    if (detail.outline) begin_at_the_end();
  }

  void begin_at_the_end() {
    constexpr int64_t kLastBytes = 1 << 17;
    std::error_code ignored;
    if (fs::exists(info.directory / "journal.jsonl", ignored)) journal.skip_to_end(kLastBytes);
  }

  void take_experiment() {
    experiment = experiment_of_run(info);
    setting = experiment.dump();
  }

  RunDetail detail;
  RunInfo info;
  RunState recorded;  ///< in run.json
  nlohmann::json experiment;
  std::string setting;
  JournalReader journal;
  RunHistory history;
  RunNotes notes;
  std::string notes_problem;
  std::pair<ino_t, int64_t> notes_are{};  ///< of the notes.json that was read
  std::string damage;                     ///< as of the last poll: to tell it, files are looked for
  std::string suspected;                  ///< damage that may be none, since what is missing may come
  std::chrono::steady_clock::time_point suspected_since;
  mutable SignsOfLife signs;
  std::optional<StatisticsRecord> last_statistics;
  std::pair<ino_t, int64_t> identity{};    ///< of the run.json that was read: replaced files differ in it
  std::pair<ino_t, int64_t> journal_is{};  ///< likewise its file and size

  /// Where in the journal some steps stand, so that a part can be read again.
  struct Place {
    int64_t step, offset, number;
  };
  static constexpr int64_t kRecordsApart = 1024;
  std::vector<Place> places;

  static std::pair<ino_t, int64_t> identity_of(const fs::path& path) {
    struct stat state {};
    return ::stat(path.c_str(), &state) == 0 ? std::pair(state.st_ino, static_cast<int64_t>(state.st_size)) : std::pair<ino_t, int64_t>();
  }
  struct Mark {
    int64_t step;
    std::chrono::steady_clock::time_point time;
  };
  std::optional<Mark> first, last;  ///< steps as they came, from the first look at the run at work on

  void note_step(bool state_changed) {
    if (state_changed && info.state != RunState::running) first.reset();
    if (info.state != RunState::running || (first && last->step == info.step)) return;
    last = {info.step, std::chrono::steady_clock::now()};
    if (!first) first = last;
  }

  bool is_unfinished() const { return recorded == RunState::running || recorded == RunState::created; }
  /// For how many seconds what seems lost may be on its way.
  double patience(double wanted) const { return held_here(info.directory) ? std::min(wanted, kPatienceHere) : wanted; }
  std::string lost_end() const;
  std::string missing_records() const;
  void judge_damage();

  /// A file and when it was written; nothing where there is none.
  static std::pair<ino_t, int64_t> version_of(const fs::path& path) {
    struct stat state {};
    if (::stat(path.c_str(), &state) != 0) return {};
    return {state.st_ino, state.st_mtim.tv_sec * 1'000'000'000 + state.st_mtim.tv_nsec};
  }
  std::pair<ino_t, int64_t> file_identity(const char* name) const { return version_of(info.directory / name); }
  /// True when notes.json was replaced; one that cannot be read takes nothing but the notes.
  bool poll_notes() {
    const std::pair<ino_t, int64_t> now = file_identity("notes.json");
    if (now == notes_are) return false;
    notes_are = now;
    notes = {}, notes_problem.clear();
    try {
      notes = read_notes(info.directory);
    } catch (const Error& error) {
      notes_problem = error.what();
    }
    return true;
  }

  /// Reads run.json when it was replaced; true when it was.
  bool read_info() {
    const fs::path path = info.directory / "run.json";
    const std::pair<ino_t, int64_t> now = version_of(path);
    if (now.first == 0) throw_file_error("read", path);
    if (now == identity) return false;
    info = read_run_info(info.directory);
    recorded = info.state;
    take_experiment();
    identity = now;
    return true;
  }

  bool read_state() {
    const RunState before = info.state;
    bool news = read_info();
    bool crashed = is_unfinished() && !signs.is_written();
    if (crashed) news |= read_info();  // it may have ended between the two looks
    crashed = crashed && is_unfinished();
    info.state = crashed ? RunState::crashed : recorded;
    news |= read_origin_state();
    return news || info.state != before;
  }

  /// Whence it is mirrored, and since when that host is silent.
  bool read_origin_state() {
    const std::pair<std::string, std::string> before{info.host, info.as_of};
    std::tie(info.host, info.as_of) = origin_state();
    return before != std::pair(info.host, info.as_of);
  }
  std::pair<std::string, std::string> origin_state() const try {
    const std::optional<RunOrigin> origin = read_run_origin(info.directory);
    if (!origin) return {};
    const std::optional<MirrorState> mirror = origin->live ? mirror_of(info.directory) : std::nullopt;
    return {origin->host, mirror && !mirror->connected ? mirror->seen : ""};
  } catch (const DataError&) {
    return {info.host, info.as_of};  // written anew by the mirror
  }

  bool read_journal() {
    const fs::path path = info.directory / "journal.jsonl";
    if (!fs::exists(path)) return std::exchange(journal_is, {}) != std::pair<ino_t, int64_t>();
    const auto apply = [&](const Record& record) { history.apply(record); };
    const auto apply_step = [&](const StepRecord& step) {
      if (places.empty() || journal.next_number() >= places.back().number + kRecordsApart)
        places.push_back({step.step, journal.line_bytes(), journal.next_number()});
      history.add(step);
    };
    const bool at_work = is_unfinished() && info.state != RunState::crashed;
    const double wanted = detail.patience > 0 ? detail.patience : at_work ? kPatience : 0;
    // Of a writer of this machine that has let go all is there.
    const bool may_come = wanted > 0 && (at_work || !held_here(info.directory) || lock_holder(info.directory));
    journal.wait_for_late_bytes(may_come ? patience(wanted) : 0);
    bool news = journal.poll(apply, apply_step);
    if (journal.shrunk()) {
      history = RunHistory(detail.most_points);
      places.clear();
      journal = JournalReader(path);
      if (detail.outline) begin_at_the_end();
      news = journal.poll(apply, apply_step) || true;
    }
    journal_is = identity_of(path);
    if (news && info.state != RunState::running && info.state != RunState::created) history.shrink();
    if (news) last_statistics = history.statistics().empty() ? std::nullopt : std::optional(history.statistics().back());
    return news;
  }
};

/// Bad lines at the end, for which reading has waited.
std::string Run::Impl::lost_end() const {
  const auto holes = journal.holes();
  if (holes.empty() || holes.back().before_step >= 0) return {};
  return (info.directory / "journal.jsonl").string() + " is damaged at its end: " + describe(holes.back());
}

/// What is missing of the journal, and may come yet.
std::string Run::Impl::missing_records() const {
  const fs::path path = info.directory / "journal.jsonl";
  if ((info.step > 0 || info.records > 0) && !fs::exists(path)) return path.string() + " is missing";
  const std::string ends =
      path.string() + " ends at step " + std::to_string(journal.step()) + ", record " + std::to_string(journal.next_number()) + ", though ";
  if (info.records > journal.next_number())
    return ends + "run.json knows of " + std::to_string(info.records) + " records up to step " + std::to_string(info.step);
  if (info.state == RunState::running || info.state == RunState::created) return {};  // checkpoints come while this is read
  if (detail.outline) return {};                                                      // the rest needs the whole journal
  if (const auto steps = step_files(info.directory, kCheckpoints); !steps.empty() && steps.back() > journal.largest_step())
    return ends + "there is a checkpoint of step " + std::to_string(steps.back());
  if (info.records >= 0) return {};
  if (info.step - (info.state == RunState::failed ? 1 : 0) > journal.largest_step())  // the record that failed may be the journal's
    return ends + "run.json knows of step " + std::to_string(info.step);
  const bool told = info.state == RunState::finished || info.state == RunState::stopped || info.state == RunState::diverged;
  return told && journal.last_state() != to_string(info.state) ? ends + "the run is " + to_string(info.state) : std::string();
}

void Run::Impl::judge_damage() {
  damage = lost_end();
  if (!damage.empty()) return suspected.clear();
  const std::string missing = missing_records();
  const auto now = std::chrono::steady_clock::now();
  if (missing != suspected) {  // the wait begins anew when more has come, or is known of
    suspected = missing;
    suspected_since = now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<double>(seconds_since_arrival(info.directory)));
  }
  if (missing.empty()) return;
  if (detail.patience <= 0 || now - suspected_since >= std::chrono::duration<double>(patience(detail.patience))) damage = missing;
}

Run::Run(const fs::path& directory, const RunDetail& detail) : impl_(std::make_unique<Impl>(directory, detail)) { poll(); }
Run::~Run() = default;
Run::Run(const Run& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;

bool Run::poll() {
  // The state first: when it says the run ended, the journal read after it is complete.
  const bool state_changed = impl_->read_state();
  const bool notes_changed = impl_->poll_notes(), news = impl_->read_journal() || notes_changed;
  impl_->info.step = std::max(impl_->info.step, impl_->history.step());
  impl_->note_step(state_changed);
  const std::string before = impl_->damage;
  impl_->judge_damage();
  return state_changed || news || impl_->damage != before;
}

bool Run::outdated() const {
  const fs::path& directory = impl_->info.directory;
  struct stat state {};
  if (::stat((directory / "run.json").c_str(), &state) != 0) return true;
  const std::pair<ino_t, int64_t> now{state.st_ino, state.st_mtim.tv_sec * 1'000'000'000 + state.st_mtim.tv_nsec};
  if (now != impl_->identity || Impl::identity_of(directory / "journal.jsonl") != impl_->journal_is) return true;
  if (impl_->file_identity("notes.json") != impl_->notes_are) return true;
  if (waits()) return true;
  const bool active = impl_->is_unfinished() && impl_->info.state != RunState::crashed;
  if (active && !impl_->info.host.empty() && impl_->origin_state().second != impl_->info.as_of) return true;
  return impl_->is_unfinished() && active != impl_->signs.is_written();
}

const RunNotes& Run::notes() const { return impl_->notes; }
const std::string& Run::notes_problem() const { return impl_->notes_problem; }
void Run::poll_notes() { impl_->poll_notes(); }
const RunDetail& Run::detail() const { return impl_->detail; }
const RunInfo& Run::info() const { return impl_->info; }

std::string Run::name() const { return info().name.empty() ? info().directory.filename().string() : info().name; }

const nlohmann::json& Run::experiment() const { return impl_->experiment; }
const std::string& Run::setting() const { return impl_->setting; }

std::string Run::damage() const { return impl_->damage; }

bool Run::waits() const { return impl_->journal.waits() || (!impl_->suspected.empty() && impl_->damage.empty()); }

std::string Run::lost() const {
  std::string text;
  for (const JournalHole& hole : impl_->journal.holes())
    if (hole.before_step >= 0) text += (text.empty() ? "of the journal, " : "; ") + describe(hole);
  if (impl_->info.edited) text += std::string(text.empty() ? "" : "; ") + "run.json was changed since it was written";
  return text;
}

const std::vector<Series>& Run::series() const { return impl_->history.series(); }
const std::vector<TaskScoreRecord>& Run::task_scores() const { return impl_->history.preferred_task_scores(); }
const std::vector<LossGap>& Run::loss_gaps() const { return impl_->history.loss_gaps(); }
const Series* Run::find(const std::string& series_name) const { return impl_->history.find(series_name); }
const std::optional<StatisticsRecord>& Run::last_statistics() const { return impl_->last_statistics; }
const std::optional<EvaluationRecord>& Run::last_evaluation() const { return impl_->history.last_evaluation(); }

std::vector<std::string> Run::ood_domains() const {
  if (!impl_->history.ood_domains().empty()) return impl_->history.ood_domains();
  return impl_->info.config.value(nlohmann::json::json_pointer("/data/ood"), std::vector<std::string>{});
}

double Run::tokens_per_second() const {
  const Series* steps = find("train/loss");
  if (!steps || steps->seconds.empty() || !(steps->seconds.back() > 0)) return std::numeric_limits<double>::quiet_NaN();
  return steps->tokens.back() / steps->seconds.back();
}

Series Run::exact(const std::string& series_name, double low, double high) const {
  const auto& places = impl_->places;
  auto from = std::upper_bound(places.begin(), places.end(), low,
                               [](double step, const Impl::Place& p) { return step < static_cast<double>(p.step); });
  if (from != places.begin()) --from;
  const bool from_start = places.empty() || impl_->history.rewound();
  const fs::path path = impl_->info.directory / "journal.jsonl";
  JournalReader reader = from_start ? JournalReader(path) : JournalReader(path, from->offset, from->number);
  RunHistory part;
  struct Enough {};
  try {
    reader.poll([&](const Record& record) { part.apply(record); },
                [&](const StepRecord& step) {
                  if (!from_start && static_cast<double>(step.step) > high) throw Enough();
                  if (from_start || static_cast<double>(step.step) >= low) part.add(step);
                });
  } catch (const Enough&) {
  }
  const Series* found = part.find(series_name);
  return found ? *found : Series{series_name, "", {}, {}, {}, {}, {}};
}

double Run::seconds_left() const {
  const auto steps = static_cast<double>(std::max<int64_t>(0, info().steps - info().step));
  const auto &first = impl_->first, &last = impl_->last;
  if (first && last->step > first->step)
    return steps * std::chrono::duration<double>(last->time - first->time).count() / static_cast<double>(last->step - first->step);
  const Series* training = find("train/loss");
  if (!training || training->step.empty() || training->step.back() <= 0) return std::numeric_limits<double>::quiet_NaN();
  return steps * training->seconds.back() / training->step.back();
}

std::vector<int64_t> Run::capture_steps() const { return step_files(impl_->info.directory, kCaptures); }
std::vector<Capture> Run::captures(int64_t step) const { return read_captures(step_file(impl_->info.directory, kCaptures, step)); }

std::vector<fs::path> find_runs(const fs::path& folder, std::vector<std::string>* problems) {
  std::vector<std::pair<std::string, fs::path>> found;  // by the time each was started
  const auto look = [&](const fs::path& directory) {
    if (!looks_like_run(directory)) return;
    try {
      found.emplace_back(read_run_info(directory).provenance.value("started", ""), directory);
    } catch (const Error& error) {
      if (problems) problems->push_back(error.what());
    } catch (const std::exception& error) {
      if (problems) problems->push_back(directory.string() + ": " + error.what());
    }
  };
  const std::function<void(const fs::path&, bool)> look_inside = [&](const fs::path& parent, bool mirrors) {
    std::error_code none;  // most runs have no branches
    for (const auto& entry : fs::directory_iterator(parent, none)) {
      if (!entry.is_directory(none)) continue;
      look(entry.path());
      for (const auto& branch : fs::directory_iterator(entry.path() / "branches", none))
        if (branch.is_directory(none)) look(branch.path());
      if (mirrors && fs::exists(entry.path() / kMirrorFile, none)) look_inside(entry.path(), false);
    }
  };
  look(folder);
  look_inside(folder, true);
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::vector<fs::path> runs;
  for (auto& [time, directory] : found) runs.push_back(std::move(directory));
  return runs;
}

}  // namespace saccade
