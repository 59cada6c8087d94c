#include "analysis/comparison/equal_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "analysis/comparison/groups.h"
#include "analysis/comparison/number_text.h"
#include "analysis/runs/run_info.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 3> kNames{"tokens", "flops", "seconds"};

const Column& column(const Series& series, Spent spent) {
  return spent == Spent::tokens ? series.tokens : spent == Spent::flops ? series.flops : series.seconds;
}

std::string joined(const std::set<std::string>& values, const char* between) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : between) + value;
  return text;
}

/// How the learning rate stood where a run is read.
std::string read_from(const std::vector<const Run*>& seeds, const std::vector<Course>& courses, double amount) {
  constexpr double kAsMuch = 1.01;
  bool at_end = true;
  for (size_t i = 0; i < seeds.size(); ++i)
    if (!courses[i].spent.empty())
      at_end = at_end && seeds[i]->info().state == RunState::finished && courses[i].spent.back() <= kAsMuch * amount;
  if (at_end) return "end";
  const json schedule = seeds.front()->info().config.value(json::json_pointer("/training/schedule"), json());
  return schedule == "constant" ? "constant rate" : "mid-schedule";
}

/// From when to when a run was at work, as far as is known; UTC, which compares as text.
struct Span {
  std::string where, begin, end;
  std::filesystem::path directory;
  bool meets(const Span& other) const { return where == other.where && begin < other.end && other.begin < end; }
};

/// One run, or a run and its branch.
bool same_family(const Span& a, const Span& b) {
  const std::string one = a.directory.string(), other = b.directory.string();
  return one == other || one.starts_with(other + "/") || other.starts_with(one + "/");
}

std::optional<Span> span_of(const RunInfo& info) {
  Span span{info.provenance.value("host", "") + " " + info.provenance.value("device", ""), info.provenance.value("started", ""),
            last_written(info.directory), info.directory};
  if (span.begin.empty() || span.end.empty()) return {};
  if (info.state == RunState::running) span.end = "9999";
  return span;
}

}  // namespace

const char* to_string(Spent spent) { return kNames[static_cast<size_t>(spent)]; }

Spent parse_spent(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Spent>(i);
  throw UsageError("equal \"" + name + "\"; expected tokens, flops or seconds");
}

std::string describe(Spent spent, double amount) {
  if (spent == Spent::tokens) return number_text("%.0f tokens", amount);
  return spent == Spent::flops ? number_text("%.3e FLOPs", amount) : number_text("%.4g s of training", amount);
}

Course course(const Run& run, Spent spent, const std::string& domain, const PretrainingLoss& loss) {
  Course found;
  const Series inside = pretraining_series(run, loss);
  const Series* outside = run.find(domain.empty() ? "ood/loss" : "ood/loss/" + domain);
  size_t j = 0;
  for (size_t i = 0; i < inside.step.size(); ++i) {
    while (outside && j < outside->step.size() && outside->step[j] < inside.step[i]) ++j;
    const bool both = outside && j < outside->step.size() && outside->step[j] == inside.step[i];
    const double ood = both ? outside->value[j] : std::nan(""), amount = column(inside, spent)[i];
    if (!std::isfinite(inside.value[i]) || !std::isfinite(amount) || (!found.spent.empty() && amount <= found.spent.back())) continue;
    found.spent.push_back(amount), found.pretraining.push_back(inside.value[i]), found.ood.push_back(ood);
  }
  return found;
}

std::optional<LossesAt> losses_at(const Course& course, double amount) {
  const auto at = std::lower_bound(course.spent.begin(), course.spent.end(), amount);
  if (at == course.spent.end()) return {};
  const auto i = static_cast<size_t>(at - course.spent.begin());
  if (*at == amount) return LossesAt{course.pretraining[i], course.ood[i]};
  if (i == 0) return {};
  const double share = (amount - course.spent[i - 1]) / (course.spent[i] - course.spent[i - 1]);
  const auto between = [&](const std::vector<double>& values) { return values[i - 1] + share * (values[i] - values[i - 1]); };
  return LossesAt{between(course.pretraining), between(course.ood)};
}

std::optional<double> least_spent(const std::vector<Course>& courses) {
  std::optional<double> least;
  for (const Course& one : courses)
    if (!one.spent.empty()) least = std::min(least.value_or(one.spent.back()), one.spent.back());
  return least;
}

