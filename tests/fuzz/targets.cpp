#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "kernels/engine/error.h"

namespace saccade::test {

namespace fs = std::filesystem;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

const fs::path& fuzz_folder() {
  static const fs::path path = [] {
    const fs::path base = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    const fs::path made = base / ("saccade-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(made / "run");
    ::setenv("SACCADE_DATA", (made / "data").c_str(), 1);
    ::setenv("SACCADE_CACHE", (made / "cache").c_str(), 1);
    std::atexit([] {
      std::error_code ignored;
      fs::remove_all(fuzz_folder(), ignored);
    });
    return made;
  }();
  return path;
}

fs::path written(const std::string& name, std::string_view bytes) {
  const fs::path path = fuzz_folder() / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> all = [] {
    std::vector<FuzzTarget> targets = text_targets();
    for (const auto& more : {stored_targets(), remote_targets(), cluster_targets(), hdf5_targets()})
      targets.insert(targets.end(), more.begin(), more.end());
    std::sort(targets.begin(), targets.end(), [](const FuzzTarget& a, const FuzzTarget& b) { return a.name < b.name; });
    return targets;
  }();
  return all;
}

void run_target(const FuzzTarget& target, std::string_view bytes) try { target.run(bytes); } catch (const Error&) {
}

}  // namespace saccade::test
