#include "analysis/remote/frame.h"

#include <zlib.h>

#include <array>

#include "kernels/engine/error.h"
#include "models/config_text.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr size_t kNumbers = 8, kMostBeforeGreeting = size_t{1} << 16, kWorthPacking = 256;

std::string number_bytes(size_t value) {
  std::string bytes(4, '\0');
  for (size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

size_t number_at(std::string_view bytes, size_t at) {
  size_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

/// Empty where that is no smaller.
std::string packed(const std::string& body) {
  uLongf size = compressBound(body.size());
  std::string bytes(size, '\0');
  const auto* from = reinterpret_cast<const Bytef*>(body.data());
  if (compress2(reinterpret_cast<Bytef*>(bytes.data()), &size, from, body.size(), Z_BEST_SPEED) != Z_OK || size >= body.size()) return {};
  bytes.resize(size);
  return bytes;
}

std::string unpacked(const std::string& bytes, const Json& size) {
  if (!size.is_number_unsigned() || size.get<uint64_t>() > Frame::kMostBody) throw DataError("the size of a packed body is none");
  std::string body(size.get<size_t>(), '\0');
  uLongf found = body.size();
  const auto* from = reinterpret_cast<const Bytef*>(bytes.data());
  if (uncompress(reinterpret_cast<Bytef*>(body.data()), &found, from, bytes.size()) != Z_OK || found != body.size())
    throw DataError("a packed body cannot be unpacked");
  return body;
}

}  // namespace

std::string frame_bytes(const Frame& frame) {
  Json head = frame.head;
  const std::string small = frame.body.size() < kWorthPacking ? std::string() : packed(frame.body);
  if (!small.empty()) head["unpacked"] = frame.body.size();
  const std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string& body = small.empty() ? frame.body : small;
  if (text.size() > Frame::kMostHead || frame.body.size() > Frame::kMostBody)
    throw UsageError("a message of " + std::to_string(text.size()) + " and " + std::to_string(frame.body.size()) +
                     " bytes is larger than the channel takes");
  return number_bytes(text.size()) + number_bytes(body.size()) + text + body;
}

bool FrameReader::find_greeting() {
  const size_t at = held_.find(kAgentGreeting);
  if (at == std::string::npos && held_.size() > kMostBeforeGreeting) throw DataError("no agent answers, but something else");
  if (at == std::string::npos) return false;
  held_.erase(0, at + kAgentGreeting.size());
  return greeted_ = true;
}

std::optional<Frame> FrameReader::next() {
  if (!greeted_ && !find_greeting()) return {};
  if (held_.size() < kNumbers) return {};
  const size_t head = number_at(held_, 0), body = number_at(held_, 4);
  if (head > Frame::kMostHead || body > Frame::kMostBody) throw DataError("a message is larger than the channel takes");
  if (held_.size() < kNumbers + head + body) return {};
  Frame frame;
  try {
    frame.head = parse_json_text(held_.substr(kNumbers, head), "message");
  } catch (const UsageError& error) {
    throw DataError(error.what());
  }
  if (!frame.head.is_object()) throw DataError("the head of a message is no JSON object");
  frame.body = held_.substr(kNumbers + head, body);
  if (const auto size = frame.head.find("unpacked"); size != frame.head.end()) {
    frame.body = unpacked(frame.body, *size);
    frame.head.erase(size);
  }
  held_.erase(0, kNumbers + head + body);
  return frame;
}

}  // namespace saccade