std::string device_of(const RunInfo& info) {
  const std::string device = info.provenance.value("device", "");
  const bool cuda = device.starts_with("cuda");
  const std::string model = info.provenance.value(cuda ? "gpu" : "processor", "");
  const auto threads = info.config.value("threads", int64_t{0});
  std::string text = (device.empty() ? "unknown device" : device) + (model.empty() ? "" : ", " + model);
  if (!cuda && threads > 0) text += ", " + std::to_string(threads) + (threads > 1 ? " threads" : " thread");
  return text;
}

std::string model_of_device(const std::string& device) {
  const size_t comma = device.find(", ");
  return device.starts_with("cuda") && comma != std::string::npos ? device.substr(comma + 2) : device;
}

std::string different_devices(const std::vector<const RunInfo*>& runs) {
  std::map<std::string, std::set<std::string>> models;
  for (const RunInfo* run : runs) {
    const std::string device = device_of(*run);
    models[model_of_device(device)].insert(device);
  }
  if (models.size() < 2) return {};
  std::set<std::string> shown;
  for (const auto& [model, devices] : models) shown.insert(*devices.begin());
  return "seconds of different devices do not compare: " + joined(shown, "; ");
}

std::vector<std::string> shared_time(const std::vector<const RunInfo*>& runs) {
  std::vector<std::string> words;
  std::set<std::string> hosts;
  std::vector<Span> spans;
  for (const RunInfo* run : runs) {
    if (const std::string host = run->provenance.value("host", ""); !host.empty()) hosts.insert(host);
    if (std::optional<Span> span = span_of(*run)) spans.push_back(std::move(*span));
  }
  if (hosts.size() > 1) words.push_back("seconds are of several machines: " + joined(hosts, ", "));
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::set<size_t> beside;
  for (size_t i = 0; i < spans.size(); ++i)
    for (size_t k = i + 1; k < spans.size() && spans[k].begin < spans[i].end; ++k)
      if (spans[i].meets(spans[k]) && !same_family(spans[i], spans[k])) beside.insert({i, k});
  if (!beside.empty())
    words.push_back("seconds: " + std::to_string(beside.size()) + " of " + std::to_string(runs.size()) +
                    " runs were at work on one device at the same time, which makes them longer than they are alone");
  return words;
}

std::string describe_equality(const std::vector<ComparisonRow>& rows) {
  struct Quantity {
    const char *name, *pattern;
    std::function<double(const ComparisonRow&)> of;
  };
  const Quantity quantities[] = {{"parameters", "%.0f", [](const ComparisonRow& r) { return static_cast<double>(r.parameters); }},
                                 {"parameters without embeddings", "%.0f",
                                  [](const ComparisonRow& r) {
                                    return r.embedding_parameters ? static_cast<double>(r.parameters - *r.embedding_parameters)
                                                                  : std::nan("");
                                  }},
                                 {"tokens", "%.0f", [](const ComparisonRow& r) { return r.tokens; }},
                                 {"FLOPs", "%.3e", [](const ComparisonRow& r) { return r.flops; }},
                                 {"seconds of training", "%.4g", [](const ComparisonRow& r) { return r.seconds; }},
                                 {"bytes of state per token of context", "%.0f", [](const ComparisonRow& r) { return r.state_bytes; }}};
  constexpr double kEqual = 1.01;
  if (rows.size() < 2) return {};
  std::string equal, other;
  for (const Quantity& quantity : quantities) {
    std::vector<double> values;
    for (const ComparisonRow& row : rows) values.push_back(quantity.of(row));
    if (std::any_of(values.begin(), values.end(), [](double v) { return !std::isfinite(v); })) continue;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    std::string& list = *most <= kEqual * *least ? equal : other;
    list += (list.empty() ? "" : ", ") + std::string(quantity.name);
    std::array<char, 96> range{};
    std::snprintf(range.data(), range.size(), (std::string(" ") + quantity.pattern + " to " + quantity.pattern).c_str(), *least, *most);
    if (&list == &other) list += range.data();
  }
  std::set<std::string> devices;
  for (const ComparisonRow& row : rows)
    for (const std::string& device : row.devices) devices.insert(model_of_device(device));
  std::string text = equal.empty() ? "Nothing is equal." : "Equal within 1 %: " + equal + ".";
  if (!other.empty()) text += " Not equal: " + other + ".";
  return devices.size() > 1 ? text + " Seconds are of " + std::to_string(devices.size()) + " devices and do not compare." : text;
}

