#include "analysis/evaluation/timing.h"

#include <algorithm>

#include "kernels/engine/clock.h"

namespace saccade {
namespace {

constexpr double kRepeat = 0.05;  // seconds of a repeat on a GPU

double seconds_of(const TimedWork& work, int64_t calls) {
  const double start = now();
  for (int64_t i = 0; i < calls; ++i) work.once();
  work.finish();
  return (now() - start) / static_cast<double>(calls);
}

}  // namespace

Timing measure(const std::string& name, const BenchmarkOptions& options, Device device, const TimedWork& work, int64_t& calls) {
  if (options.warmup < 0 || options.repeats < 1) throw UsageError("a benchmark needs at least one repeat");
  for (int i = 0; i < options.warmup; ++i) seconds_of(work, 1);
  const int64_t row = device.is_cuda() ? std::clamp<int64_t>(static_cast<int64_t>(kRepeat / seconds_of(work, 1)), 1, 1000) : 1;
  work.reset();
  std::vector<double> seconds;
  for (int i = 0; i < options.repeats; ++i) seconds.push_back(seconds_of(work, row));
  calls = row * options.repeats;
  std::sort(seconds.begin(), seconds.end());
  return {name, seconds[seconds.size() / 2], seconds.front(), seconds.back(), {}};
}

std::vector<OpShare> profile_of(const std::map<std::string, Tape::OpTime>& profile, int64_t calls) {
  const auto repeats = static_cast<double>(calls);
  std::vector<OpShare> ops;
  for (const auto& [name, time] : profile)
    ops.push_back(
        {name, static_cast<double>(time.calls) / repeats, time.seconds / repeats, {time.cost.flops / repeats, time.cost.bytes / repeats}});
  std::sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return ops;
}

}  // namespace saccade
