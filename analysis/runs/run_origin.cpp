#include "analysis/runs/run_origin.h"

#include <ctime>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int kDeepest = 6;  ///< MIRROR/STUDY/runs/RUN/branches/step-N

bool is_there(const fs::path& file) {
  std::error_code none;
  return fs::exists(file, none);
}

/// Seconds since then; many where it is no time.
double seconds_since(const std::string& utc) {
  std::tm parts{};
  if (::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return 1e9;
  return std::difftime(std::time(nullptr), ::timegm(&parts));
}

}  // namespace

std::optional<RunOrigin> read_run_origin(const fs::path& run) {
  const fs::path file = run / kOriginFile;
  if (!is_there(file)) return {};
  try {
    const Json object = read_sealed_json(file);
    RunOrigin origin{
        object.at("host"), object.at("name"), {}, object.value("checkpoints", std::vector<int64_t>()), object.value("checked", "")};
    if (const Json& live = object.at("live"); !live.is_null()) origin.live = LockHolder{live.at("process"), live.at("host")};
    return origin;
  } catch (const Json::exception&) {
    throw DataError(file.string() + " is damaged; saccade host sync writes it anew");
  }
}

std::string run_origin_text(const RunOrigin& origin) {
  const Json live = origin.live ? Json{{"process", origin.live->process}, {"host", origin.live->host}} : Json();
  std::string body =
      Json{{"format_version", 1},      {"host", origin.host}, {"name", origin.name}, {"live", live}, {"checkpoints", origin.checkpoints},
           {"checked", origin.checked}}
          .dump(-1, ' ', false, Json::error_handler_t::replace);
  body.pop_back();
  return sealed(std::move(body)) + "\n";
}

void write_run_origin(const fs::path& run, const RunOrigin& origin) { replace_text(run / kOriginFile, run_origin_text(origin)); }

std::vector<int64_t> checkpoint_steps(const fs::path& run) try {
  const std::optional<RunOrigin> origin = read_run_origin(run);
  return origin ? origin->checkpoints : step_files(run, kCheckpoints);
} catch (const DataError&) {
  return step_files(run, kCheckpoints);
}

std::optional<MirrorState> read_mirror(const fs::path& root) {
  const fs::path file = root / kMirrorFile;
  if (!is_there(file)) return {};
  try {
    const Json object = read_sealed_json(file);
    MirrorState state{root, object.at("host"), object.at("folder"), object.at("connected"), object.at("seen"), object.at("problem")};
    state.connected = state.connected && seconds_since(state.seen) < static_cast<double>(kSilence);
    return state;
  } catch (const Json::exception&) {
    throw DataError(file.string() + " is damaged; remove it, and saccade host sync writes it anew");
  }
}

void write_mirror(const MirrorState& state) {
  write_sealed_json(state.root / kMirrorFile, {{"format_version", 1},
                                               {"host", state.host},
                                               {"folder", state.folder},
                                               {"connected", state.connected},
                                               {"seen", state.seen},
                                               {"problem", state.problem}});
}

std::optional<MirrorState> mirror_of(const fs::path& inside) {
  fs::path at = fs::absolute(inside).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  for (int level = 0; level < kDeepest && at.has_relative_path(); ++level, at = at.parent_path())
    if (std::optional<MirrorState> state = read_mirror(at)) return state;
  return {};
}

}  // namespace saccade
