#include "models/config_text.h"

#include <algorithm>
#include <set>
#include <vector>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr size_t kDeepest = 64;  ///< what walks the values later calls itself once a level

/// Goes through a text before a value is made of it: the library itself keeps the last of two equal keys without a word, and makes values
/// of any depth. (Its parser with a callback would tell, but looks through an array again for each object in it.)
class Structure : public nlohmann::json_sax<Json> {
 public:
  bool is_deep = false;
  std::string twice;          ///< a key that one object has twice; empty: none is
  std::string twice_pointer;  ///< where it stands

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  bool key(string_t& name) override {
    Frame& frame = frames_.back();
    frame.current = name;
    if (frame.keys.insert(name).second || !twice_pointer.empty()) return true;
    twice = name;
    for (const Frame& f : frames_)
      if (!f.current.empty()) twice_pointer += "/" + f.current;
    return true;
  }

 private:
  struct Frame {
    std::set<std::string> keys;
    std::string current;  ///< empty in an array
  };

  bool enter() {
    frames_.emplace_back();
    is_deep = frames_.size() > kDeepest;
    return !is_deep;
  }
  bool leave() {
    frames_.pop_back();
    return true;
  }

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
  Structure structure;
  Json::sax_parse(text, &structure);
  if (structure.is_deep) throw UsageError(origin + " is nested deeper than " + std::to_string(kDeepest) + " levels");
  if (!structure.twice_pointer.empty()) throw UsageError(origin + ": " + structure.twice_pointer + " is given twice; expected once");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw UsageError(origin + ":" + place(text, error.byte) + ": not JSON: " + cause(error));
  } catch (const Json::out_of_range& error) {
    throw UsageError(origin + ": not JSON: " + cause(error));
  }
}

Json parse_json_or_discard(std::string_view text, std::string* twice) {
  Structure structure;
  const bool is_json = Json::sax_parse(text, &structure);
  if (twice) *twice = structure.twice;
  return is_json ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
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
