#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/comparison/comparison.h"
#include "analysis/comparison/number_text.h"
#include "analysis/runs/record_json.h"

namespace saccade {
namespace {

using nlohmann::json;

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
  return number_text("%.0f MiB", row.memory_bytes / kMebibyte) +
         (row.memory_of_process && !std::isnan(row.memory_bytes) ? " (process)" : "");
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
                     number_text("%.0f", row.tokens), number_text("%.3e", row.flops), number_text("%.4g", row.seconds),
                     number_text("%.0f", row.state_bytes), memory_of(row), devices});
  }
  return aligned(table);
}

/// A table for each loss that rows are compared by, of one shape: its seeds and its text, and how far it is from the first row's.
struct LossTable {
  std::string title;
  ComparedLoss ComparisonRow::*loss;
  bool at_equal = false, paired = false;  ///< with what it was read from; with the difference on the same text
};

std::string loss_table(const Comparison& comparison, const LossTable& of) {
  const auto any = [&](auto&& has) { return std::any_of(comparison.rows.begin(), comparison.rows.end(), has); };
  const bool text = any([&](const ComparisonRow& row) { return (row.*of.loss).text_error; });
  const bool paired = of.paired && any([](const ComparisonRow& row) { return row.ood_paired; });
  std::vector<std::string> head{of.title, "loss"};
  if (text) head.emplace_back("± text");
  head.insert(head.end(), {"± seeds", "± 95 %", "against first", "± 95 %", "p", "to tell them apart"});
  if (of.at_equal) head.emplace_back("read from");
  if (paired) head.insert(head.end(), {"on the same text", "± text", "p of text"});
  std::vector<std::vector<std::string>> table{head};
  for (const ComparisonRow& row : comparison.rows) {
    const ComparedLoss& loss = row.*of.loss;
    std::vector<std::string> line{row.title, number_text("%.4f", loss.mean)};
    if (text) line.push_back(number_text("%.4f", loss.text_error));
    line.insert(line.end(), {number_text("%.4f", loss.deviation), number_text("%.4f", loss.half_95),
                             number_text("%+.4f", loss.against_first), loss.test ? number_text("%.4f", loss.test->difference.half_95) : "–",
                             loss.test ? number_text("%.3g", loss.test->p_holm) : "–", loss.test ? describe_more(*loss.test) : "–"});
    if (of.at_equal) line.push_back(read_from(row).empty() ? "–" : read_from(row));
    const LossAndError difference = row.ood_paired.value_or(LossAndError{});
    if (paired)
      line.insert(line.end(),
                  {number_text("%+.4f", difference.loss), number_text("%.4f", difference.error), number_text("%.3g", row.ood_paired_p)});
    table.push_back(std::move(line));
  }
  return aligned(table);
}

/// ", test split" behind what is of another split than runs evaluate themselves on.
std::string of_split(const Comparison& comparison) { return comparison.split == "validation" ? "" : ", " + comparison.split + " split"; }

/// Which text the losses at the end are of, where they are not those of the runs themselves.
std::string split_note(const Comparison& comparison) {
  if (comparison.split == "validation") return "";
  return "Losses at the end, those of single domains too: " + comparison.split + " split, up to " +
         std::to_string(comparison.split_tokens) +
         " tokens of every domain, as the study evaluated them, each domain counting the same; all others are of the validation split.\n";
}

/// What the rows are and where they ended, domain by domain.
std::string end_table(const Comparison& comparison) {
  const std::vector<std::string> domains = domain_names(comparison);
  std::vector<std::string> head = {
      "architecture", "seeds", "parameters", "tokens/s", "ID loss" + of_split(comparison), "OOD loss" + of_split(comparison)};
  for (const std::string& name : domains) head.push_back("OOD " + name);
  std::vector<std::vector<std::string>> table{head};
  for (const ComparisonRow& row : comparison.rows) {
    std::vector<std::string> line = {row.title,
                                     std::to_string(row.seeds.size()),
                                     number_text("%.3f M", static_cast<double>(row.parameters) / 1e6),
                                     number_text("%.0f", row.tokens_per_second),
                                     number_text("%.4f", row.id_at_end.mean),
                                     number_text("%.4f", row.ood_at_end.mean)};
    for (const std::string& name : domains) {
      const auto at = std::find_if(row.domains.begin(), row.domains.end(), [&](const auto& d) { return d.first == name; });
      line.push_back(at == row.domains.end() ? "–" : number_text("%.4f", at->second));
    }
    table.push_back(std::move(line));
  }
  return aligned(table);
}

