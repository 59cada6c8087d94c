#include "analysis/training/rank_meeting.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "analysis/runs/files.h"
#include "analysis/runs/run_lock.h"
#include "analysis/runs/small_files.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/config_text.h"
#include "models/json.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr double kHandshake = 5;  // seconds for a few bytes
constexpr std::array<char, 8> kMagic{'s', 'a', 'c', 'r', 'a', 'n', 'k', '2'};

/// What a rank that connects says first; a byte 'y' answers.
struct Hello {
  std::array<char, 8> magic = kMagic;
  std::array<char, 32> token{};
  int32_t rank = 0;
  int32_t watch = 0;  ///< 1: the socket of RankWatch
  int32_t port = 0;   ///< where the rank itself listens
};

struct Address {
  in_addr host{};
  int32_t port = 0;
};

std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// A number of the environment; nothing where it is not set.
std::optional<int> number(const char* name) {
  const std::string value = text(name);
  if (value.empty()) return {};
  int result = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc() || end != value.data() + value.size() || result < 0)
    throw UsageError(std::string(name) + " is \"" + value + "\" in the environment; expected a number from 0 on");
  return result;
}

std::string new_token() {
  std::random_device random;
  std::string token;
  while (token.size() < sizeof Hello::token) token += "0123456789abcdef"[random() % 16];
  return token;
}

/// Waits for something to read; false when the time is over.
bool readable(int fd, double until) {
  while (true) {
    stop_here_if_asked();
    const double left = until - now();
    pollfd polled{fd, POLLIN, 0};
    if (const int count = ::poll(&polled, 1, static_cast<int>(std::clamp(left, 0.0, 0.2) * 1e3)); count > 0) return true;
    if (left <= 0) return false;
  }
}

bool receive(const Socket& socket, void* to, size_t bytes, double until) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (!readable(socket.get(), until)) return false;
    const ssize_t count = ::recv(socket.get(), at, bytes, 0);
    if (count <= 0) return false;
    at += count, bytes -= static_cast<size_t>(count);
  }
  return true;
}

bool send_all(const Socket& socket, const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t count = ::send(socket.get(), at, bytes, MSG_NOSIGNAL);
    if (count <= 0) return false;
    at += count, bytes -= static_cast<size_t>(count);
  }
  return true;
}

struct Listener {
  Socket socket;
  int32_t port = 0;

  explicit Listener(bool one_host) : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(one_host ? INADDR_LOOPBACK : INADDR_ANY);
    socklen_t size = sizeof address;
    if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket.get(), 4096) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw Error(std::string("cannot listen for the ranks of the run: ") + std::strerror(errno));
    port = ntohs(address.sin_port);
  }
};

void send_at_once(const Socket& socket) {
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Connects and is taken for a rank; an empty socket where nobody listens there, or not for this run.
Socket connect_to(const Address& to, const Hello& hello) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = to.host;
  address.sin_port = htons(static_cast<uint16_t>(to.port));
  const timeval patience{static_cast<time_t>(kHandshake), 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  char answer = 0;
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return Socket();
  if (!send_all(socket, &hello, sizeof hello) || !receive(socket, &answer, 1, now() + kHandshake) || answer != 'y') return Socket();
  send_at_once(socket);
  return socket;
}

std::vector<std::string> addresses() {
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP) || one->ifa_flags & IFF_LOOPBACK) continue;
    std::array<char, INET_ADDRSTRLEN> name{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, name.data(), name.size());
    found.emplace_back(name.data());
  }
  ::freeifaddrs(all);
  return found;
}

class Meeting {
 public:
  Meeting(const fs::path& directory, const LaunchedRank& here, double seconds)
      : file_(directory / "ranks"), here_(here), until_(now() + seconds), seconds_(seconds), listener_(here.local_count == here.count) {
    sockets_.rank = here.rank;
    sockets_.data.resize(static_cast<size_t>(here.count));
    sockets_.watch.resize(static_cast<size_t>(here.count));
    ports_.resize(static_cast<size_t>(here.count));
  }

  RankSockets meet() {
    if (here_.rank == 0)
      lead();
    else
      join();
    return std::move(sockets_);
  }

 private:
  void lead() {
    token_ = new_token();
    const nlohmann::json said{{"job", here_.job},    {"token", token_},          {"ranks", here_.count},
                              {"host", host_name()}, {"addresses", addresses()}, {"port", listener_.port}};
    replace_text(file_, said.dump() + "\n", 0600);
    try {
      accept_above();
    } catch (...) {
      static_cast<void>(remove_run_file(file_));
      throw;
    }
    static_cast<void>(remove_run_file(file_));
    for (int r = 1; r < here_.count; ++r) send_table(r);
  }

  /// Where every rank listens, as rank r reaches it.
  void send_table(int r) {
    std::vector<Address> table(static_cast<size_t>(here_.count));
    const in_addr own = end_of(r, ::getsockname);
    for (int other = 1; other < here_.count; ++other) {
      const in_addr seen = end_of(other, ::getpeername);
      const bool this_host = seen.s_addr == end_of(other, ::getsockname).s_addr || ntohl(seen.s_addr) >> 24 == 127;
      table[static_cast<size_t>(other)] = {this_host ? own : seen, ports_[static_cast<size_t>(other)]};
    }
    if (!send_all(data(r), table.data(), table.size() * sizeof(Address))) throw DataError("rank " + std::to_string(r) + " has ended");
  }

