#include "kernels/engine/rank_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "kernels/engine/clock.h"

namespace saccade {
namespace {

constexpr double kPulse = 0.5;           // seconds between signs of life
constexpr double kOverslept = 3;         // a pulse so late says that this process was stopped itself
constexpr double kCovered = 2 * kPulse;  // most that a sign of life says about the time since the one before
constexpr char kAlive = 'a', kBye = 'b', kLost = 'l', kHung = 'h';

using Pace = Progress::Pace;

bool is_new(Pace pace) { return pace == Pace::first || pace == Pace::settling; }

}  // namespace

/// What ranks send each other.
struct RankWatch::Sign {
  char kind = 0;
  Pace pace = Pace::aside;  ///< of kAlive, as all that follows but the rank
  uint16_t rank = 0;        ///< of kLost and kHung: the one that was lost
  float patience = 0;       ///< seconds
  uint64_t count = 0, meetings = 0;
};

void Standstill::see(const Progress::Seen& seen, double time) {
  const bool moved = seen.count != last_.count || seen.pace == Pace::aside;
  seconds_ = moved ? 0 : seconds_ + std::min(time - seen_at_, kCovered);
  last_ = seen;
  seen_at_ = time;
}

void Patience::see(const Progress::Seen& seen, double time) {
  const Pace pace = standstill_.last().pace;
  const double stretch = standstill_.seconds();
  standstill_.see(seen, time);
  const bool over = standstill_.seconds() == 0;
  if (over && (pace == Pace::settling || pace == Pace::steady)) longest_ = std::max(longest_, stretch);
}

double Patience::seconds() const {
  return is_new(standstill_.last().pace) ? kFirstPatience * silence_ : std::max(silence_, kPatience * longest_);
}

RankWatch::RankWatch(int rank, std::vector<int> sockets, std::vector<std::string> names, const Progress& here, RankWatchOptions options,
                     std::function<void()> wake)
    : rank_(static_cast<size_t>(rank)), here_(here), options_(std::move(options)), wake_(std::move(wake)), patience_(options_.silence) {
  for (size_t r = 0; r < sockets.size(); ++r) peers_.push_back({sockets[r], names[r], now()});
  thread_ = std::thread([this] { watch(); });
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (Peer& peer : peers_)
    if (!peer.gone && peer.socket >= 0) send(peer, lost_ ? kLost : kBye, lost_rank_);
}

std::optional<std::string> RankWatch::lost(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return lost_.has_value(); });
  return lost_;
}

