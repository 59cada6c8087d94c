#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/comparison/comparison.h"
#include "analysis/runs/record_json.h"

namespace saccade {
namespace {

using nlohmann::json;

std::string format(const char* pattern, double value) {
  if (std::isnan(value)) return "–";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}
std::string format(const char* pattern, const std::optional<double>& value) { return value ? format(pattern, *value) : "–"; }

size_t width_of(const std::string& utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// First column left, the others right.
std::string aligned(const std::vector<std::vector<std::string>>& table) {
  std::vector<size_t> widths(table.front().size(), 0);
  for (const auto& line : table)
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], width_of(line[c]));
  std::string text;
  for (const auto& line : table) {
    std::string row;
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string space(widths[c] - width_of(line[c]), ' ');
      row += (c > 0 ? "  " : "") + (c == 0 ? line[c] + space : space + line[c]);
    }
    text += row + "\n";
  }
  return text;
}

std::vector<std::string> domain_names(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : comparison.rows)
    for (const auto& [name, loss] : row.domains)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

/// "1234 MiB", of the process where that was measured.
std::string memory_of(const ComparisonRow& row) {
  constexpr double kMebibyte = 1 << 20;
  return format("%.0f MiB", row.memory_bytes / kMebibyte) + (row.memory_of_process && !std::isnan(row.memory_bytes) ? " (process)" : "");
}

/// What the rows took, one seed's worth.
std::string cost_table(const Comparison& comparison) {
  std::vector<std::vector<std::string>> table{
      {"a run took", "parameters", "without embeddings", "tokens", "FLOPs", "s of steps", "state B/token", "peak memory", "device"}};
  for (const ComparisonRow& row : comparison.rows) {
    std::string devices;
    for (const std::string& device : row.devices) devices += (devices.empty() ? "" : "; ") + device;
    table.push_back({row.title, std::to_string(row.parameters),
                     row.embedding_parameters ? std::to_string(row.parameters - *row.embedding_parameters) : "–",
                     format("%.0f", row.tokens), format("%.3e", row.flops), format("%.4g", row.seconds), format("%.0f", row.state_bytes),
                     memory_of(row), devices});
  }
  return aligned(table);
}

json number_or_null(const std::optional<double>& value) { return value && std::isfinite(*value) ? json(*value) : json(); }

}  // namespace

std::string to_text(const Comparison& comparison) {
  if (comparison.rows.empty()) return "no runs\n";
  const std::vector<std::string> domains = domain_names(comparison);
  std::vector<std::string> head = {"architecture", "seeds", "parameters", "tokens/s", "ID loss", "OOD loss"};
  for (const std::string& name : domains) head.push_back("OOD " + name);
  head.push_back(comparison.equal_loss ? "OOD at ID " + format("%.3f", *comparison.equal_loss) : "OOD at equal ID");
  head.insert(head.end(), {"read from", "± seeds", "± 95 %", "against first", "± 95 %", "p", "to tell them apart"});
  const bool paired = std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const ComparisonRow& r) { return r.ood_paired; });
  if (paired) head.insert(head.end(), {"OOD at the end against first", "± text"});
  std::vector<std::vector<std::string>> table = {head};
  for (const ComparisonRow& row : comparison.rows) {
    std::vector<std::string> line = {row.title,
                                     std::to_string(row.seeds.size()),
                                     format("%.3f M", static_cast<double>(row.parameters) / 1e6),
                                     format("%.0f", row.tokens_per_second),
                                     format("%.4f", row.pretraining_loss),
                                     format("%.4f", row.ood_loss)};
    for (const std::string& name : domains) {
      const auto at = std::find_if(row.domains.begin(), row.domains.end(), [&](const auto& d) { return d.first == name; });
      line.push_back(at == row.domains.end() ? "–" : format("%.4f", at->second));
    }
    const std::string from = read_from(row);
    line.insert(line.end(),
                {format("%.4f", row.ood_at_equal), from.empty() ? "–" : from, format("%.4f", row.spread), format("%.4f", row.half_95),
                 format("%+.4f", row.against_first), row.test ? format("%.4f", row.test->difference.half_95) : "–",
                 row.test ? format("%.3g", row.test->p_holm) : "–", row.test ? describe_more(*row.test) : "–"});
    const LossAndError difference = row.ood_paired.value_or(LossAndError{});
    if (paired) line.insert(line.end(), {format("%+.4f", difference.loss), format("%.4f", difference.error)});
    table.push_back(line);
  }
  std::string text =
      aligned(table) + "Losses in nats per token; ID: " + describe(comparison.pretraining) +
      ". ± seeds: sample standard deviation; ± 95 %: of the mean over seeds (Student t); against first: the mean difference of "
      "the seeds that the first has too, and its 95 % interval; p: paired t test of them, corrected for the other rows (Holm).\n";
  if (paired)
    text += "± text: standard error of that difference over the same sequences, evaluated when the runs had ended; not of seeds.\n";
  if (std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const ComparisonRow& r) { return read_from(r) == "mid-schedule"; }))
    text += "mid-schedule: read between evaluations, before the learning rate has fallen; branch ends: between ends of cooldowns.\n";
  if (!comparison.equal_reason.empty()) text += comparison.equal_reason + "\n";
  for (const std::string& run : comparison.left_out) text += "left out: " + run + "\n";
  text += "\n" + cost_table(comparison);
  if (!comparison.equality.empty()) text += comparison.equality + "\n";
  for (const std::string& line : comparison.tuning) text += line + "\n";
  for (const std::string& warning : comparison.warnings) text += "warning: " + warning + "\n";
  return text;
}

