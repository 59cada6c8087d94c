#include "models/config_text.h"

#include <algorithm>
#include <set>
#include <vector>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// Follows the parser to know where it is; the library itself keeps the last of two equal keys without a word.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string origin) : origin_(std::move(origin)) {}

  void operator()(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start: frames_.emplace_back(); break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end: frames_.pop_back(); break;
      case Json::parse_event_t::key: see(parsed.get<std::string>()); break;
      case Json::parse_event_t::value: break;
    }
  }

 private:
  struct Frame {
    std::set<std::string> keys;
    std::string current;  ///< empty in an array
  };

  void see(const std::string& key) {
    Frame& frame = frames_.back();
    frame.current = key;
    if (frame.keys.insert(key).second) return;
    std::string pointer;
    for (const Frame& f : frames_)
      if (!f.current.empty()) pointer += "/" + f.current;
    throw UsageError(origin_ + ": " + pointer + " is given twice; expected once");
  }

  std::string origin_;
  std::vector<Frame> frames_;
};

/// The library's account of a syntax error without its own prefix, in printable letters.
std::string cause(const Json::exception& error) {
  std::string what = error.what();
  for (const std::string mark : {"] ", ": "})  // "[json.exception.parse_error.101] parse error at line 1, column 5: "
    if (const size_t end = what.find(mark); end != std::string::npos) what = what.substr(end + mark.size());
  for (char& c : what)
    if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) >= 127) c = '?';
  return what;
}

std::string place(const std::string& text, size_t byte) {
  const size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const size_t line = 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t column = newline == std::string::npos ? at + 1 : at - newline;
  return std::to_string(line) + ":" + std::to_string(column);
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

}  // namespace

Json parse_json_text(const std::string& text, const std::string& origin) {
  constexpr int kDeepest = 64;  // what walks the values later calls itself once a level
  DuplicateKeys duplicates(origin);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > kDeepest) throw UsageError(origin + " is nested deeper than " + std::to_string(kDeepest) + " levels");
      duplicates(event, parsed);
      return true;
    });
  } catch (const Json::parse_error& error) {
    throw UsageError(origin + ":" + place(text, error.byte) + ": not JSON: " + cause(error));
  } catch (const Json::out_of_range& error) {
    throw UsageError(origin + ": not JSON: " + cause(error));
  }
}

void apply_override(Json& object, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0 || !is_utf8(assignment))
    throw UsageError("--set " + Json(assignment).dump(-1, ' ', true, Json::error_handler_t::replace) +
                     "; expected section.key=value, like training.seed=2");
  const std::string path = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  Json* at = &object;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (key.empty() || !(at->is_object() || at->is_null()))
      throw UsageError("--set " + path + ": " + (key.empty() ? "a name is empty" : "\"" + key + "\" would be inside a value") +
                       "; expected section.key=value, like training.seed=2");
    at = &(*at)[key];
    begin = end + 1;
  }
  *at = Json::accept(value) ? parse_json_text(value, "--set " + path) : Json(value);
}

}  // namespace saccade
