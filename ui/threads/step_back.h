#pragma once
#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace saccade::ui {

/// For threads that read and draw for the window: this one steps back behind those that answer what is typed and clicked, while both want
/// a core. Linux alone lets a thread do so; elsewhere nothing changes.
inline void step_back() {
#ifdef __linux__
  constexpr int kNice = 5;
  thread_local const bool done = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice) == 0;
  static_cast<void>(done);
#endif
}

}  // namespace saccade::ui
