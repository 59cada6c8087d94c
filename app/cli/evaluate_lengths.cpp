#include "app/cli/evaluate_lengths.h"

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace {

std::string heading(const std::string& run, const LengthLosses& e) {
  std::string text = run + " at step " + std::to_string(e.step) + ", trained on " + std::to_string(e.trained_length) + " tokens, " +
                     e.split + " documents of " + e.corpus + " with at least " + std::to_string(e.least_tokens) +
                     " tokens, one a sequence\n";
  for (const int64_t length : e.not_read)
    text += "not evaluated at " + std::to_string(length) + ": the model's positions end at " + std::to_string(e.trained_length) + "\n";
  for (const std::string& domain : e.without_documents) text += "no document of " + domain + " is as long\n";
  if (!e.looks_ahead.empty()) text += e.looks_ahead + "\n";
  return text;
}

/// A change of nothing has no sign.
std::string change(double value) {
  const std::string text = number(value, 4);
  return text == "-0.0000" ? "0.0000" : text;
}

std::string loss_table(const LengthLosses& e) {
  std::vector<std::vector<std::string>> rows;
  for (const LengthLosses::Domain& d : e.domains)
    for (const LengthLosses::At& at : d.lengths)
      rows.push_back({d.domain, d.ood ? "OOD" : "training domain", std::to_string(at.length), number(at.loss, 4), number(at.error, 4),
                      number(at.last, 4), number(at.last_error, 4), change(at.change), number(at.change_error, 4),
                      std::to_string(at.by_document.size())});
  return table(
      {"domain", "kind", "length", "loss (nats)", "± standard error", "last " + std::to_string(std::max<int64_t>(1, e.trained_length / 2)),
       "± standard error", "change", "± standard error", "documents"},
      rows);
}

/// A line for each domain and length; empty where only one pass has read.
std::string stepwise_table(const LengthLosses& e) {
  std::vector<std::vector<std::string>> rows;
  for (const LengthLosses::Domain& d : e.domains)
    for (const LengthLosses::At& at : d.lengths)
      if (const auto& s = at.stepwise)
        rows.push_back({d.domain, std::to_string(at.length), number(s->loss, 4), number(s->error, 4), change(s->price),
                        number(s->price_error, 4), number(s->last, 4), change(s->last_price), number(s->last_price_error, 4)});
  if (rows.empty()) return {};
  return "\nthe price of looking ahead: what token by token, as generation reads, loses more than in one pass\n" +
         table({"domain", "length", "stepwise (nats)", "± standard error", "price", "± standard error",
                "last " + std::to_string(std::max<int64_t>(1, e.trained_length / 2)), "price", "± standard error"},
               rows);
}

}  // namespace

int evaluate_over_lengths(const std::vector<std::string>& runs, const RunEvaluationOptions& options, const LengthOptions& lengths) {
  if (options.packing == "packed") throw UsageError("--packing packed: --lengths reads one document a sequence");
  if (options.length > 0) throw UsageError("--length goes without --lengths");
  Progress bar("evaluate");
  const EvaluationProgress progress{[](const std::string& line) { say(line); },
                                    [&](double fraction, const std::string& domain) { bar.update(fraction, domain); }};
  nlohmann::json json{{"runs", nlohmann::json::array()}};
  std::string text;
  for (const std::string& run : runs) {
    const LengthLosses losses = evaluate_lengths(run, options, lengths, progress);
    nlohmann::json described = to_json(losses);
    described["run"] = run, described["file"] = length_losses_file(run, losses).string();
    json["runs"].push_back(std::move(described));
    text += (text.empty() ? "" : "\n") + heading(run, losses) + loss_table(losses) + stepwise_table(losses);
  }
  text += "last: the last targets before token " + std::to_string(*std::max_element(lengths.lengths.begin(), lengths.lengths.end())) +
          ", the same at every length; change: less their loss at the shortest, document by document\n";
  print_result(json, text);
  return 0;
}

}  // namespace saccade::cli