  template <class Name>
  in_addr end_of(int r, Name name) const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    name(sockets_.data[static_cast<size_t>(r)].get(), reinterpret_cast<sockaddr*>(&address), &size);
    return address.sin_addr;
  }

  void join() {
    while (!join_first()) {
      if (now() > until_) late("found no rank 0 through " + file_.string());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    std::vector<Address> table(static_cast<size_t>(here_.count));
    if (!receive(data(0), table.data(), table.size() * sizeof(Address), until_)) late("did not hear where the other ranks are");
    for (int other = 1; other < here_.rank; ++other)
      if (!connect_both(other, table[static_cast<size_t>(other)])) late("cannot reach rank " + std::to_string(other));
    accept_above();
  }

  /// False while the file is not there, or is that of another start.
  bool join_first() {
    stop_here_if_asked();
    nlohmann::json said;
    try {
      said = parse_json_or_discard(read_small_text(file_, kLargestNote));
      if (said.at("job") != here_.job) return false;
      token_ = said.at("token").get<std::string>();
      if (token_.size() != sizeof Hello::token) return false;
      std::vector<std::string> hosts = said.at("addresses");
      if (said.at("host") == host_name()) hosts.insert(hosts.begin(), "127.0.0.1");
      if (said.at("ranks") != here_.count)
        throw UsageError("rank 0 was started for " + said.at("ranks").dump() + " ranks, this one for " + std::to_string(here_.count));
      for (const std::string& host : hosts) {
        Address at{{}, said.at("port").get<int32_t>()};
        if (::inet_pton(AF_INET, host.c_str(), &at.host) == 1 && connect_both(0, at)) return true;
      }
    } catch (const DataError&) {
    } catch (const nlohmann::json::exception&) {
    }
    return false;
  }

  bool connect_both(int to, const Address& at) {
    Hello hello{.rank = here_.rank, .port = listener_.port};
    std::copy(token_.begin(), token_.end(), hello.token.begin());
    for (auto* list : {&sockets_.data, &sockets_.watch}) {
      hello.watch = list == &sockets_.watch;
      Socket& socket = (*list)[static_cast<size_t>(to)];
      socket = connect_to(at, hello);
      if (!socket) return false;
    }
    return true;
  }

  /// From every rank above this one, both its sockets.
  void accept_above() {
    for (int left = 2 * (here_.count - 1 - here_.rank); left > 0;) {
      if (!readable(listener_.socket.get(), until_))
        late(std::to_string(missing()) + " of " + std::to_string(here_.count) + " ranks did not come");
      Socket socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Hello hello;
      if (!socket || !receive(socket, &hello, sizeof hello, now() + kHandshake)) continue;
      const bool ours = hello.magic == kMagic && std::equal(token_.begin(), token_.end(), hello.token.begin()) && hello.rank > here_.rank &&
                        hello.rank < here_.count;
      if (!ours || !send_all(socket, "y", 1)) continue;
      send_at_once(socket);
      ports_[static_cast<size_t>(hello.rank)] = hello.port;
      Socket& place = (hello.watch ? sockets_.watch : sockets_.data)[static_cast<size_t>(hello.rank)];
      if (!place) --left;  // who lost the answer comes again
      place = std::move(socket);
    }
  }

  int missing() const {
    int count = 0;
    for (int r = here_.rank + 1; r < here_.count; ++r)
      if (!sockets_.data[static_cast<size_t>(r)] || !sockets_.watch[static_cast<size_t>(r)]) ++count;
    return count;
  }

  [[noreturn]] void late(const std::string& what) const {
    throw DataError("rank " + std::to_string(here_.rank) + " of " + std::to_string(here_.count) + ": " + what + " within " +
                    std::to_string(static_cast<int>(seconds_)) + " s");
  }

  const Socket& data(int r) const { return sockets_.data[static_cast<size_t>(r)]; }

  fs::path file_;
  LaunchedRank here_;
  double until_, seconds_;
  Listener listener_;
  std::string token_;
  RankSockets sockets_;
  std::vector<int32_t> ports_;
};

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  const auto read = [](const char* rank, const char* count, const char* local, const char* local_count) -> std::optional<LaunchedRank> {
    if (!number(rank) || !number(count) || *number(count) < 2) return {};
    LaunchedRank here{*number(rank), *number(count), number(local).value_or(0), number(local_count).value_or(0), {}};
    if (here.rank >= here.count)
      throw UsageError(std::string(rank) + " is " + std::to_string(here.rank) + " in the environment; expected less than " + count + ", " +
                       std::to_string(here.count));
    return here;
  };
  if (!text("SLURM_STEP_ID").empty())
    if (auto here = read("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE")) {
      const bool one_host = number("SLURM_NNODES").value_or(1) == 1;
      if (one_host || here->local_count == 0) here->local_count = one_host ? here->count : here->count / *number("SLURM_NNODES");
      here->job = "slurm " + text("SLURM_JOB_ID") + "." + text("SLURM_STEP_ID") + "." + text("SLURM_RESTART_COUNT");
      return here;
    }
  auto here = read("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!here) return {};
  if (here->local_count == 0) here->local_count = here->count;
  here->job = "openmpi " + text("PMIX_NAMESPACE");
  return here;
}

RankSockets meet(const fs::path& directory, const LaunchedRank& here, double seconds) { return Meeting(directory, here, seconds).meet(); }

}  // namespace saccade
