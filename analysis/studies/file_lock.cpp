#include "analysis/studies/file_lock.h"

#include <fcntl.h>

#include <chrono>
#include <thread>

#include "models/corpus/file_mark.h"

namespace saccade {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr auto kPatience = std::chrono::seconds(240);  // more than after which a lease is stale

}  // namespace

FileLock::FileLock(const std::filesystem::path& file) : file_(open_run_file(file, O_RDWR | O_CREAT)) {
  const FileMark mark = mark_file(file_.get(), true);
  if (mark == FileMark::anothers) throw_file_error("lock", file);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (mark == FileMark::none && !lease_) try {
      lease_ = std::make_unique<Lease>(file.string() + ".lease", file_, false, LeaseWish{});
    } catch (const RunInUse&) {
      if (std::chrono::steady_clock::now() > end) throw;
      std::this_thread::sleep_for(kPause);
    }
}

}  // namespace saccade
