#pragma once

namespace saccade::cli {

/// What a command that trains ends with that a signal stopped (130): 75, "to be continued", where that was SIGUSR2, with which a batch
/// system says that the time is nearly over. SIGUSR2 raises stop_requested() as SIGTERM does, and from then on nothing but SIGKILL ends the
/// program at once.
int exit_code_of(int code);

/// Takes SIGUSR2 from now on: a job's process is started with it blocked, so that it waits for who is ready (catch_stop_signals, ranks).
void unblock_end_of_time();

}  // namespace saccade::cli