std::string loss_tables(const Comparison& comparison) {
  std::string text;
  const std::string at = comparison.equal_loss ? "OOD at ID " + number_text("%.3f", *comparison.equal_loss) : "OOD at equal ID";
  for (const LossTable& of : {LossTable{at, &ComparisonRow::ood_at_equal, true},
                              LossTable{"OOD at the end" + of_split(comparison), &ComparisonRow::ood_at_end, false, true},
                              LossTable{"ID at the end" + of_split(comparison), &ComparisonRow::id_at_end}})
    text += "\n" + loss_table(comparison, of);
  text += "Losses in nats per token; ID: " + describe(comparison.pretraining) +
          ". ± text: standard error over the text that was evaluated; ± seeds: sample standard deviation; ± 95 %: of the mean over seeds "
          "(Student t); against first: the mean difference of the seeds that the first has too, and its 95 % interval; p: paired t test of "
          "them, corrected for the other rows (Holm).\n";
  text += split_note(comparison);
  if (comparison.ends_kept && comparison.split == "validation")
    text += "Ends are those of the evaluations that the runs made of one text when they had ended.\n";
  if (!comparison.equal_ends && comparison.rows.size() > 1)
    text += "Not all runs have ended after as many tokens, so their ends are not held against each other.\n";
  const auto any = [&](auto&& has) { return std::any_of(comparison.rows.begin(), comparison.rows.end(), has); };
  if (any([](const ComparisonRow& row) { return row.ood_paired; }))
    text +=
        "on the same text: the difference over the same sequences, evaluated when the runs had ended, its standard error and p (normal "
        "distribution, Holm): they are of these checkpoints, not of seeds.\n";
  if (any([](const ComparisonRow& row) { return read_from(row) == "mid-schedule"; }))
    text += "mid-schedule: read between evaluations, before the learning rate has fallen; branch ends: between ends of cooldowns.\n";
  return text;
}

json number_or_null(const std::optional<double>& value) { return value && std::isfinite(*value) ? json(*value) : json(); }

json to_json(const std::optional<PairedTest>& test) {
  if (!test) return {};
  return {{"pairs", test->difference.count},
          {"difference", number_or_null(test->difference.mean)},
          {"interval_95", number_or_null(test->difference.half_95)},
          {"p", number_or_null(test->p)},
          {"p_holm", number_or_null(test->p_holm)},
          {"more_pairs", test->more ? json(*test->more) : json()}};
}

json to_json(const ComparedLoss& loss) {
  json by_seed = json::object();
  for (const auto& [seed, value] : loss.by_seed) by_seed[std::to_string(seed)] = value;
  return {{"mean", number_or_null(loss.mean)},
          {"by_seed", by_seed},
          {"deviation", number_or_null(loss.deviation)},
          {"interval_95", number_or_null(loss.half_95)},
          {"text_error", number_or_null(loss.text_error)},
          {"against_first", number_or_null(loss.against_first)},
          {"paired_test", to_json(loss.test)}};
}

}  // namespace

std::string to_text(const Comparison& comparison) {
  if (comparison.rows.empty()) return "no runs\n";
  std::string text = end_table(comparison) + loss_tables(comparison);
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
                    {"pretraining_loss", number_or_null(row.id_at_end.mean)},
                    {"ood_loss", number_or_null(row.ood_at_end.mean)},
                    {"ood_at_equal", number_or_null(row.ood_at_equal.mean)},
                    {"spread", number_or_null(row.ood_at_equal.deviation)},
                    {"interval_95", number_or_null(row.ood_at_equal.half_95)},
                    {"against_first", number_or_null(row.ood_at_equal.against_first)},
                    {"read_from", read_from(row).empty() ? json() : json(read_from(row))},
                    {"paired_test", to_json(row.ood_at_equal.test)},
                    {"at_equal", {{"ood", to_json(row.ood_at_equal)}}},
                    {"at_end", {{"id", to_json(row.id_at_end)}, {"ood", to_json(row.ood_at_end)}}},
                    {"ood_paired", row.ood_paired ? json{{"difference", number_or_null(row.ood_paired->loss)},
                                                         {"standard_error", number_or_null(row.ood_paired->error)},
                                                         {"p_holm", number_or_null(row.ood_paired_p)}}
                                                  : json()},
                    {"domains", domains},
                    {"tuning", to_json(row.tuning)}});
  }
  return {{"pretraining", describe(comparison.pretraining)},
          {"equal_loss", number_or_null(comparison.equal_loss)},
          {"equal_loss_reason", comparison.equal_reason},
          {"rows", rows},
          {"ends", comparison.split != "validation" ? "evaluations of studies"
                   : comparison.ends_kept           ? "final evaluations"
                                                    : "journals"},
          {"split", comparison.split},
          {"split_tokens", comparison.split_tokens > 0 ? json(comparison.split_tokens) : json()},
          {"equal_ends", comparison.equal_ends},
          {"left_out", comparison.left_out},
          {"equality", comparison.equality},
          {"tuning", comparison.tuning},
          {"warnings", comparison.warnings}};
}

}  // namespace saccade
