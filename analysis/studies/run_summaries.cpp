#include "analysis/studies/run_summaries.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/comparison/training_loss.h"
#include "analysis/runs/record_json.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/studies/cells.h"
#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int64_t kFormat = 7;

Json number(double value) { return std::isfinite(value) ? Json(value) : std::isinf(value) ? Json("Infinity") : Json(); }
double number_of(const Json& value) { return value.is_number() ? value.get<double>() : value.is_string() ? INFINITY : std::nan(""); }

Json to_json(const RunEnd& end) {
  Json domains = Json::object();
  for (const auto& [name, loss] : end.domains) domains[name] = number(loss);
  return {{"step", end.step},
          {"tokens", end.tokens},
          {"flops", number(end.flops)},
          {"seconds", number(end.seconds)},
          {"train", number(end.train)},
          {"validation", number(end.validation)},
          {"ood", number(end.ood)},
          {"domains", domains},
          {"branch", end.branch},
          {"validation_error", number(end.validation_error)},
          {"ood_error", number(end.ood_error)},
          {"entropy", number(end.entropy)}};
}

RunEnd end_from(const Json& object) {
  RunEnd end;
  end.step = object.at("step"), end.tokens = object.at("tokens");
  end.flops = number_of(object.at("flops")), end.seconds = number_of(object.at("seconds"));
  end.train = number_of(object.at("train")), end.validation = number_of(object.at("validation")), end.ood = number_of(object.at("ood"));
  for (const auto& [name, loss] : object.at("domains").items()) end.domains[name] = number_of(loss);
  end.branch = object.at("branch");
  end.validation_error = number_of(object.at("validation_error")), end.ood_error = number_of(object.at("ood_error"));
  end.entropy = number_of(object.at("entropy"));
  return end;
}

Json to_json(const RunSummary& run) {
  Json branches = Json::array();
  for (const RunEnd& end : run.branches) branches.push_back(to_json(end));
  return {{"identity", run.identity},
          {"state", to_string(run.state)},
          {"step", run.step},
          {"steps", run.steps},
          {"seed", run.seed},
          {"parameters", run.parameters},
          {"parameters_without_embeddings", number(run.parameters_without_embeddings)},
          {"seconds", number(run.seconds)},
          {"flops", number(run.flops)},
          {"tokens", run.tokens},
          {"state_bytes_per_token", run.state_bytes_per_token},
          {"message", run.message},
          {"lost", run.lost},
          {"end", to_json(run.end)},
          {"branches", branches}};
}

RunSummary summary_from(const std::string& name, const Json& object) {
  RunSummary run;
  run.name = name;
  run.identity = object.at("identity");
  run.state = parse_run_state(object.at("state"));
  run.step = object.at("step"), run.steps = object.at("steps"), run.seed = object.at("seed");
  run.parameters = object.at("parameters");
  run.parameters_without_embeddings = number_of(object.at("parameters_without_embeddings"));
  run.seconds = number_of(object.at("seconds")), run.flops = number_of(object.at("flops"));
  run.tokens = object.at("tokens");
  run.state_bytes_per_token = object.at("state_bytes_per_token");
  run.message = object.at("message");
  run.lost = object.at("lost");
  run.end = end_from(object.at("end"));
  for (const Json& branch : object.at("branches")) run.branches.push_back(end_from(branch));
  return run;
}

double last_of(const Run& run, const std::string& name) {
  const Series* series = run.find(name);
  return series && !series->value.empty() ? series->value.back() : std::nan("");
}

/// Of the last probe, over all layers and heads that have one.
double mean_entropy(const Run& run) {
  double sum = 0;
  int64_t count = 0;
  if (run.last_statistics())
    for (const HeadStatistic& statistic : run.last_statistics()->statistics)
      for (const double head : statistic.heads)
        if (statistic.name == "entropy" && std::isfinite(head)) sum += head, ++count;
  return count > 0 ? sum / static_cast<double>(count) : std::nan("");
}

double last_error_of(const Run& run, const std::string& name) {
  const Series* series = run.find(name);
  return series && !series->error.empty() ? series->error.back() : std::nan("");
}

