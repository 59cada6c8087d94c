#include "analysis/remote/relay.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "analysis/runs/files.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int kMostClients = 32;

void watch(const Descriptor& events, int file, uint32_t what, int how) {
  epoll_event event{};
  event.events = what, event.data.fd = file;
  ::epoll_ctl(events.get(), how, file, &event);
}

Descriptor listen_at(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) return Descriptor();
  std::copy(text.begin(), text.end(), address.sun_path);
  std::error_code none;
  make_folders_above(path);
  fs::permissions(path.parent_path(), fs::perms::owner_all, none);
  fs::remove(path, none);  // of a process that has ended: there is one keeper at a time
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t before = ::umask(0177);
  const bool bound = socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::umask(before);
  return bound && ::listen(socket.get(), 8) == 0 ? std::move(socket) : Descriptor();
}

}  // namespace

struct Relay::Client {
  explicit Client(int descriptor) : file(descriptor) {}
  Descriptor file;
  FrameReader reader;
  std::string unwritten;
};

Relay::Relay(Channel& channel, fs::path socket)
    : channel_(channel), path_(std::move(socket)), events_(::epoll_create1(EPOLL_CLOEXEC)), listening_(listen_at(path_)) {
  if (!events_ || !listening_) return;
  watch(events_, listening_.get(), EPOLLIN, EPOLL_CTL_ADD);
  channel_.attend(events_.get(), [this] { attend(); });
}

Relay::~Relay() {
  channel_.attend(-1, {});
  std::error_code none;
  if (listening_) fs::remove(path_, none);
}

void Relay::attend() {
  std::array<epoll_event, 16> events{};
  const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int file = events[static_cast<size_t>(i)].data.fd;
    if (file == listening_.get()) {
      accept();
    } else if (const auto found = clients_.find(file); found != clients_.end()) {
      const std::shared_ptr<Client> client = found->second;
      if (events[static_cast<size_t>(i)].events & EPOLLOUT) write(client);
      if (events[static_cast<size_t>(i)].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(client);
    }
  }
}

void Relay::accept() {
  const int file = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (file < 0) return;
  const auto client = std::make_shared<Client>(file);
  if (clients_.size() >= kMostClients) return;
  clients_[file] = client;
  watch(events_, file, EPOLLIN, EPOLL_CTL_ADD);
  client->unwritten = kAgentGreeting;
  write(client);
}

void Relay::close(int file) { clients_.erase(file); }

void Relay::read(const std::shared_ptr<Client>& client) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(client->file.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(client->file.get());
  client->reader.take({buffer.data(), static_cast<size_t>(got)});
  try {
    while (std::optional<Frame> request = client->reader.next()) take(client, std::move(*request));
  } catch (const DataError&) {
    close(client->file.get());
  }
}

void Relay::take(const std::shared_ptr<Client>& client, Frame request) {
  const Json id = request.head.value("id", Json());
  if (request.head.value("ask", Json()) == "hello") {
    Frame hello{channel_.agent(), ""};
    hello.head["id"] = id;
    return answer(client, std::move(hello));
  }
  request.head.erase("changes");  // those are this process' own
  channel_.send(std::move(request.head), std::move(request.body), [this, weak = std::weak_ptr<Client>(client), id](Frame frame) {
    frame.head["id"] = id;
    if (const auto there = weak.lock()) answer(there, std::move(frame));
  });
}

void Relay::answer(const std::shared_ptr<Client>& client, Frame frame) {
  client->unwritten += frame_bytes(frame);
  write(client);
}

void Relay::write(const std::shared_ptr<Client>& client) {
  std::string& left = client->unwritten;
  while (!left.empty()) {
    const ssize_t count = ::send(client->file.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) return close(client->file.get());
    if (count < 0) break;
    left.erase(0, static_cast<size_t>(count));
  }
  watch(events_, client->file.get(), left.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

}  // namespace saccade
