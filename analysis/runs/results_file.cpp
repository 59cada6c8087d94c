#include "analysis/runs/results_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/runs/files.h"
#include "analysis/runs/hdf5.h"
#include "analysis/runs/history.h"
#include "analysis/runs/journal.h"
#include "analysis/runs/layers.h"
#include "analysis/runs/record_json.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/task_items_group.h"
#include "models/corpus/sha256.h"

namespace saccade {
namespace {

constexpr int64_t kFormat = 1;
constexpr const char* kErrors = "_errors";

struct AxisColumn {
  const char* name;
  const char* unit;
  const char* long_name;
  Column Series::*values;
};
constexpr std::array<AxisColumn, 4> kAxes = {{{"step", "1", "step", &Series::step},
                                              {"tokens", "tokens", "training tokens", &Series::tokens},
                                              {"flops", "FLOP", "training FLOPs", &Series::flops},
                                              {"seconds", "s", "training time (s)", &Series::seconds}}};

/// A name for one object: levels are parted by dots, for a slash would part groups.
std::string object_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

void describe(const h5::Group& group, const std::string& data, const std::string& unit, const std::string& long_name) {
  group.set_attribute("units", unit, data);
  group.set_attribute("long_name", long_name, data);
}

/// The values, and their standard errors as NeXus names them: "value", "value_errors".
void write_values(const h5::Group& group, const std::string& data, const Series& series, const std::string& long_name) {
  group.write(data, series.value.values());
  describe(group, data, series.unit, long_name);
  if (series.error.empty()) return;
  group.write(data + kErrors, series.error.values());
  describe(group, data + kErrors, series.unit, "standard error of " + long_name);
}

void write_axes(const h5::Group& group, const Series& series) {
  for (const AxisColumn& axis : kAxes) {
    group.write(axis.name, (series.*axis.values).values());
    describe(group, axis.name, axis.unit, axis.long_name);
  }
}

/// Series measured at the same moments share their axes: a second name for the same data set.
class SharedAxes {
 public:
  void write(const h5::Group& group, const std::string& path, const Series& series) {
    const auto known = std::find_if(written_.begin(), written_.end(), [&](const auto& w) { return same_moments(*w.first, series); });
    if (known == written_.end()) {
      write_axes(group, series);
      written_.emplace_back(&series, path);
      return;
    }
    for (const AxisColumn& axis : kAxes) group.link(axis.name, known->second + "/" + axis.name);
  }