json to_json(const Comparison& comparison) {
  json rows = json::array();
  for (const ComparisonRow& row : comparison.rows) {
    json domains = json::object();
    for (const auto& [name, loss] : row.domains) domains[name] = number_or_null(loss);
    rows.push_back({{"title", row.title},
                    {"runs", row.runs},
                    {"seeds", row.seeds},
                    {"independent", row.independent},
                    {"parameters", row.parameters},
                    {"parameters_without_embeddings", row.embedding_parameters ? json(row.parameters - *row.embedding_parameters) : json()},
                    {"tokens", number_or_null(row.tokens)},
                    {"flops", number_or_null(row.flops)},
                    {"seconds", number_or_null(row.seconds)},
                    {"state_bytes_per_token", number_or_null(row.state_bytes)},
                    {"peak_memory_bytes", number_or_null(row.memory_bytes)},
                    {"peak_memory_of", std::isnan(row.memory_bytes) ? json() : json(row.memory_of_process ? "process" : "device")},
                    {"devices", row.devices},
                    {"tokens_per_second", number_or_null(row.tokens_per_second)},
                    {"pretraining_loss", number_or_null(row.pretraining_loss)},
                    {"ood_loss", number_or_null(row.ood_loss)},
                    {"ood_at_equal", number_or_null(row.ood_at_equal)},
                    {"spread", number_or_null(row.spread)},
                    {"interval_95", number_or_null(row.half_95)},
                    {"against_first", number_or_null(row.against_first)},
                    {"read_from", read_from(row).empty() ? json() : json(read_from(row))},
                    {"paired_test", row.test ? json{{"pairs", row.test->difference.count},
                                                    {"difference", number_or_null(row.test->difference.mean)},
                                                    {"interval_95", number_or_null(row.test->difference.half_95)},
                                                    {"p", number_or_null(row.test->p)},
                                                    {"p_holm", number_or_null(row.test->p_holm)},
                                                    {"more_pairs", row.test->more ? json(*row.test->more) : json()}}
                                             : json()},
                    {"ood_paired", row.ood_paired ? json{{"difference", number_or_null(row.ood_paired->loss)},
                                                         {"standard_error", number_or_null(row.ood_paired->error)}}
                                                  : json()},
                    {"domains", domains},
                    {"tuning", to_json(row.tuning)}});
  }
  return {{"pretraining", describe(comparison.pretraining)},
          {"equal_loss", number_or_null(comparison.equal_loss)},
          {"equal_loss_reason", comparison.equal_reason},
          {"rows", rows},
          {"left_out", comparison.left_out},
          {"equality", comparison.equality},
          {"tuning", comparison.tuning},
          {"warnings", comparison.warnings}};
}

}  // namespace saccade
