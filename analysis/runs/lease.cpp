#include "analysis/runs/lease.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <system_error>

namespace saccade {
namespace {

constexpr double kBeat = 10;      // seconds between signs of life
constexpr double kTrusted = 60;   // seconds for which a lease stays its holder's after one, far less than until others may take it
constexpr double kUnasked = 120;  // seconds for which nobody can have taken it, so that a lease that is missing was deleted by hand
constexpr int kTries = 20;

double seconds_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);  // unlike CLOCK_MONOTONIC it goes on while the machine sleeps
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What the file server's clock says now: the time that it gives a file that is touched. This machine's where that fails.
double server_time(const Descriptor& file) {
  struct stat state {};
  timespec time{};
  if (::futimens(file.get(), nullptr) == 0 && ::fstat(file.get(), &state) == 0)
    time = state.st_mtim;
  else
    ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string seconds_text(double seconds) { return std::to_string(std::lround(std::max(0.0, seconds))) + " s"; }

}  // namespace

Lease::Lease(std::filesystem::path file, const Descriptor& lock, bool locked, const LeaseWish& wish) : file_(std::move(file)) {
  take(lock, locked, wish);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the owner's
  try {
    thread_ = std::thread([this] { keep_beating(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    remove_run_file(file_);
    throw DeviceError(std::string("no thread can be started that keeps a lease: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Lease::~Lease() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  thread_.join();
  try {
    const auto there = find_lease(file_);
    if (!there || !there->holder || there->holder->token != mine_.token) return;
    if (remove_run_file(file_).empty()) sync_directory(file_.parent_path());  // it is not there again behind a power cut
  } catch (const DataError&) {                                                // whoever comes next finds this process gone
  }
}

/// Made anew, whole, and still this process's then; false when another one's lies there.
bool Lease::create() {
  const double began = seconds_since_boot();
  open_ = create_text(file_, [this](uint64_t inode) {
    mine_.inode = inode;
    return lease_text(mine_);
  });
  if (!open_) return false;
  const auto there = find_lease(file_);
  if (!there || !there->holder || there->holder->token != mine_.token) return false;  // taken away at once
  confirmed_ = began;
  return true;
}

void Lease::take(const Descriptor& lock, bool locked, const LeaseWish& wish) {
  const std::string folder = file_.parent_path().string();
  for (int tries = 0; tries < kTries; ++tries) {
    if (create()) return;
    const auto found = find_lease(file_);
    if (!found) continue;
    const bool silent = std::abs(server_time(lock) - found->changed) > kLeaseSilence;
    if (!found->holder) {  // who is just making it finds it gone, and does not go on
      if (locked || silent) {
        take_away(*found);
        continue;
      }
      throw RunInUse(folder + " is in use by another process");
    }
    const LeaseHolder& holder = *found->holder;
    const std::string in_use = folder + " is in use by " + describe(holder);
    if (locked && !holder.boot.empty() && holder.boot == mine_.boot) {  // it would hold the lock
      take_away(*found);
    } else if (const bool gone = known_gone(holder, silent); silent && (gone || wish.take_over)) {
      take_away(*found);
    } else if (silent) {
      throw RunInUse(in_use + ", which gave no sign of life for " + seconds_text(server_time(lock) - found->changed) +
                     "; if it has ended, " + (wish.advice.empty() ? "remove " + file_.string() : wish.advice));
    } else if (gone) {
      wait_for_silence(*found, lock, wish);
    } else {
      throw RunInUse(in_use + (wish.take_over ? "; its last sign of life was " + seconds_text(server_time(lock) - found->changed) +
                                                    " ago, and it may be taken over after " + seconds_text(kLeaseSilence)
                                              : ""));
    }
  }
  throw RunInUse(folder + " is in use by other processes, which take it from each other");
}

/// Of a holder that is gone as far as is known: until it has been silent for long enough. Throws RunInUse when `stop` comes first.
void Lease::wait_for_silence(const FoundLease& found, const Descriptor& lock, const LeaseWish& wish) {
  const std::string who = describe(*found.holder);
  const auto left = [&] { return kLeaseSilence - (server_time(lock) - found.changed); };
  if (wish.tell)
    wish.tell("waiting " + seconds_text(left()) + ": " + who + " had " + file_.parent_path().string() +
              " and is gone, and there are no locks that would tell so for sure");
  while (left() >= 0 && left() <= 2 * kLeaseSilence) {
    if (wish.stop && *wish.stop) throw RunInUse(file_.parent_path().string() + " was in use by " + who + "; stopped while waiting");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto now = find_lease(file_);
    if (!now || !now->holder || now->holder->token != found.holder->token || now->changed != found.changed) return;  // judged anew
  }
}

/// Moves a lease away that was judged stale, looks whether it is that one still, and puts it back where it is not.
void Lease::take_away(const FoundLease& judged) {
  const std::filesystem::path aside = file_.parent_path() / ("." + file_.filename().string() + ".tmp-" + std::to_string(mine_.process));
  if (::rename(file_.c_str(), aside.c_str()) != 0) {
    if (errno == ENOENT || errno == ESTALE) return;
    throw_file_error("move", file_);
  }
  const auto moved = find_lease(aside);
  const auto token = [](const FoundLease& lease) { return lease.holder ? lease.holder->token : std::string(); };
  if (moved && (token(*moved) != token(judged) || moved->changed != judged.changed)) {
    if (::link(aside.c_str(), file_.c_str()) != 0 && errno != EEXIST && ::rename(aside.c_str(), file_.c_str()) != 0)
      throw_file_error("put back", file_);
  }
  if (const std::string problem = remove_run_file(aside); !problem.empty()) throw DataError(problem);
}

bool Lease::beat() {
  const std::lock_guard guard(mutex_);
  if (lost_) return false;
  const double began = seconds_since_boot();
  ::futimens(open_.get(), nullptr);  // of a lease that was moved away it does no harm; what lies at its name is looked at next
  const auto there = find_lease(file_);
  if (there && there->holder && there->holder->token == mine_.token) {
    confirmed_ = began;
    return true;
  }
  if (!there && began - confirmed_ < kUnasked && create()) return true;  // deleted by hand
  const auto other = find_lease(file_);
  lost_ = true;
  lost_to_ = other && other->holder ? describe(*other->holder) : "another process";
  return false;
}

void Lease::require() {
  {
    const std::lock_guard guard(mutex_);
    if (!lost_ && seconds_since_boot() - confirmed_ < kTrusted) return;
  }
  if (beat()) return;
  const std::lock_guard guard(mutex_);
  throw RunInUse(file_.parent_path().string() + " was taken over by " + lost_to_ +
                 " while this process gave no sign of life; it writes nothing more");
}

void Lease::keep_beating() {
  std::unique_lock guard(mutex_);
  while (!ending_changed_.wait_for(guard, std::chrono::duration<double>(kBeat), [this] { return ending_; })) {
    guard.unlock();
    try {
      beat();
    } catch (const DataError&) {  // require() asks again, and says so
    }
    guard.lock();
  }
}

}  // namespace saccade