/// A socket that is full belongs to a rank that does not read, which its silence will tell.
void RankWatch::send(Peer& peer, char kind, size_t rank) {
  static_assert(sizeof(Sign) == 24);
  const Progress::Seen& here = patience_.standstill().last();
  const Sign sign{.kind = kind,
                  .pace = here.pace,
                  .rank = static_cast<uint16_t>(rank),
                  .patience = static_cast<float>(patience_.seconds()),
                  .count = here.count,
                  .meetings = here.meetings};
  (void)::send(peer.socket, &sign, sizeof sign, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// A rank that hangs hears of it too, so that its own watch ends it. One that was given up tells nobody who gave it up.
void RankWatch::lose(size_t rank, const std::string& what, Loss loss) {
  const std::string line = peers_[rank].name + " " + what;
  {
    const std::lock_guard lock(mutex_);
    if (lost_ || ending_) return;
    lost_ = line;
    lost_rank_ = loss == Loss::gives_this_up ? rank_ : rank;
    lost_at_ = now();
  }
  if (loss != Loss::gives_this_up)
    for (size_t r = 0; r < peers_.size(); ++r)
      if (r != rank_ && (r != rank || loss == Loss::hung) && !peers_[r].gone) send(peers_[r], loss == Loss::hung ? kHung : kLost, rank);
  if (options_.lost) options_.lost(line);
  changed_.notify_all();
  wake_();
}

void RankWatch::understand(size_t rank, const Sign& sign) {
  Peer& peer = peers_[rank];
  if (sign.kind == kAlive) {
    peer.patience = static_cast<double>(sign.patience);
    peer.standstill.see({sign.pace, sign.count, sign.meetings}, peer.heard);
  }
  if (sign.kind == kBye) peer.gone = true;
  if (sign.kind != kLost && sign.kind != kHung) return;
  if (sign.rank == rank_)
    lose(rank, "has given this rank up as hung", Loss::gives_this_up);
  else if (sign.rank < peers_.size())
    lose(sign.rank, (sign.kind == kHung ? "hangs, says " : "was lost, says ") + peer.name, sign.kind == kHung ? Loss::hung : Loss::ended);
}

void RankWatch::hear(size_t rank) {
  Peer& peer = peers_[rank];
  std::array<char, 4096> bytes{};
  const ssize_t count = ::recv(peer.socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count <= 0) {
    peer.gone = true;
    return lose(rank, "has ended");
  }
  peer.heard = now();
  peer.bytes.append(bytes.data(), static_cast<size_t>(count));
  for (Sign sign; peer.bytes.size() >= sizeof sign; peer.bytes.erase(0, sizeof sign)) {
    std::memcpy(&sign, peer.bytes.data(), sizeof sign);
    understand(rank, sign);
  }
}

void RankWatch::wait(double seconds) {
  std::vector<pollfd> polled;
  std::vector<size_t> ranks;
  for (size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_ && !peers_[r].gone) polled.push_back({peers_[r].socket, POLLIN, 0}), ranks.push_back(r);
  (void)::poll(polled.data(), polled.size(), static_cast<int>(seconds * 1e3));
  for (size_t i = 0; i < polled.size(); ++i)
    if (polled[i].revents != 0) hear(ranks[i]);
}

void RankWatch::send_signs_of_life() {
  for (size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_ && !peers_[r].gone) send(peers_[r], kAlive, 0);
}

void RankWatch::find_silent() {
  for (size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_ && !peers_[r].gone && now() - peers_[r].heard > options_.silence) {
      peers_[r].gone = true;
      lose(r, "gives no sign of life for " + std::to_string(static_cast<int>(options_.silence)) + " s");
    }
}

/// A thread that waits in a call raises its count there: if it does not, it hangs, whoever it waits for.
bool RankWatch::hangs(const Peer& peer) const {
  const Progress::Seen &there = peer.standstill.last(), &here = patience_.standstill().last();
  if (peer.gone || peer.patience <= 0 || peer.standstill.seconds() <= peer.patience) return false;
  const bool still_too = patience_.standstill().seconds() > patience_.seconds() && there.meetings <= here.meetings;
  return there.pace == Pace::waiting || there.meetings < here.meetings || still_too;
}

bool RankWatch::is_furthest_behind(size_t rank) const {
  return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& other) {
    const Progress::Seen& seen = other.standstill.last();
    return other.gone || other.socket < 0 || seen.pace == Pace::waiting || seen.meetings >= peers_[rank].standstill.last().meetings;
  });
}

void RankWatch::find_hung() {
  for (size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_ && hangs(peers_[r]) && (peers_[r].standstill.last().pace == Pace::waiting || is_furthest_behind(r)))
      lose(r,
           "hangs: its process lives, and it has done nothing for " + std::to_string(static_cast<int>(peers_[r].standstill.seconds())) +
               " s",
           Loss::hung);
}

void RankWatch::tell_overdue() {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_ || overdue_told_ || now() - lost_at_ <= options_.grace) return;
    overdue_told_ = true;
  }
  if (options_.overdue) options_.overdue(*lost_);
}

void RankWatch::watch() {
  double last = now(), pulse = 0;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
    }
    const double time = now();
    if (time - last > kOverslept)
      for (Peer& peer : peers_) peer.heard = time;
    last = time;
    patience_.see(here_.seen(), time);
    if (time - pulse >= kPulse) {
      pulse = time;
      send_signs_of_life();
    }
    wait(kPulse / 5);
    find_silent();
    find_hung();
    tell_overdue();
  }
}

}  // namespace saccade
