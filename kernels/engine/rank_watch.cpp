#include "kernels/engine/rank_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "kernels/engine/clock.h"

namespace saccade {
namespace {

constexpr double kPulse = 0.5;    // seconds between signs of life
constexpr double kOverslept = 3;  // a pulse so late says that this process was stopped itself
constexpr size_t kWord = 3;       // kind, rank (two bytes)
constexpr char kAlive = 'a', kBye = 'b', kLost = 'l';

}  // namespace

RankWatch::RankWatch(int rank, std::vector<int> sockets, std::vector<std::string> names, RankWatchOptions options,
                     std::function<void()> wake)
    : rank_(static_cast<size_t>(rank)), options_(std::move(options)), wake_(std::move(wake)) {
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
    if (!peer.gone && peer.socket >= 0) send(peer, lost_ ? kLost : kBye, static_cast<int>(lost_rank_));
}

std::optional<std::string> RankWatch::lost(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return lost_.has_value(); });
  return lost_;
}

/// A socket that is full belongs to a rank that does not read, which its silence will tell.
void RankWatch::send(Peer& peer, char kind, int rank) {
  const std::array<char, kWord> word{kind, static_cast<char>(rank & 0xff), static_cast<char>(rank >> 8 & 0xff)};
  (void)::send(peer.socket, word.data(), word.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void RankWatch::lose(size_t rank, const std::string& what) {
  const std::string line = peers_[rank].name + " " + what;
  {
    const std::lock_guard lock(mutex_);
    if (lost_ || ending_) return;
    lost_ = line;
    lost_rank_ = rank;
    lost_at_ = now();
  }
  for (size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_ && r != rank && !peers_[r].gone) send(peers_[r], kLost, static_cast<int>(rank));
  if (options_.lost) options_.lost(line);
  changed_.notify_all();
  wake_();
}

void RankWatch::hear(size_t rank) {
  Peer& peer = peers_[rank];
  std::array<char, 512> bytes{};
  const ssize_t count = ::recv(peer.socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count <= 0) {
    peer.gone = true;
    return lose(rank, "has ended");
  }
  peer.heard = now();
  peer.bytes.append(bytes.data(), static_cast<size_t>(count));
  for (; peer.bytes.size() >= kWord; peer.bytes.erase(0, kWord)) {
    if (peer.bytes[0] == kBye) peer.gone = true;
    const auto told = static_cast<size_t>(static_cast<unsigned char>(peer.bytes[1]) | static_cast<unsigned char>(peer.bytes[2]) << 8);
    if (peer.bytes[0] == kLost && told < peers_.size() && told != rank_) lose(told, "was lost, says " + peer.name);
    if (peer.bytes[0] == kLost && told == rank_) lose(rank, "has given this rank up as hung");
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
    if (time - pulse >= kPulse) {
      pulse = time;
      for (size_t r = 0; r < peers_.size(); ++r)
        if (r != rank_ && !peers_[r].gone) send(peers_[r], kAlive, 0);
    }
    wait(kPulse / 5);
    for (size_t r = 0; r < peers_.size(); ++r)
      if (r != rank_ && !peers_[r].gone && now() - peers_[r].heard > options_.silence) {
        peers_[r].gone = true;
        lose(r, "gives no sign of life for " + std::to_string(static_cast<int>(options_.silence)) + " s");
      }
    bool overdue = false;
    {
      const std::lock_guard lock(mutex_);
      overdue = lost_ && !overdue_told_ && now() - lost_at_ > options_.grace;
    }
    if (overdue) {
      overdue_told_ = true;
      if (options_.overdue) options_.overdue(*lost_);
    }
  }
}

}  // namespace saccade
