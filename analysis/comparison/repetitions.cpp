#include "analysis/comparison/repetitions.h"

#include <cmath>
#include <set>

namespace saccade {
namespace {

namespace fs = std::filesystem;

std::string own_path(const Run& run) { return fs::absolute(run.info().directory).lexically_normal().string(); }

/// Where the run that this one is a fork of was; empty of a run that is none.
std::string parent_of(const Run& run) {
  const nlohmann::json parent = run.info().provenance.value("parent", nlohmann::json());
  return parent.is_object() && parent.contains("path") && parent["path"].is_string() ? parent["path"].get<std::string>() : std::string();
}

/// The run that its first steps are of: the parent, and where that is among the runs and itself a fork, its parent.
std::string beginning_of(const Run& run, const std::map<std::string, const Run*>& by_path) {
  std::string path = own_path(run), parent = parent_of(run);
  for (std::set<std::string> met; !parent.empty() && met.insert(parent).second;) {
    path = parent;
    const auto at = by_path.find(parent);
    parent = at == by_path.end() ? std::string() : parent_of(*at->second);
  }
  return path;
}

std::string names_of(const std::vector<const Run*>& runs) {
  std::string text;
  for (const Run* run : runs) text += (text.empty() ? "" : ", ") + run->name();
  return text;
}

}  // namespace

std::map<int64_t, double> by_seed(const std::vector<const Run*>& runs, const std::function<double(const Run&)>& measure) {
  std::map<int64_t, std::pair<double, int>> sums;
  for (const Run* run : runs)
    if (const double value = measure(*run); std::isfinite(value)) {
      auto& [sum, count] = sums[run->info().seed];
      sum += value, ++count;
    }
  std::map<int64_t, double> means;
  for (const auto& [seed, sum] : sums) means[seed] = sum.first / sum.second;
  return means;
}

std::vector<const Run*> with_one_beginning(const std::vector<const Run*>& runs) {
  std::map<std::string, const Run*> by_path;
  for (const Run* run : runs) by_path[own_path(*run)] = run;
  std::map<std::string, std::vector<const Run*>> begun;
  for (const Run* run : runs) begun[beginning_of(*run, by_path)].push_back(run);
  std::vector<const Run*> shared;
  for (const auto& [path, of_one] : begun)
    if (of_one.size() > 1) shared.insert(shared.end(), of_one.begin(), of_one.end());
  return shared;
}

std::vector<std::string> describe_repeats(const std::vector<const Run*>& runs) {
  std::vector<std::string> sentences;
  std::map<int64_t, std::vector<const Run*>> of_seed;
  for (const Run* run : runs) of_seed[run->info().seed].push_back(run);
  for (const auto& [seed, same] : of_seed)
    if (same.size() > 1) sentences.push_back(names_of(same) + ": have the same seed (" + std::to_string(seed) + "), so they count as one");
  if (const auto shared = with_one_beginning(runs); !shared.empty())
    sentences.push_back(names_of(shared) + ": went on from one run, so they are no independent repetitions: no interval, no test");
  return sentences;
}

}  // namespace saccade
