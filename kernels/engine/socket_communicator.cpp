#include "kernels/engine/socket_communicator.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace saccade {
namespace {

constexpr double kTold = 3;      // seconds in which the watch finds out why a socket ended
constexpr int kStillHere = 200;  // milliseconds after which who waits says that it does

/// What everything said in a call begins with.
struct Header {
  uint64_t call, bytes;
  char kind;
  char rest[7];
};

struct RankName {
  int64_t process;
  char host[248];
};

const char* kind_name(char kind) {
  switch (kind) {
    case 'n': return "names";
    case 't': return "all_to_all";
    case 'b': return "broadcast";
    case 'f': return "any";
    default: return "an unknown call";
  }
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

std::vector<RankSockets> connected_ranks(int count) {
  const auto n = static_cast<size_t>(count);
  std::vector<RankSockets> ranks(n);
  for (size_t r = 0; r < n; ++r) {
    ranks[r].rank = static_cast<int>(r);
    ranks[r].data.resize(n);
    ranks[r].watch.resize(n);
  }
  for (size_t a = 0; a < n; ++a)
    for (size_t b = a + 1; b < n; ++b)
      for (auto list : {&RankSockets::data, &RankSockets::watch}) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
          throw Error("cannot connect " + std::to_string(count) + " ranks: " + std::strerror(errno));
        (ranks[a].*list)[b] = Socket(ends[0]);
        (ranks[b].*list)[a] = Socket(ends[1]);
      }
  return ranks;
}

/// One direction to one rank: the pieces that are left.
struct SocketCommunicator::Stream {
  char kind = 0;  ///< of this rank's call
  Header header{};
  std::vector<Piece> pieces;
  size_t next = 0, at = 0;
  bool done() const { return next == pieces.size(); }
};

SocketCommunicator::SocketCommunicator(RankSockets sockets, RankWatchOptions options)
    : Communicator(sockets.rank, sockets.size()), sockets_(std::move(sockets)) {
  const auto n = static_cast<size_t>(size()), mine = static_cast<size_t>(rank());
  for (size_t r = 0; r < n; ++r) names_.push_back("rank " + std::to_string(r));
  std::vector<RankName> said(n);
  said[mine].process = ::getpid();
  ::gethostname(said[mine].host, sizeof said[mine].host - 1);
  std::vector<int> watched;
  for (const Socket& socket : sockets_.watch) watched.push_back(socket.get());
  Pieces send(n), receive(n);
  for (size_t r = 0; r < n; ++r) {
    send[r] = {{reinterpret_cast<char*>(&said[mine]), sizeof(RankName)}};
    receive[r] = {{reinterpret_cast<char*>(&said[r]), sizeof(RankName)}};
  }
  exchange('n', send, receive);
  for (size_t r = 0; r < n; ++r) {
    said[r].host[sizeof said[r].host - 1] = 0;
    names_[r] += " (process " + std::to_string(said[r].process) + " on " + said[r].host + ")";
  }
  watch_ = std::make_unique<RankWatch>(rank(), watched, names_, progress_, std::move(options), [this] {
    for (const Socket& socket : sockets_.data)
      if (socket) ::shutdown(socket.get(), SHUT_RDWR);  // whoever waits for a rank wakes up
  });
  Progress::set_of_thread(&progress_);
}

SocketCommunicator::~SocketCommunicator() {
  if (Progress::of_thread() == &progress_) Progress::set_of_thread(nullptr);
}

void SocketCommunicator::fail(int peer, const std::string& what) {
  const std::string line = name(peer) + " " + what;
  const std::optional<std::string> told = watch_ ? watch_->lost(kTold) : std::nullopt;
  throw RankLost(told.value_or(line));
}

/// Sends or receives as much as goes without waiting; `answer`: what is received from whom this is sent to.
void SocketCommunicator::move(Stream& stream, int peer, Stream* answer) {
  const bool sending = answer != nullptr;
  const int fd = sockets_.data[static_cast<size_t>(peer)].get();
  while (!stream.done()) {
    progress_.raise();
    const Piece& piece = stream.pieces[stream.next];
    char* const from = piece.data + stream.at;
    const size_t left = piece.bytes - stream.at;
    const ssize_t moved = left == 0 ? 0
                          : sending ? ::send(fd, from, left, MSG_DONTWAIT | MSG_NOSIGNAL)
                                    : ::recv(fd, from, left, MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) {
      const std::string why = std::strerror(errno);
      if (sending) move(*answer, peer, nullptr);  // what it has said before it ended may tell more
      fail(peer, "has ended: " + why);
    }
    if (moved == 0 && left > 0) fail(peer, "has ended");
    stream.at += static_cast<size_t>(moved);
    if (stream.at < piece.bytes) continue;
    stream.at = 0;
    ++stream.next;
    if (sending || stream.next != 1) continue;
    size_t wanted = 0;
    for (size_t i = 1; i < stream.pieces.size(); ++i) wanted += stream.pieces[i].bytes;
    if (stream.header.call != call_)
      throw Error(name(peer) + " is at call " + std::to_string(stream.header.call) + " (" + kind_name(stream.header.kind) +
                  "), this rank at call " + std::to_string(call_));
    if (stream.header.kind != stream.kind)
      throw Error(name(peer) + " is at " + kind_name(stream.header.kind) + ", this rank at " + kind_name(stream.kind));
    if (stream.header.bytes != wanted)
      throw Error(name(peer) + " sends " + std::to_string(stream.header.bytes) + " bytes in " + kind_name(stream.header.kind) +
                  ", expected " + std::to_string(wanted));
  }
}

void SocketCommunicator::exchange(char kind, Pieces send, Pieces receive) {
  ++call_;
  progress_.come_to_meeting();
  const AtPace waiting(Progress::Pace::waiting, &progress_);
  const auto n = static_cast<size_t>(size());
  std::vector<Stream> out(n), in(n);
  for (size_t r = 0; r < n; ++r) {
    if (r == static_cast<size_t>(rank())) continue;
    out[r].header = {call_, 0, kind, {}};
    in[r].kind = kind;
    for (const Piece& piece : send[r]) out[r].header.bytes += piece.bytes;
    for (auto [stream, pieces] : {std::pair(&out[r], &send[r]), std::pair(&in[r], &receive[r])}) {
      stream->pieces.push_back({reinterpret_cast<char*>(&stream->header), sizeof(Header)});
      stream->pieces.insert(stream->pieces.end(), pieces->begin(), pieces->end());
    }
  }
  while (true) {
    std::vector<pollfd> polled;
    for (size_t r = 0; r < n; ++r) {
      if (!out[r].done()) move(out[r], static_cast<int>(r), &in[r]);
      if (!in[r].done()) move(in[r], static_cast<int>(r), nullptr);
      const int events = (out[r].done() ? 0 : POLLOUT) | (in[r].done() ? 0 : POLLIN);
      if (events != 0) polled.push_back({sockets_.data[r].get(), static_cast<short>(events), 0});
    }
    if (polled.empty()) break;
    (void)::poll(polled.data(), polled.size(), kStillHere);
    progress_.raise();
  }
}

void SocketCommunicator::all_to_all(Device device, const Parts& send, const Parts& receive) {
  if (!device.is_cpu()) throw std::logic_error("sockets carry what is on the CPU");
  const auto pieces = [](const Parts& parts) {
    Pieces all;
    for (const std::vector<Tensor>& tensors : parts) {
      all.emplace_back();
      for (const Tensor& t : tensors) all.back().push_back({static_cast<char*>(t.raw()), static_cast<size_t>(t.bytes())});
    }
    return all;
  };
  exchange('t', pieces(send), pieces(receive));
}

std::string SocketCommunicator::broadcast(const std::string& bytes) {
  const auto n = static_cast<size_t>(size());
  uint64_t length = bytes.size();
  const auto from_first = [&](char* data, size_t count) {
    Pieces send(n), receive(n);
    if (rank() == 0)
      send.assign(n, {{data, count}});
    else
      receive[0] = {{data, count}};
    exchange('b', send, receive);
  };
  from_first(reinterpret_cast<char*>(&length), sizeof length);
  std::string text = rank() == 0 ? bytes : std::string(length, 0);
  from_first(text.data(), text.size());
  return text;
}

bool SocketCommunicator::any(bool here) {
  const auto n = static_cast<size_t>(size());
  std::vector<char> flags(n, here ? 1 : 0);
  char mine = here ? 1 : 0;
  Pieces send(n, {{&mine, 1}}), receive(n);
  for (size_t r = 0; r < n; ++r) receive[r] = {{&flags[r], 1}};
  exchange('f', send, receive);
  return std::any_of(flags.begin(), flags.end(), [](char flag) { return flag != 0; });
}

}  // namespace saccade
