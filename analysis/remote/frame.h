#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/json.h"

namespace saccade {

/// What goes over the channel between this machine and the agent of a host: two 32-bit little-endian numbers, the bytes of the head and
/// those of the body as they are sent; the head, a JSON object; the body, any bytes. A body that zlib makes smaller is sent so, and the
/// head then says in "unpacked" how many bytes it has.
struct Frame {
  nlohmann::json head = nlohmann::json::object();
  std::string body;

  static constexpr size_t kMostHead = size_t{1} << 18, kMostBody = size_t{1} << 20;
};

/// Throws UsageError where it is larger than a frame may be.
std::string frame_bytes(const Frame& frame);

/// Whatever a login writes to standard output before the agent starts is passed over up to this line.
inline constexpr std::string_view kAgentGreeting = "saccade-agent\n";

/// Frames out of what arrives piece by piece, from somebody who may send anything.
class FrameReader {
 public:
  /// `after_greeting`: there is a kAgentGreeting before the first one, within the first 64 KiB.
  explicit FrameReader(bool after_greeting = false) : greeted_(!after_greeting) {}
  void take(std::string_view bytes) { held_ += bytes; }
  /// The next one, once all of it is there. Throws DataError when it is none; nothing can be read from then on.
  std::optional<Frame> next();
  /// What came instead of the greeting, for a message.
  const std::string& unread() const { return held_; }

 private:
  bool find_greeting();

  bool greeted_;
  std::string held_;
};

}  // namespace saccade
