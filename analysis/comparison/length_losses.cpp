#include "analysis/comparison/length_losses.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// JSON has no NaN: an error of one document is null.
double number_of(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json to_json(const LengthLosses::At& at) {
  Json bins = Json::array();
  for (const PositionLoss& bin : at.by_position) bins.push_back({bin.begin, bin.end, bin.loss});
  return {{"length", at.length},
          {"loss", at.loss},
          {"standard_error", at.error},
          {"last_loss", at.last},
          {"last_standard_error", at.last_error},
          {"last_change", at.change},
          {"last_change_standard_error", at.change_error},
          {"by_position", bins},
          {"by_document", at.by_document},
          {"last_by_document", at.last_by_document}};
}

LengthLosses::At at_from(const Json& object) {
  LengthLosses::At at;
  at.length = count_of(object, "length");
  at.loss = object.at("loss"), at.error = number_of(object, "standard_error");
  at.last = object.at("last_loss"), at.last_error = number_of(object, "last_standard_error");
  at.change = object.at("last_change"), at.change_error = number_of(object, "last_change_standard_error");
  for (const Json& bin : object.at("by_position")) at.by_position.push_back({bin.at(0), bin.at(1), bin.at(2)});
  at.by_document = object.at("by_document").get<std::vector<double>>();
  at.last_by_document = object.at("last_by_document").get<std::vector<double>>();
  return at;
}

/// The step of "step-12.validation.lengths-1a2b3c4d.json".
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with("step-") || !name.ends_with(".json") || name.find(".lengths-") == name.npos) return {};
  return std::strtoll(name.c_str() + 5, nullptr, 10);
}

}  // namespace

Json to_json(const LengthLosses& losses) {
  Json domains = Json::array();
  for (const LengthLosses::Domain& d : losses.domains) {
    Json lengths = Json::array();
    for (const LengthLosses::At& at : d.lengths) lengths.push_back(to_json(at));
    domains.push_back({{"domain", d.domain}, {"ood", d.ood}, {"lengths", lengths}});
  }
  return {{"step", losses.step},
          {"trained_length", losses.trained_length},
          {"greatest_length", losses.greatest},
          {"min_tokens", losses.least_tokens},
          {"lengths_not_read", losses.not_read},
          {"domains_without_documents", losses.without_documents},
          {"looks_ahead", losses.looks_ahead},
          {"corpus", losses.corpus},
          {"corpus_hash", losses.corpus_hash},
          {"tokenizer_hash", losses.tokenizer_hash},
          {"split", losses.split},
          {"packing", "document"},
          {"device", losses.device},
          {"precision", losses.precision},
          {"domains", domains}};
}

LengthLosses parse_length_losses(const Json& object, const std::string& origin) try {
  LengthLosses losses;
  losses.step = count_of(object, "step"), losses.trained_length = count_of(object, "trained_length");
  losses.greatest = count_of(object, "greatest_length"), losses.least_tokens = count_of(object, "min_tokens");
  losses.not_read = counts_of(object, "lengths_not_read");
  losses.without_documents = object.at("domains_without_documents").get<std::vector<std::string>>();
  losses.looks_ahead = object.at("looks_ahead");
  losses.corpus = object.at("corpus"), losses.corpus_hash = object.at("corpus_hash");
  losses.tokenizer_hash = object.at("tokenizer_hash"), losses.split = object.at("split");
  losses.device = object.at("device"), losses.precision = object.at("precision");
  for (const Json& domain : object.at("domains")) {
    LengthLosses::Domain& d = losses.domains.emplace_back();
    d.domain = domain.at("domain"), d.ood = domain.at("ood");
    for (const Json& at : domain.at("lengths")) d.lengths.push_back(at_from(at));
  }
  return losses;
} catch (const Json::exception& error) {
  throw DataError(origin + " holds no losses over length: " + error.what());
} catch (const UsageError& error) {
  throw DataError(origin + " holds no losses over length: " + error.what());
}

fs::path length_losses_file(const fs::path& run, const LengthLosses& losses) {
  return run / kEvaluations /
         ("step-" + std::to_string(losses.step) + "." + losses.split + ".lengths-" + losses.corpus_hash.substr(0, 8) + ".json");
}

std::shared_ptr<const LengthLosses> newest_length_losses(const fs::path& run) {
  fs::path newest;
  std::pair<int64_t, fs::file_time_type> best;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run / kEvaluations, none)) {
    const std::optional<int64_t> step = step_of(entry.path().filename().string());
    if (!step) continue;
    const std::pair<int64_t, fs::file_time_type> found{*step, entry.last_write_time(none)};
    if (newest.empty() || found > best) newest = entry.path(), best = found;
  }
  if (newest.empty()) return {};
  return std::make_shared<const LengthLosses>(parse_length_losses(read_sealed_json(newest), newest.string()));
}

}  // namespace saccade