RunEnd end_of(const Run& run) {
  RunEnd end;
  end.step = run.info().step;
  if (const Series* train = run.find("train/loss"); train && !train->value.empty()) {
    end.train = final_training_loss(run);
    end.tokens = static_cast<int64_t>(train->tokens.back());
    end.flops = train->flops.back(), end.seconds = train->seconds.back();
  }
  end.validation = last_of(run, "validation/loss"), end.ood = last_of(run, "ood/loss");
  end.validation_error = last_error_of(run, "validation/loss"), end.ood_error = last_error_of(run, "ood/loss");
  end.entropy = mean_entropy(run);
  for (const std::string& domain : run.ood_domains()) end.domains[domain] = last_of(run, "ood/loss/" + domain);
  return end;
}

/// What a run had taken by a step.
struct Taken {
  double tokens = 0, seconds = 0, flops = 0;
};

Taken taken_by(const Run& run, double step) {
  const Series* train = run.find("train/loss");
  if (!train) return {};
  const auto behind = std::upper_bound(train->step.begin(), train->step.end(), step);
  if (behind == train->step.begin()) return {};
  const auto next = static_cast<size_t>(behind - train->step.begin()), last = next - 1;
  // Of a long run that is read thinned the step may lie between two records.
  const double share = next < train->step.size() ? (step - train->step[last]) / (train->step[next] - train->step[last]) : 0;
  const auto at = [&](const std::vector<double>& series) {
    return share > 0 ? series[last] + share * (series[next] - series[last]) : series[last];
  };
  return {at(train->tokens), at(train->seconds), at(train->flops)};
}

/// Of the steps that are this run's own: a branch counts on from what its trunk had taken when it began.
void add_cost(const Run& run, const Taken& before, RunSummary& summary) {
  const Taken all = taken_by(run, std::numeric_limits<double>::infinity());
  if (all.tokens <= before.tokens) return;  // of no step of its own
  summary.tokens += static_cast<int64_t>(all.tokens - before.tokens);
  summary.seconds += all.seconds - before.seconds;
  summary.flops += all.flops - before.flops;
}

std::string identity_of(const RunInfo& info) {
  try {
    return run_identity(info.config);
  } catch (const Error&) {
    return {};
  }
}

/// What tells whether a file is the one that was read: replaced and changed ones differ in it. Empty where there is none.
std::string file_stamp(const fs::path& file) {
  struct stat state {};
  if (::stat(file.c_str(), &state) != 0) return {};
  return std::to_string(state.st_ino) + " " + std::to_string(state.st_mtim.tv_sec) + "." + std::to_string(state.st_mtim.tv_nsec);
}

/// Of run.json and the journals, those of branches too: what happens to one of them is to be told. Empty where no run has begun.
std::string stamp_of(const fs::path& run) {
  const std::string own = file_stamp(run / "run.json");
  if (own.empty()) return {};
  std::vector<fs::path> others{"journal.jsonl"};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run / "branches", none))
    for (const char* name : {"run.json", "journal.jsonl"}) others.push_back("branches" / entry.path().filename() / name);
  std::sort(others.begin(), others.end());
  std::string stamp = own;
  for (const fs::path& other : others)
    if (const std::string its = file_stamp(run / other); !its.empty()) stamp += ", " + other.string() + " " + its;
  return stamp;
}

void add_lost(std::string& text, const std::string& lost) {
  if (!lost.empty()) text += (text.empty() ? "" : "; ") + lost;
}

/// A cache only: what is damaged or not as expected is read anew.
Json read_index(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return Json::object();
  try {
    const Json object = read_sealed_json(file);
    return object.at("format_version") == kFormat && object.at("runs").is_object() ? object.at("runs") : Json::object();
  } catch (const std::exception&) {
    return Json::object();
  }
}