 private:
  static bool same_moments(const Series& a, const Series& b) {
    return std::all_of(kAxes.begin(), kAxes.end(), [&](const AxisColumn& axis) { return a.*axis.values == b.*axis.values; });
  }
  std::vector<std::pair<const Series*, std::string>> written_;
};

void write_series(const h5::Group& run, const RunHistory& history) {
  SharedAxes axes;
  std::vector<std::string> names;
  for (const Series& series : history.series()) {
    const std::string path = "series/" + object_name(series.name);
    const h5::Group group = run.create(path);
    group.set_attribute("NX_class", "NXdata");
    group.set_attribute("signal", "value");
    group.set_attribute("axes", std::vector<std::string>{"step"});
    group.set_attribute("title", series.name);
    group.set_attribute("name", series.name);
    write_values(group, "value", series, series.name + (series.unit == "1" ? "" : " (" + series.unit + ")"));
    axes.write(group, "/run/" + path, series);
    names.push_back(path);
  }
  run.write_texts("series_paths", names);
}

/// The plot that opens first: validation against OOD losses; before the first evaluation the training loss.
void write_losses(const h5::Group& run, const RunHistory& history) {
  std::vector<const Series*> shown;
  const Series *mean = history.find("validation/loss"), *train = history.find("train/loss");
  if (mean && !mean->value.empty()) {
    shown.push_back(mean);
    for (const std::string& domain : history.ood_domains()) shown.push_back(history.find("ood/loss/" + domain));
  } else if (train && !train->value.empty()) {
    shown.push_back(train);
  } else {
    return;
  }
  const h5::Group group = run.create("losses");
  std::vector<std::string> names;
  for (const Series* series : shown) {
    if (series->value.size() != shown.front()->value.size()) continue;
    const std::string name = object_name(series->name);
    write_values(group, name, *series, series->name + " (nats per token)");
    names.push_back(name);
  }
  write_axes(group, *shown.front());
  group.set_attribute("NX_class", "NXdata");
  group.set_attribute("title", "Loss by training tokens");
  group.set_attribute("signal", names.front());
  group.set_attribute("axes", std::vector<std::string>{"tokens"});
  names.erase(names.begin());
  if (!names.empty()) group.set_attribute("auxiliary_signals", names);
  run.set_attribute("default", "losses");
}

/// One statistic of all heads over the run; NaN where a layer or head has none.
struct HeadTable {
  std::string unit;
  int64_t layers = 0, heads = 0;
  std::vector<const StatisticsRecord*> records;
};

std::map<std::string, HeadTable> head_tables(const RunHistory& history) {
  std::map<std::string, HeadTable> tables;
  for (const StatisticsRecord& record : history.statistics())
    for (const HeadStatistic& s : record.statistics) {
      HeadTable& table = tables[s.name];
      table.unit = s.unit;
      table.layers = std::max(table.layers, s.layer + 1);
      table.heads = std::max(table.heads, static_cast<int64_t>(s.heads.size()));
      if (table.records.empty() || table.records.back() != &record) table.records.push_back(&record);
    }
  return tables;
}

/// What a statistic of models/probe.h is, for who reads the file alone; its name where it is another.
std::string meaning_of(const std::string& statistic) {
  static const std::map<std::string, std::string> meanings{
      {"entropy", "entropy of what a query reads from, mean over queries (Top-1 Element: of the soft distribution)"},
      {"entropy_normalized", "entropy over that of reading everything before alike"},
      {"distance", "how far back a query reads, mean weighted by its reads"},
      {"outside_256", "share of reads that lie beyond the last 256 positions"},
      {"captured_mass", "share of the full softmax's mass that the chosen chunk and the own one keep"},
      {"margin", "score of the least that was chosen minus the best that was not"},
      {"chunk_distance", "how many chunks back the chosen one lies"},
      {"usage_entropy", "entropy of how often each chunk is chosen"},
      {"dead_chunks", "share of the chunks that some query could choose and none did, by sequence"},
      {"churn", "share of the queries that choose otherwise than at the probe before, on the same text"},
      {"skip", "weight of a token's own input beside what the recurrence reads (D of Mamba), which the other statistics leave out"}};
  const auto at = meanings.find(statistic);
  return at == meanings.end() ? statistic : at->second;
}

/// The axes of a table of heads: numbers from 0, and of the steps.
void write_head_axes(const h5::Group& group, const std::vector<double>& steps, int64_t layers, int64_t heads) {
  const auto numbers = [&](const char* name, int64_t count, const std::string& long_name) {
    std::vector<double> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0.0);
    group.write(name, values);
    describe(group, name, "1", long_name);
  };
  group.write("step", steps);
  describe(group, "step", "1", "optimizer steps");
  numbers("layer", layers, "layer, from 0");
  numbers("head", heads, "head, from 0");
}

void write_statistics(const h5::Group& run, const RunHistory& history, const RunInfo& info) {
  const std::vector<std::string> mixers = layer_mixers(info);
  const bool has_mamba1 = info.config.dump().find("\"mamba1\"") != std::string::npos;
  for (const auto& [name, table] : head_tables(history)) {
    const int64_t layers = std::max<int64_t>(1, table.layers), per_record = layers * table.heads;
    std::vector<double> values(table.records.size() * static_cast<size_t>(per_record), std::nan("")), steps;
    for (size_t r = 0; r < table.records.size(); ++r) {
      steps.push_back(static_cast<double>(table.records[r]->at.step));
      for (const HeadStatistic& s : table.records[r]->statistics)
        if (s.name == name)
          std::copy(s.heads.begin(), s.heads.end(),
                    values.begin() + static_cast<int64_t>(r) * per_record + std::max<int64_t>(0, s.layer) * table.heads);
    }
    const h5::Group group = run.create("statistics/" + object_name(name));
    group.set_attribute("NX_class", "NXdata");
    group.set_attribute("signal", "value");
    group.set_attribute("axes", std::vector<std::string>{"step", "layer", "head"});
    group.set_attribute("title", name + " by layer and head");
    group.write<double>("value", values, {static_cast<int64_t>(steps.size()), layers, table.heads});
    describe(group, "value", table.unit, name + (table.unit == "1" ? "" : " (" + table.unit + ")"));
    group.set_attribute("description", meaning_of(name));
    if (has_mamba1) group.set_attribute("heads", std::string("of mamba1: inner channels, evenly spaced, that stand for all"));
    write_head_axes(group, steps, layers, table.heads);
    if (!mixers.empty()) group.write_texts("layer_mixers", mixers);
  }
}

/// A group for each task and its options where they are not the usual ones ("arc-easy-limit-100"), with the score that tables give over the
/// checkpoints, and every other score as a data set of its own.
void write_evaluation(const h5::Group& run, const RunHistory& history, const std::filesystem::path& directory) {
  std::map<std::string, std::vector<const TaskScoreRecord*>> tasks;
  for (const TaskScoreRecord& scores : history.task_scores())
    tasks[scores.task + (scores.options.empty() ? "" : "-" + scores.options)].push_back(&scores);
  for (auto& [task, records] : tasks) {
    std::sort(records.begin(), records.end(), [](const auto* a, const auto* b) { return a->step < b->step; });
    const h5::Group group = run.create("evaluation/" + object_name(task));
    group.set_attribute("NX_class", "NXdata");
    group.set_attribute("signal", object_name(records.back()->metric));
    group.set_attribute("axes", std::vector<std::string>{"step"});
    group.set_attribute("title", task);
    group.set_attribute("task", records.back()->task);
    if (!records.back()->options.empty()) group.set_attribute("options", records.back()->options);
    std::map<std::string, std::array<std::vector<double>, 2>> columns;  // value and error of a metric; NaN where a record lacks it
    std::vector<double> steps, chance, partial, shots, longest;
    std::vector<std::string> hashes;
    for (const TaskScoreRecord* record : records) {
      for (const TaskScoreRecord::Score& s : record->scores)
        for (std::vector<double>& column : columns[s.metric]) column.resize(steps.size(), std::nan(""));
      for (const TaskScoreRecord::Score& s : record->scores) {
        columns[s.metric][0].push_back(s.value);
        columns[s.metric][1].push_back(s.standard_error);
      }
      steps.push_back(static_cast<double>(record->step)), chance.push_back(record->chance), hashes.push_back(record->data_hash);
      partial.push_back(record->partial ? 1 : 0), shots.push_back(static_cast<double>(record->shots));
      longest.push_back(static_cast<double>(record->max_length));
      for (auto& [metric, column] : columns)
        for (std::vector<double>& values : column) values.resize(steps.size(), std::nan(""));
    }
    for (const auto& [metric, column] : columns) {
      const std::string name = object_name(metric);
      group.write(name, column[0]);
      describe(group, name, "1", metric);
      group.write(name + kErrors, column[1]);
      describe(group, name + kErrors, "1", "standard error of " + metric);
    }
    group.write("step", steps);
    group.write("chance", chance);
    group.write_texts("data_hashes", hashes);
    group.write("partial", partial), group.write("shots", shots), group.write("max_length", longest);
    for (const TaskScoreRecord* record : records) write_task_items(group, directory, *record);
  }
}

constexpr const char* kLost = "journal_lost";
constexpr const char* kTaskScores = "task_scores_sha256";  ///< of all that the journal has of them

std::string digest_of(const std::vector<TaskScoreRecord>& scores) {
  Sha256 sha;
  for (const TaskScoreRecord& record : scores) sha.update(to_record(record).dump());
  return scores.empty() ? "" : hex(sha.finish());
}

/// What the journal says in all.
struct Journal {
  RunHistory history;
  std::string lost;  ///< one line, empty when nothing is
};

Journal read_journal(const std::filesystem::path& directory) {
  Journal journal;
  JournalReader reader(directory / "journal.jsonl");
  reader.poll([&](const Record& record) { journal.history.apply(record); });
  for (const JournalHole& hole : reader.holes()) journal.lost += (journal.lost.empty() ? "" : "; ") + describe(hole);
  return journal;
}

void write_file(const std::filesystem::path& path, const RunInfo& info, const Journal& journal) {
  const RunHistory& history = journal.history;
  h5::Writer file(path);
  const h5::Group& root = file.root();
  root.set_attribute("NX_class", "NXroot");
  root.set_attribute("default", "run");
  root.set_attribute("creator", "saccade " SACCADE_VERSION);
  root.set_attribute("format_version", kFormat);
  root.set_attribute("created", utc_now());
  {
    const h5::Group run = root.create("run");
    run.set_attribute("NX_class", "NXentry");
    run.set_attribute("title", info.title + (info.name.empty() ? "" : " (" + info.name + ")"));
    run.set_attribute("state", to_string(info.state));
    run.set_attribute("step", history.step());
    run.set_attribute("parameters", info.parameters);
    run.write_text("config", info.config.dump(2));
    run.write_text("provenance", info.provenance.dump(2));
    if (!journal.lost.empty()) run.write_text(kLost, journal.lost);
    if (const std::string digest = digest_of(history.task_scores()); !digest.empty()) run.write_text(kTaskScores, digest);
    write_losses(run, history);
    write_series(run, history);
    write_statistics(run, history, info);
    write_evaluation(run, history, info.directory);
  }
  file.close();
}

bool same_values(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// each(series) of a results file, one at a time, so that no more than one of them is held.
template <class F>
void for_series_of(const h5::Reader& file, F&& each) {
  if (file.root().integer_attribute("format_version") != kFormat) file.root().fail("another format version", ".");
  const h5::Group run = file.root().open("run");
  for (const std::string& name : run.read_texts("series_paths")) {
    const h5::Group group = run.open(name);
    Series series;
    series.name = group.text_attribute("name");
    series.unit = group.text_attribute("units", "value");
    series.value = group.read<double>("value");
    if (const std::string errors = std::string("value") + kErrors; group.contains(errors)) series.error = group.read<double>(errors);
    for (const AxisColumn& axis : kAxes) series.*axis.values = group.read<double>(axis.name);
    each(std::move(series));
  }
}

bool same_series(const Series& a, const Series& b) {
  return a.name == b.name && a.unit == b.unit && same_values(a.value, b.value) && same_values(a.error, b.error) &&
         std::all_of(kAxes.begin(), kAxes.end(), [&](const AxisColumn& axis) { return same_values(a.*axis.values, b.*axis.values); });
}

bool holds_series(const std::filesystem::path& path, const RunHistory& history, h5::Origin origin) {
  const std::vector<Series>& wanted = history.series();
  size_t seen = 0;
  bool same = true;
  for_series_of(h5::Reader(path, origin), [&](const Series& series) {
    same = same && seen < wanted.size() && same_series(series, wanted[seen]);
    ++seen;
  });
  return same && seen == wanted.size();
}

}  // namespace

void write_results_file(const RunInfo& info) {
  const Journal journal = read_journal(info.directory);
  replace_file(info.directory / "results.h5", [&](const std::filesystem::path& aside) {
    write_file(aside, info, journal);
    if (!holds_series(aside, journal.history, h5::Origin::this_process))
      throw DataError(aside.string() + ": read back other series than written");
  });
}

bool results_file_is_current(const RunInfo& info) {
  const Journal journal = read_journal(info.directory);
  const std::filesystem::path path = info.directory / "results.h5";
  try {
    if (!holds_series(path, journal.history, h5::Origin::anyone)) return false;
    const h5::Reader file(path);
    const h5::Group run = file.root().open("run");
    const auto text = [&](const char* name) { return run.contains(name) ? run.read_text(name) : std::string(); };
    return run.text_attribute("state") == to_string(info.state) && run.integer_attribute("step") == journal.history.step() &&
           text(kLost) == journal.lost && text(kTaskScores) == digest_of(journal.history.task_scores());
  } catch (const DataError&) {  // missing or damaged
    return false;
  }
}

std::vector<Series> read_results_series(const std::filesystem::path& path) {
  std::vector<Series> list;
  for_series_of(h5::Reader(path), [&](Series series) { list.push_back(std::move(series)); });
  return list;
}

}  // namespace saccade