EqualCost compare_at_equal(const std::vector<const Run*>& runs, Spent spent, const std::string& domain,
                           const PretrainingLoss& pretraining) {
  EqualCost result{spent, {}, {}, {}};
  std::vector<const RunInfo*> infos;
  for (const Run* run : runs) infos.push_back(&run->info());
  if (spent == Spent::seconds) {
    if (const std::string problem = different_devices(infos); !problem.empty())
      throw UsageError(problem + "; compare at equal flops or tokens");
    result.warnings = shared_time(infos);
  }
  const std::vector<RunGroup> groups = group_runs(runs);
  std::vector<std::vector<Course>> courses;
  std::vector<Course> all;
  for (const RunGroup& group : groups) {
    courses.emplace_back();
    for (const Run* run : group.seeds) {
      const bool counts = run->damage().empty() && run->info().state != RunState::diverged;
      courses.back().push_back(counts ? course(*run, spent, domain, pretraining) : Course{});
      all.push_back(courses.back().back());
    }
  }
  result.amount = least_spent(all);
  for (size_t g = 0; g < groups.size(); ++g) {
    EqualCostRow row{groups[g].label, {}, {}, {}, "–"};
    std::vector<double> inside, outside;
    std::set<std::string> devices;
    for (size_t i = 0; i < courses[g].size(); ++i) {
      devices.insert(device_of(groups[g].seeds[i]->info()));
      if (!result.amount) continue;
      if (const auto at = losses_at(courses[g][i], *result.amount)) inside.push_back(at->pretraining), outside.push_back(at->ood);
    }
    row.devices.assign(devices.begin(), devices.end());
    row.pretraining = repeated(inside), row.ood = repeated(outside);
    if (!inside.empty()) row.read_from = read_from(groups[g].seeds, courses[g], *result.amount);
    result.rows.push_back(std::move(row));
  }
  for (EqualCostRow& row : result.rows)
    if (const Repeated& first = result.rows.front().ood; first.count > 0 && row.ood.count > 0)
      row.against_first = row.ood.mean - first.mean;
  const auto mid =
      std::count_if(result.rows.begin(), result.rows.end(), [](const EqualCostRow& r) { return r.read_from == "mid-schedule"; });
  if (mid > 0)
    result.warnings.push_back(
        std::to_string(mid) + " of " + std::to_string(result.rows.size()) +
        " rows are read mid-schedule, before the learning rate had fallen: cooldown branches or as long a schedule would be fair");
  return result;
}

std::string to_text(const EqualCost& comparison) {
  const std::string what = comparison.spent == Spent::flops ? "FLOPs" : to_string(comparison.spent);
  if (!comparison.amount) return "No run has been evaluated, so none can be read at equal " + what + ".\n";
  std::string text = "At equal " + what + ", " + describe(comparison.spent, *comparison.amount) + ", those of the run that took least:\n";
  const auto number = [](const Repeated& r) {
    return r.count == 0 ? std::string("–") : number_text("%.4f", r.mean) + (r.deviation ? " ± " + number_text("%.4f", *r.deviation) : "");
  };
  for (const EqualCostRow& row : comparison.rows) {
    text += row.title + ": ID loss " + number(row.pretraining) + ", OOD loss " + number(row.ood);
    if (row.against_first) text += " (" + number_text("%+.4f", *row.against_first) + " against first)";
    text += ", " + std::to_string(row.pretraining.count) + (row.pretraining.count == 1 ? " seed, " : " seeds, ") + row.read_from;
    if (comparison.spent == Spent::seconds) text += "; on " + joined({row.devices.begin(), row.devices.end()}, "; ");
    text += "\n";
  }
  for (const std::string& warning : comparison.warnings) text += "warning: " + warning + "\n";
  return text;
}

json to_json(const EqualCost& comparison) {
  const auto repeated_json = [](const Repeated& r) {
    return json{{"count", r.count},
                {"mean", r.count > 0 && std::isfinite(r.mean) ? json(r.mean) : json()},
                {"deviation", r.deviation ? json(*r.deviation) : json()},
                {"half_95", r.half_95 ? json(*r.half_95) : json()}};
  };
  json rows = json::array();
  for (const EqualCostRow& row : comparison.rows)
    rows.push_back({{"title", row.title},
                    {"pretraining_loss", repeated_json(row.pretraining)},
                    {"ood_loss", repeated_json(row.ood)},
                    {"against_first", row.against_first ? json(*row.against_first) : json()},
                    {"read_from", row.read_from},
                    {"devices", row.devices}});
  return {{"what", to_string(comparison.spent)},
          {"amount", comparison.amount ? json(*comparison.amount) : json()},
          {"rows", rows},
          {"warnings", comparison.warnings}};
}

}  // namespace saccade
