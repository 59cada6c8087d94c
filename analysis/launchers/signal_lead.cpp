#include "analysis/launchers/signal_lead.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/runs/files.h"
#include "kernels/engine/clock.h"
#include "models/corpus/vocabulary.h"
#include "models/training/plan.h"
#include "models/training/run_cost.h"

namespace saccade {

int64_t signal_lead(double checkpoint_seconds, double step_seconds) {
  constexpr double kLeast = 120;
  return static_cast<int64_t>(std::ceil(std::max(kLeast, 3 * (checkpoint_seconds + step_seconds))));
}

double checkpoint_seconds(const std::filesystem::path& folder, int64_t bytes) {
  constexpr int64_t kMost = int64_t{64} << 20;
  std::string text(static_cast<size_t>(std::clamp<int64_t>(bytes, 1, kMost)), '\0');
  uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);  // nothing that a file system makes small
  const auto path = folder / ".pace";
  const double start = now();
  {
    const Descriptor file = open_run_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!write_all(file.get(), text) || ::fdatasync(file.get()) != 0) throw_file_error("write", path);
  }
  const double seconds = now() - start;
  remove_run_file(path);
  return 2 * seconds * static_cast<double>(bytes) / static_cast<double>(text.size());
}

RunPaces run_paces(const StudyView& view) {
  RunPaces paces;
  std::set<size_t> cells;
  for (const WantedRun& wanted : view.wanted) {
    if (wanted.there && wanted.there->step > 0)
      paces.step_seconds = std::max(paces.step_seconds, wanted.there->seconds / static_cast<double>(wanted.there->step));
    const bool open = wanted.status == WantedRun::Status::open || wanted.status == WantedRun::Status::unfinished;
    if (!open || !cells.insert(wanted.run.cell).second) continue;
    const RunConfig& config = wanted.run.config;
    paces.checkpoint_bytes = std::max(paces.checkpoint_bytes, checkpoint_bytes(make_plan(config, vocabulary_of(config.data.tokenizer))));
  }
  return paces;
}

}  // namespace saccade
