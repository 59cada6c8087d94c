#include "analysis/runs/record_json.h"

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

Record positioned(const char* type, const Position& at) {
  return {{"type", type}, {"step", at.step}, {"tokens", at.tokens}, {"flops", json_number(at.flops)}, {"seconds", json_number(at.seconds)}};
}

Position position_from(const Record& record) {
  return {record.at("step").get<int64_t>(), record.at("tokens").get<int64_t>(), number_from(record.at("flops")),
          number_from(record.at("seconds"))};
}

constexpr std::array kStates = {RunState::created,  RunState::running, RunState::finished, RunState::stopped,
                                RunState::diverged, RunState::failed,  RunState::crashed};

}  // namespace

const char* to_string(RunState state) {
  switch (state) {
    case RunState::created: return "created";
    case RunState::running: return "running";
    case RunState::finished: return "finished";
    case RunState::stopped: return "stopped";
    case RunState::diverged: return "diverged";
    case RunState::failed: return "failed";
    case RunState::crashed: return "crashed";
  }
  return "";
}

RunState parse_run_state(const std::string& text) {
  for (const RunState state : kStates)
    if (text == to_string(state)) return state;
  throw DataError("\"" + text + "\" is no state of a run");
}

Record json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

double number_from(const Record& value) {
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return value.get<double>();
}

Record to_record(const StepRecord& step) {
  Record record = positioned("step", {step.step, step.tokens, step.flops, step.seconds});
  record["loss"] = json_number(step.loss);
  record["learning_rate"] = json_number(step.learning_rate);
  record["gradient_norm"] = json_number(step.gradient_norm);
  record["tokens_per_second"] = json_number(step.tokens_per_second);
  return record;
}

StepRecord step_from(const Record& record) {
  const Position at = position_from(record);
  return {at.step,
          at.tokens,
          at.flops,
          at.seconds,
          number_from(record.at("loss")),
          number_from(record.at("learning_rate")),
          number_from(record.at("gradient_norm")),
          number_from(record.at("tokens_per_second"))};
}

Record to_record(const EvaluationRecord& evaluation) {
  Record record = positioned("evaluation", evaluation.at);
  record["losses"] = Record::array();
  for (const DomainLoss& loss : evaluation.losses) {
    Record row{
        {"domain", loss.domain}, {"ood", loss.ood}, {"loss", json_number(loss.loss)}, {"standard_error", json_number(loss.standard_error)}};
    if (!std::isnan(loss.bits_per_byte)) row["bits_per_byte"] = json_number(loss.bits_per_byte);
    if (!std::isnan(loss.accuracy)) row["accuracy"] = loss.accuracy;
    for (const PositionLoss& bin : loss.by_position) row["by_position"].push_back({bin.begin, bin.end, json_number(bin.loss)});
    record["losses"].push_back(std::move(row));
  }
  return record;
}

EvaluationRecord evaluation_from(const Record& record) {
  EvaluationRecord evaluation{position_from(record), {}};
  for (const Record& loss : record.at("losses")) {  // journals before had no errors, bits per byte and positions
    DomainLoss row{loss.at("domain").get<std::string>(), loss.at("ood").get<bool>(), number_from(loss.at("loss")),
                   number_from(loss.value("standard_error", Record("NaN"))), number_from(loss.value("bits_per_byte", Record("NaN")))};
    row.accuracy = number_from(loss.value("accuracy", Record("NaN")));
    for (const Record& bin : loss.value("by_position", Record::array()))
      row.by_position.push_back({bin.at(0).get<int64_t>(), bin.at(1).get<int64_t>(), number_from(bin.at(2))});
    evaluation.losses.push_back(std::move(row));
  }
  return evaluation;
}

Record to_record(const DataRecord& data) {
  Record record = positioned("data", data.at);
  record["domains"] = Record::array();
  for (const DomainUse& use : data.domains)
    record["domains"].push_back({{"domain", use.domain}, {"sequences", use.sequences}, {"epochs", use.epochs}});
  return record;
}

