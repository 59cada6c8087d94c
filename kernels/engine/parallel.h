#pragma once
#include <cstdint>
#include <functional>

namespace saccade {

/// Threads that CPU ops use, the calling one included. Default: all cores (SACCADE_THREADS overrides); fewer where no more can be
/// started. set_thread_count throws std::logic_error inside a task.
int thread_count();
void set_thread_count(int threads);

/// Runs body(i) for i in [0, tasks), several at a time, and returns when all are done. Tasks must write disjoint memory,
/// and what a task computes must depend on i only: then results do not depend on the number of threads.
/// An exception thrown by a task is rethrown here. Calls from inside a task run serially.
void parallel_for(int64_t tasks, const std::function<void(int64_t)>& body);

/// The same over [0, size) in blocks of at most `grain`: body(begin, end).
void parallel_ranges(int64_t size, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

}  // namespace saccade
