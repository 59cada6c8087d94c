#include "analysis/comparison/end_evaluations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "analysis/comparison/branches.h"
#include "analysis/runs/run_info.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

/// "NAME.branches.step-100.test": how the files of a run's end on a split begin.
std::string beginning_of(const fs::path& run, const std::string& split) {
  std::string name = run.generic_string();
  std::replace(name.begin(), name.end(), '/', '.');
  return name + "." + split + ".";
}

constexpr const char* kLength = ".length-";

struct Kind {
  int64_t tokens = 0, length = 0;
  bool operator<(const Kind& other) const { return std::tie(tokens, length) < std::tie(other.tokens, other.length); }
};

/// "131072", "131072.length-512"; nothing where a name says something else.
std::optional<Kind> kind_of(const std::string& text) {
  const auto number = [](const std::string& digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0 ? value : 0;
  };
  const size_t cut = text.find(kLength);
  const Kind kind{number(text.substr(0, cut)), cut == text.npos ? 0 : number(text.substr(cut + std::string(kLength).size()))};
  if (kind.tokens == 0 || (cut != text.npos && kind.length == 0)) return {};
  return kind;
}

/// Files that a study keeps of the end of a run, by what they are of.
std::map<Kind, fs::path> files_of(const Run& run, const std::string& split) {
  const fs::path& directory = run.info().directory;
  const fs::path trunk = trunk_of(directory), folder = (trunk.empty() ? directory : trunk).parent_path();
  std::map<Kind, fs::path> files;
  if (folder.filename() != "runs") return files;
  const std::string begin = beginning_of(directory.lexically_relative(folder), split), end = ".json";
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder.parent_path() / kEvaluations, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    if (const auto kind = kind_of(name.substr(begin.size(), name.size() - begin.size() - end.size()))) files[*kind] = entry.path();
  }
  return files;
}

}  // namespace

fs::path study_evaluation_file(const fs::path& run, const std::string& split, int64_t tokens, int64_t length) {
  const std::string cut = length > 0 ? kLength + std::to_string(length) : "";
  return fs::path(kEvaluations) / (beginning_of(run, split) + std::to_string(tokens) + cut + ".json");
}

EndEvaluations::EndEvaluations(const std::vector<const Run*>& runs, std::string split) : split_(std::move(split)) {
  std::map<Kind, std::map<const Run*, fs::path>> files;
  for (const Run* run : runs)
    for (const auto& [kind, file] : files_of(*run, split_)) files[kind][run] = file;
  const std::pair<const Kind, std::map<const Run*, fs::path>>* chosen = nullptr;
  for (const auto& each : files)
    if (!chosen || each.second.size() >= chosen->second.size()) chosen = &each;  // of as many runs the one with more tokens
  if (!chosen) return;
  tokens_ = chosen->first.tokens;
  for (const auto& [run, file] : chosen->second)
    if (auto losses = kept_losses(file); losses && losses->step == run->info().step) losses_[run->info().directory] = std::move(losses);
}

std::shared_ptr<const SequenceLosses> EndEvaluations::of(const Run& run) const {
  const auto at = losses_.find(run.info().directory);
  return at == losses_.end() ? nullptr : at->second;
}

double EndEvaluations::loss(const Run& run, bool ood, const std::string& domain) const {
  const auto losses = of(run);
  return losses ? mean_over_domains(*losses, ood, domain).loss : std::nan("");
}

std::string how_to_evaluate_ends(const std::string& split) {
  return "no study has evaluated the ends of these runs on it; saccade study evaluate STUDY --split " + split + " --tokens N does";
}

}  // namespace saccade
