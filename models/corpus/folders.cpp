#include <cstdlib>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/folders.h"

namespace saccade {
namespace {

/// The XDG Base Directory rules: `variable` of ours, else `xdg`/saccade, else ~/`fallback`/saccade. Relative XDG paths are void.
std::filesystem::path user_folder(const char* variable, const char* xdg, const char* fallback) {
  if (const char* chosen = std::getenv(variable); chosen && *chosen) return std::filesystem::absolute(chosen);
  if (const char* base = std::getenv(xdg); base && *base == '/') return std::filesystem::path(base) / "saccade";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / fallback / "saccade";
  throw UsageError(std::string("no place for the user's files: set ") + variable + ", " + xdg + " or HOME");
}

}  // namespace

std::filesystem::path data_folder() { return user_folder("SACCADE_DATA", "XDG_DATA_HOME", ".local/share"); }
std::filesystem::path cache_folder() { return user_folder("SACCADE_CACHE", "XDG_CACHE_HOME", ".cache"); }
std::filesystem::path config_folder() { return user_folder("SACCADE_CONFIG", "XDG_CONFIG_HOME", ".config"); }

std::filesystem::path runs_folder() {
  if (const char* chosen = std::getenv("SACCADE_RUNS"); chosen && *chosen) return std::filesystem::absolute(chosen);
  return data_folder() / "runs";
}

}  // namespace saccade
