#include "analysis/comparison/sequence_losses.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/error.h"
#include "models/evaluation/evaluation_pass.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

void require_same_text(const SequenceLosses& a, const SequenceLosses& b) {
  if (a.text != b.text)
    throw DataError(
        "the runs were not evaluated on the same sequences, which differences are of: corpus, tokenizer, split, sequence "
        "length or packing differ");
}

struct DomainMean {
  double sum = 0, squares = 0;
  int64_t count = 0;
  void add(double loss, double error) { sum += loss, squares += error * error, ++count; }
  LossAndError mean() const {
    if (count == 0) return {};
    return {sum / static_cast<double>(count), std::sqrt(squares) / static_cast<double>(count)};
  }
};

}  // namespace

SequenceLosses parse_sequence_losses(const Json& evaluation, const std::string& origin) try {
  SequenceLosses losses;
  losses.step = count_of(evaluation, "step");
  losses.split = evaluation.at("split");
  for (const char* key : {"corpus_hash", "tokenizer_hash", "split", "packing"}) losses.text += evaluation.at(key).get<std::string>() + " ";
  losses.length = count_of(evaluation, "sequence_length");
  losses.text += std::to_string(losses.length);
  for (const Json& domain : evaluation.at("domains")) {
    SequenceLosses::Domain& d = losses.domains[domain.at("domain")];
    d.ood = domain.at("ood"), d.loss = number_or_nan(domain.at("loss"));
    if (const Json bits = domain.value("bits_per_byte", Json()); bits.is_number()) d.bits_per_byte = bits;
    for (const Json& loss : domain.at("by_sequence")) d.by_sequence.push_back(number_or_nan(loss));
    d.targets = counts_of(domain, "targets");
    if (!d.targets.empty() && d.targets.size() != d.by_sequence.size())
      throw DataError(origin + ": " + std::to_string(d.targets.size()) + " targets for " + std::to_string(d.by_sequence.size()) +
                      " sequences");
  }
  return losses;
} catch (const Json::exception& error) {
  throw DataError(origin + " is no evaluation: " + error.what());
} catch (const UsageError& error) {
  throw DataError(origin + " is no evaluation: " + error.what());
}

bool is_whole_split(const SequenceLosses& losses, int64_t tokens) {
  return std::all_of(losses.domains.begin(), losses.domains.end(), [&](const auto& named) {
    return static_cast<int64_t>(named.second.by_sequence.size()) < tokens / std::max<int64_t>(1, losses.length);
  });
}

int64_t tokens_for_error(int64_t tokens, double error, double goal) {
  constexpr double kMost = 6;  // doublings: of few sequences the error itself is uncertain
  const double doublings = std::isfinite(error) ? std::ceil(2 * std::log2(error / goal)) : 1;
  return tokens << static_cast<int>(std::clamp(doublings, 1.0, kMost));
}

std::shared_ptr<const SequenceLosses> kept_losses(const fs::path& path) {
  struct Known {
    fs::file_time_type written;
    std::shared_ptr<const SequenceLosses> losses;
  };
  static std::mutex mutex;
  static std::map<std::string, Known> known;
  const std::string file = path.string();
  std::error_code missing;
  const fs::file_time_type written = fs::last_write_time(file, missing);
  if (missing) return {};
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(file); found != known.end() && found->second.written == written) return found->second.losses;
  }
  auto losses = std::make_shared<const SequenceLosses>(parse_sequence_losses(read_sealed_json(file), file));
  const std::lock_guard lock(mutex);
  known[file] = {written, losses};
  return losses;
}

std::shared_ptr<const SequenceLosses> losses_at_end(const fs::path& run, int64_t step) {
  return kept_losses(run / kEvaluations / ("step-" + std::to_string(step) + ".validation.json"));
}

SequenceLosses mean_of(const std::vector<std::shared_ptr<const SequenceLosses>>& seeds) {
  SequenceLosses mean = *seeds.front();
  const auto count = static_cast<double>(seeds.size());
  for (auto& [name, domain] : mean.domains) {
    for (size_t i = 1; i < seeds.size(); ++i) {
      require_same_text(mean, *seeds[i]);
      const auto other = seeds[i]->domains.find(name);
      if (other == seeds[i]->domains.end() || other->second.targets != domain.targets ||
          other->second.by_sequence.size() != domain.by_sequence.size())
        throw DataError("seeds were not evaluated on the same sequences of " + name);
      domain.loss += other->second.loss;
      for (size_t s = 0; s < domain.by_sequence.size(); ++s) domain.by_sequence[s] += other->second.by_sequence[s];
    }
    domain.loss /= count;
    for (double& loss : domain.by_sequence) loss /= count;
  }
  return mean;
}

LossAndError mean_over_domains(const SequenceLosses& losses, bool ood, const std::string& only) {
  DomainMean mean;
  for (const auto& [name, domain] : losses.domains)
    if (domain.ood == ood && (only.empty() || only == name)) mean.add(domain.loss, standard_error(domain.by_sequence, domain.targets));
  return mean.mean();
}

double p_of(const LossAndError& difference) {
  if (difference.error == 0) return difference.loss == 0 ? 1 : 0;
  return std::erfc(std::abs(difference.loss / difference.error) / std::sqrt(2.0));
}

LossAndError paired_difference(const SequenceLosses& a, const SequenceLosses& b, bool ood, const std::string& only) {
  require_same_text(a, b);
  DomainMean mean;
  for (const auto& [name, mine] : a.domains) {
    const auto other = b.domains.find(name);
    if (mine.ood != ood || (!only.empty() && only != name) || other == b.domains.end() ||
        other->second.by_sequence.size() != mine.by_sequence.size())
      continue;
    std::vector<double> differences;
    for (size_t s = 0; s < mine.by_sequence.size(); ++s) differences.push_back(mine.by_sequence[s] - other->second.by_sequence[s]);
    mean.add(mine.loss - other->second.loss, standard_error(differences, mine.targets));
  }
  return mean.mean();
}

}  // namespace saccade
