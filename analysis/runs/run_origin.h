#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/runs/run_lock.h"

namespace saccade {

/// RUN/origin.json of a run that is mirrored here from another host (analysis/remote/mirror.h): everything else of it is an ordinary run
/// directory, and nobody but the mirror writes there. What stands in it is as of the last time the host was heard of.
struct RunOrigin {
  std::string host;                       ///< the name of its profile
  std::string name;                       ///< below the folder that is served there
  std::optional<LockHolder> live;         ///< who writes it there
  std::vector<int64_t> checkpoints = {};  ///< steps, that the host has
  std::string checked = {};               ///< version of the journal whose whole hash was compared with the mirror's
  bool operator==(const RunOrigin&) const = default;
};
inline constexpr const char* kOriginFile = "origin.json";
/// Nothing for a run of this machine. Throws DataError on one that cannot be read.
std::optional<RunOrigin> read_run_origin(const std::filesystem::path& run);
std::string run_origin_text(const RunOrigin& origin);
/// Steps of a run's checkpoints, ascending; of a mirrored run those that its host has, few of which are here.
std::vector<int64_t> checkpoint_steps(const std::filesystem::path& run);
void write_run_origin(const std::filesystem::path& run, const RunOrigin& origin);

/// MIRROR/mirror.json, of the folder that all mirrored runs and studies of a host are in.
struct MirrorState {
  std::filesystem::path root;  ///< that folder
  std::string host, folder;    ///< its profile's name; what is served there
  bool connected = false;      ///< said by a process that is heard of still (kSilence)
  std::string seen;            ///< UTC, when the host was last heard of; empty: never
  std::string problem;         ///< why it is not connected
};
inline constexpr const char* kMirrorFile = "mirror.json";
inline constexpr int64_t kSilence = 20;  ///< seconds; a process that keeps a mirror writes every five
/// The mirror that something is in, if any: looks upward from there. Throws DataError.
std::optional<MirrorState> mirror_of(const std::filesystem::path& inside);
std::optional<MirrorState> read_mirror(const std::filesystem::path& root);
void write_mirror(const MirrorState& state);

}  // namespace saccade
