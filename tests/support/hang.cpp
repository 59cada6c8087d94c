// A library for LD_PRELOAD that lets the first thread of a process hang while its other threads live: from the signal SIGUSR1 on, at once,
// or with HANG_AT=poll in the environment when it next waits for a socket.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

volatile sig_atomic_t asked = 0;
bool at_poll = false;

void hang() {
  while (true) ::pause();
}

void ask(int) {
  if (::gettid() != ::getpid()) return;
  asked = 1;
  if (!at_poll) hang();
}

[[gnu::constructor]] void begin() {
  const char* where = std::getenv("HANG_AT");
  at_poll = where && std::strcmp(where, "poll") == 0;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
}

}  // namespace

extern "C" int poll(pollfd* polled, nfds_t count, int milliseconds) {
  static auto* const real = reinterpret_cast<decltype(::poll)*>(::dlsym(RTLD_NEXT, "poll"));
  if (asked && ::gettid() == ::getpid()) hang();
  return real(polled, count, milliseconds);
}
