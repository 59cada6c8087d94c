#include "models/corpus/lost_maps.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

namespace saccade {
namespace {

/// Where a signal handler can read it: no lock, no memory of its own.
struct Map {
  std::atomic<uintptr_t> begin{0};
  std::atomic<size_t> size{0};
  std::array<char, 1024> name{};
};
std::array<Map, 512> maps;  // beyond so many, files are mapped all the same but not named
std::mutex changing;

void say(const char* text) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text)); }

void answer(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Map& map : maps) {
    const uintptr_t begin = map.begin;
    if (info->si_code <= 0 || begin == 0 || address < begin || address >= begin + map.size) continue;
    say("saccade: ");
    say(map.name.data());
    say(" cannot be read any more: it became shorter, or its disk is gone\n");
    ::_exit(3);  // as any error in data; nothing may be tidied up here
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void watch_map(const void* begin, size_t size, const std::filesystem::path& file) {
  const std::lock_guard lock(changing);
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  const auto free = std::find_if(maps.begin(), maps.end(), [](const Map& map) { return map.begin == 0; });
  if (!installed || free == maps.end()) return;
  std::string name = file.string().substr(0, free->name.size() - 1);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < ' '; }, '?');  // one line
  std::copy_n(name.c_str(), name.size() + 1, free->name.begin());
  free->size = size;
  free->begin = reinterpret_cast<uintptr_t>(begin);
}

void forget_map(const void* begin) {
  const std::lock_guard lock(changing);
  for (Map& map : maps)
    if (map.begin == reinterpret_cast<uintptr_t>(begin)) map.begin = 0;
}

}  // namespace saccade
