#include "analysis/comparison/length_losses.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

Json to_json(const LengthLosses::Stepwise& s) {
  return {{"loss", s.loss},
          {"standard_error", s.error},
          {"price_of_looking_ahead", s.price},
          {"price_standard_error", s.price_error},
          {"last_loss", s.last},
          {"last_standard_error", s.last_error},
          {"last_price_of_looking_ahead", s.last_price},
          {"last_price_standard_error", s.last_price_error}};
}

LengthLosses::Stepwise stepwise_from(const Json& o) {
  return {o.at("loss"),
          number_or_nan(o.at("standard_error")),
          o.at("price_of_looking_ahead"),
          number_or_nan(o.at("price_standard_error")),
          o.at("last_loss"),
          number_or_nan(o.at("last_standard_error")),
          o.at("last_price_of_looking_ahead"),
          number_or_nan(o.at("last_price_standard_error"))};
}

Json to_json(const LengthLosses::At& at) {
  Json bins = Json::array();
  for (const PositionLoss& bin : at.by_position) bins.push_back({bin.begin, bin.end, bin.loss});
  Json object{{"length", at.length},
              {"loss", at.loss},
              {"standard_error", at.error},
              {"last_loss", at.last},
              {"last_standard_error", at.last_error},
              {"last_change", at.change},
              {"last_change_standard_error", at.change_error},
              {"by_position", bins},
              {"by_document", at.by_document},
              {"last_by_document", at.last_by_document}};
  if (at.stepwise) object["stepwise"] = to_json(*at.stepwise);
  return object;
}

LengthLosses::At at_from(const Json& object) {
  LengthLosses::At at;
  at.length = count_of(object, "length");
  at.loss = object.at("loss"), at.error = number_or_nan(object.at("standard_error"));
  at.last = object.at("last_loss"), at.last_error = number_or_nan(object.at("last_standard_error"));
  at.change = object.at("last_change"), at.change_error = number_or_nan(object.at("last_change_standard_error"));
  for (const Json& bin : object.at("by_position")) at.by_position.push_back({bin.at(0), bin.at(1), bin.at(2)});
  at.by_document = object.at("by_document").get<std::vector<double>>();
  at.last_by_document = object.at("last_by_document").get<std::vector<double>>();
  if (object.contains("stepwise")) at.stepwise = stepwise_from(object.at("stepwise"));
  return at;
}

/// A file "step-12.validation.lengths-1a2b3c4d.json".
struct Kept {
  fs::path file;
  std::string text;  ///< "validation.lengths-1a2b3c4d.json": split and corpus
  std::pair<int64_t, fs::file_time_type> age;
};

std::vector<Kept> kept_in(const fs::path& run) {
  std::vector<Kept> all;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run / kEvaluations, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || !name.ends_with(".json") || name.find(".lengths-") == name.npos) continue;
    all.push_back({entry.path(), name.substr(name.find('.')), {std::strtoll(name.c_str() + 5, nullptr, 10), entry.last_write_time(none)}});
  }
  return all;
}

/// The newest of a text, or of any.
const Kept* newest(const std::vector<Kept>& all, const std::string& text) {
  const Kept* found = nullptr;
  for (const Kept& kept : all)
    if ((text.empty() || kept.text == text) && (found == nullptr || kept.age > found->age)) found = &kept;
  return found;
}

/// Of most of the runs, and of those the one that was written last.
std::string common_text(const std::vector<std::vector<Kept>>& runs) {
  std::map<std::string, std::pair<std::set<size_t>, fs::file_time_type>> texts;  // the runs that have it
  for (size_t i = 0; i < runs.size(); ++i)
    for (const Kept& kept : runs[i]) {
      auto& [having, written] = texts.try_emplace(kept.text, std::set<size_t>(), kept.age.second).first->second;
      having.insert(i), written = std::max(written, kept.age.second);
    }
  const auto rank = [](const auto& text) { return std::pair(text.second.first.size(), text.second.second); };
  const auto best = std::max_element(texts.begin(), texts.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return best == texts.end() ? std::string() : best->first;
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

std::vector<std::shared_ptr<const LengthLosses>> comparable_length_losses(const std::vector<fs::path>& runs, bool* more) {
  std::vector<std::vector<Kept>> kept;
  for (const fs::path& run : runs) kept.push_back(kept_in(run));
  const std::string text = common_text(kept);
  std::vector<std::shared_ptr<const LengthLosses>> losses;
  for (const std::vector<Kept>& all : kept) {
    const Kept* chosen = newest(all, text);
    if (chosen == nullptr) chosen = newest(all, "");
    if (more != nullptr) *more |= std::any_of(all.begin(), all.end(), [&](const Kept& each) { return each.text != text; });
    losses.push_back(chosen == nullptr ? nullptr
                                       : std::make_shared<const LengthLosses>(
                                             parse_length_losses(read_sealed_json(chosen->file), chosen->file.string())));
  }
  return losses;
}

std::shared_ptr<const LengthLosses> newest_length_losses(const fs::path& run) { return comparable_length_losses({run}).front(); }

}  // namespace saccade