Record to_record(const MemoryRecord& memory) {
  Record record = positioned("memory", memory.at);
  record["device_bytes"] = memory.device_bytes;
  record["process_bytes"] = memory.process_bytes;
  return record;
}

MemoryRecord memory_from(const Record& record) {
  return {position_from(record), record.at("device_bytes").get<int64_t>(), record.at("process_bytes").get<int64_t>()};
}

Record to_record(const StatisticsRecord& statistics) {
  Record record = positioned("statistics", statistics.at);
  record["statistics"] = Record::array();
  for (const HeadStatistic& s : statistics.statistics) {
    Record heads = Record::array();
    for (const double value : s.heads) heads.push_back(json_number(value));
    record["statistics"].push_back({{"name", s.name}, {"unit", s.unit}, {"layer", s.layer}, {"heads", std::move(heads)}});
  }
  return record;
}

StatisticsRecord statistics_from(const Record& record) {
  StatisticsRecord statistics{position_from(record), {}};
  for (const Record& s : record.at("statistics")) {
    HeadStatistic head{s.at("name").get<std::string>(), s.at("unit").get<std::string>(), s.at("layer").get<int64_t>(), {}};
    for (const Record& value : s.at("heads")) head.heads.push_back(number_from(value));
    statistics.statistics.push_back(std::move(head));
  }
  return statistics;
}

Record to_record(const TaskScoreRecord& scores) {
  Record record{{"type", "task"},
                {"step", scores.step},
                {"task", scores.task},
                {"metric", scores.metric},
                {"chance", json_number(scores.chance)},
                {"data_hash", scores.data_hash},
                {"checkpoint_hash", scores.checkpoint_hash},
                {"scores", Record::array()}};
  for (const TaskScoreRecord::Score& s : scores.scores)
    record["scores"].push_back(
        {{"metric", s.metric}, {"value", json_number(s.value)}, {"standard_error", json_number(s.standard_error)}, {"items", s.items}});
  record["options"] = scores.options, record["partial"] = scores.partial;
  record["limit"] = scores.limit, record["shots"] = scores.shots, record["max_length"] = scores.max_length;
  return record;
}

TaskScoreRecord task_scores_from(const Record& record) {
  TaskScoreRecord scores{record.at("step").get<int64_t>(),
                         record.at("task").get<std::string>(),
                         record.at("metric").get<std::string>(),
                         number_from(record.at("chance")),
                         record.at("data_hash").get<std::string>(),
                         record.at("checkpoint_hash").get<std::string>(),
                         {}};
  for (const Record& s : record.at("scores"))
    scores.scores.push_back(
        {s.at("metric").get<std::string>(), number_from(s.at("value")), number_from(s.at("standard_error")), s.at("items").get<int64_t>()});
  scores.options = record.value("options", ""), scores.partial = record.value("partial", false);
  scores.limit = record.value("limit", int64_t{0}), scores.shots = record.value("shots", int64_t{0});
  scores.max_length = record.value("max_length", int64_t{0});
  return scores;
}

bool is_preferred(const TaskScoreRecord& a, const TaskScoreRecord& b) {
  const auto place = [](const TaskScoreRecord& r) {
    const int64_t items = r.scores.empty() ? 0 : r.scores.front().items;
    return std::tuple(r.partial, !r.options.empty(), -items, r.options.size(), r.options);
  };
  return place(a) < place(b);
}

Record state_record(RunState state, int64_t step, const std::string& message) {
  return {{"type", "state"}, {"step", step}, {"state", to_string(state)}, {"message", message}};
}

Record resume_record(int64_t step, int64_t repeats) {
  Record record{{"type", "resume"}, {"step", step}};
  if (repeats >= 0) record["repeats"] = repeats;
  return record;
}

}  // namespace saccade
