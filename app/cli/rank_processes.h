#pragma once
#include <optional>

#include "kernels/engine/socket_communicator.h"

namespace saccade::cli {

/// Starts so many ranks as children of this process, connected with each other. In a child: its sockets. In this process: nothing, when
/// all have ended, with the exit code in `code`: that of rank 0, or of another rank that failed. When one fails, or rank 0 has ended, the
/// others have `patience` seconds to find out and end by themselves; what is left then, as a process that is stopped, is killed. Call it
/// before this process has started a thread or used a GPU, for neither is passed on to children. Throws Error.
std::optional<RankSockets> start_rank_processes(int count, double patience, int& code);

}  // namespace saccade::cli