/// Of a run as it was when run.json had this stamp; nothing where the index knows it otherwise or not.
std::optional<RunSummary> known_summary(const Json& known, const std::string& name, const std::string& stamp) {
  const auto entry = known.find(name);
  if (entry == known.end()) return {};
  try {
    return entry->at("stamp") == stamp ? std::optional(summary_from(name, *entry)) : std::nullopt;
  } catch (const std::exception&) {
    return {};
  }
}

void write_index(const fs::path& file, const Json& runs) {
  try {
    write_sealed_json(file, {{"format_version", kFormat}, {"runs", runs}});
  } catch (const Error&) {  // of a study that may only be read
  }
}

}  // namespace

std::string what_is_lost(const Run& run) {
  std::string text;
  for (const std::string& part : {run.damage(), run.lost()}) add_lost(text, part);
  return text;
}

RunSummary summarize(const fs::path& directory) {
  const Run run(directory);
  const RunInfo& info = run.info();
  RunSummary summary;
  summary.name = directory.filename().string();
  summary.identity = identity_of(info);
  summary.state = info.state;
  summary.live = lock_holder(directory).has_value();
  summary.step = info.step, summary.steps = info.steps, summary.seed = info.seed, summary.parameters = info.parameters;
  const auto noted = [&](const char* name) { return info.provenance.value(name, Json()); };
  if (const Json embeddings = noted("embedding_parameters"); embeddings.is_number())
    summary.parameters_without_embeddings = static_cast<double>(info.parameters) - embeddings.get<double>();
  if (const Json state = noted("state_bytes_per_token"); state.is_number()) summary.state_bytes_per_token = state;
  summary.message = info.message;
  summary.lost = what_is_lost(run);
  summary.end = end_of(run);
  add_cost(run, {}, summary);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory / "branches", none)) {
    if (!holds_run(entry.path())) continue;
    const Run branch(entry.path());
    if (const std::string lost = what_is_lost(branch); !lost.empty())
      add_lost(summary.lost, "branches/" + entry.path().filename().string() + ": " + lost);
    add_cost(branch, taken_by(run, static_cast<double>(forked_step(branch.info()))), summary);
    if (branch.info().state != RunState::finished) continue;
    summary.branches.push_back(end_of(branch));
    summary.branches.back().branch = "branches/" + entry.path().filename().string();
  }
  std::sort(summary.branches.begin(), summary.branches.end(), [](const RunEnd& a, const RunEnd& b) { return a.step < b.step; });
  return summary;
}

namespace {

/// A run folder as it stands, and what is told of it.
struct Entry {
  fs::path directory;
  std::string name, stamp, problem;
  std::optional<RunSummary> summary;
};

std::vector<Entry> entries_of(const fs::path& study) {
  std::vector<Entry> entries;
  std::error_code none;
  for (const auto& found : fs::directory_iterator(study / "runs", none)) {
    Entry entry{found.path(), found.path().filename().string(), stamp_of(found.path()), {}, {}};
    if (!entry.stamp.empty()) entries.push_back(std::move(entry));  // else a run that has not begun
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace

std::vector<RunSummary> run_summaries(const fs::path& study, std::map<std::string, std::string>* unreadable) {
  const fs::path file = study / "index.json";
  const Json known = read_index(file);
  std::vector<Entry> entries = entries_of(study);
  parallel_for(static_cast<int64_t>(entries.size()), [&](int64_t i) {
    Entry& entry = entries[static_cast<size_t>(i)];
    try {
      entry.summary = known_summary(known, entry.name, entry.stamp);
      if (!entry.summary) entry.summary = summarize(entry.directory);
    } catch (const std::exception& error) {
      entry.problem = error.what();
    }
  });
  Json index = Json::object();
  std::vector<RunSummary> runs;
  for (Entry& entry : entries) {
    if (!entry.summary) {
      if (unreadable) (*unreadable)[entry.name] = entry.problem;
      continue;
    }
    if (entry.summary->ended()) {
      index[entry.name] = to_json(*entry.summary);
      index[entry.name]["stamp"] = entry.stamp;
    }
    runs.push_back(std::move(*entry.summary));
  }
  if (index != known) write_index(file, index);
  return runs;
}

}  // namespace saccade
