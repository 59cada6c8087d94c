#include "analysis/remote/run_listing.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>

#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/runs/run_origin.h"
#include "analysis/studies/study_folder.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

bool is_plain_folder(const fs::directory_entry& entry) {
  std::error_code none;
  return entry.symlink_status(none).type() == fs::file_type::directory;
}

void add_file(Json& files, const fs::path& folder, const std::string& name) {
  struct stat state {};
  if (::lstat((folder / name).c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  std::array<char, 64> version{};
  std::snprintf(
      version.data(), version.size(), "%llx.%llx", static_cast<unsigned long long>(state.st_ino),
      static_cast<unsigned long long>(state.st_mtim.tv_sec) * 1'000'000'000ULL + static_cast<unsigned long long>(state.st_mtim.tv_nsec));
  files[name] = {static_cast<int64_t>(state.st_size), version.data()};
}

/// JSON files right in a folder of a run or study: what was found of its checkpoints.
void add_results(Json& files, const fs::path& folder, const std::string& kind) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / kind, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(".") && name.ends_with(".json")) add_file(files, folder, kind + "/" + name);
  }
}

Json run_entry(const fs::path& folder) {
  Json files = Json::object();
  for (const char* name : {"run.json", "journal.jsonl", "results.h5", "log.txt"}) add_file(files, folder, name);
  for (const char* kind : {kCaptures, kCheckpoints})
    for (const int64_t step : step_files(folder, kind))
      add_file(files, folder, std::string(kind) + "/step-" + std::to_string(step) + ".h5");
  for (const char* kind : {kEvaluations, kTaskResults}) add_results(files, folder, kind);
  const std::optional<LockHolder> holder = lock_holder(folder);
  const Json live = holder ? Json{{"process", holder->process}, {"host", holder->host}} : Json();
  return {{"kind", "run"}, {"live", live}, {"files", files}};
}

void list_runs(RunListing& listing, const fs::path& folder, const std::string& prefix, bool inner);

void list_folder(RunListing& listing, const fs::path& folder, const std::string& name, bool inner) {
  std::error_code none;
  if (fs::exists(folder / kMirrorFile, none)) return;  // runs of yet another host
  if (looks_like_run(folder)) {
    listing[name] = run_entry(folder);
    list_runs(listing, folder / "branches", name + "/branches/", true);
  } else if (!inner && holds_study(folder)) {
    Json files = Json::object();
    for (const char* file : {"study.json", "state.json"}) add_file(files, folder, file);
    add_results(files, folder, kEvaluations);
    listing[name] = {{"kind", "study"}, {"live", nullptr}, {"files", files}};
    list_runs(listing, folder / "runs", name + "/runs/", true);
  }
}

void list_runs(RunListing& listing, const fs::path& folder, const std::string& prefix, bool inner) {
  std::error_code none;
  if (fs::is_symlink(folder, none)) return;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(".") && is_plain_folder(entry)) list_folder(listing, entry.path(), prefix + name, inner);
  }
}

}  // namespace

RunListing list_served(const ServedFolder& folder) {
  RunListing listing;
  list_runs(listing, folder.path(), "", false);
  return listing;
}

Json listing_changes(RunListing& before, RunListing now) {
  Json changes{{"folders", Json::object()}, {"gone", Json::array()}};
  for (const auto& [name, entry] : now)
    if (const auto old = before.find(name); old == before.end() || old->second != entry) changes["folders"][name] = entry;
  for (const auto& [name, entry] : before)
    if (!now.contains(name)) changes["gone"].push_back(name);
  before = std::move(now);
  return changes;
}

}  // namespace saccade
