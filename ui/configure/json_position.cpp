#include "ui/configure/json_position.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "models/json.h"

namespace saccade::ui {
namespace {

/// Goes through well-formed JSON text and knows at every value by which pointer it is called.
class Walker {
 public:
  Walker(const std::string& text, const std::string& pointer) : text_(text), wanted_(pointer) {}

  std::optional<size_t> find() {
    value("", 0);
    return found_;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_])) ++at_;
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void value(const std::string& path, size_t begin) {
    const char first = next();
    if (path == wanted_ && !found_) found_ = path.empty() ? at_ : begin;
    if (first == '{' || first == '[')
      members(path, first == '{');
    else if (first == '"')
      text();
    else
      while (at_ < text_.size() && !std::strchr(",]} \t\r\n", text_[at_])) ++at_;
  }

  void members(const std::string& path, bool named) {
    ++at_;
    for (int index = 0; at_ < text_.size() && next() != '}' && next() != ']'; ++index) {
      const size_t begin = at_;
      std::string name = std::to_string(index);
      if (named) {
        name = text();
        if (next() == ':') ++at_;
      }
      value(path + "/" + name, named ? begin : (skip(), at_));
      if (next() == ',') ++at_;
    }
    ++at_;
  }

  std::string text() {
    const size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
    const nlohmann::json read = nlohmann::json::parse(text_.substr(begin, at_ - begin), nullptr, false);
    return read.is_string() ? read.get<std::string>() : std::string();
  }

  const std::string &text_, wanted_;
  size_t at_ = 0;
  std::optional<size_t> found_;
};

constexpr size_t kLongestPointer = 2000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// "config:3:7: …"
struct LineAndColumn {
  size_t line = 0, column = 0;
};
std::optional<LineAndColumn> place_in(const std::string& message) {
  const size_t colon = message.find_first_of(":/");
  if (colon == 0 || colon == std::string::npos || message[colon] != ':') return {};
  LineAndColumn place;
  const char *at = message.data() + colon, *const end = message.data() + message.size();
  for (size_t* number : {&place.line, &place.column}) {
    const auto [behind, error] = std::from_chars(at + 1, end, *number);
    if (error != std::errc() || behind == end || *behind != ':') return {};
    at = behind;
  }
  return place;
}

}  // namespace

std::vector<std::string> pointers_in(const std::string& message) {
  std::vector<std::string> pointers;
  for (size_t begin = message.find('/'), end = 0; begin != std::string::npos; begin = message.find('/', std::max(end, begin + 1))) {
    end = begin;
    while (end + 1 < message.size() && message[end] == '/' && is_letter(message[end + 1]))
      for (++end; end < message.size() && is_letter(message[end]);) ++end;
    if (end > begin && end - begin <= kLongestPointer) pointers.push_back(message.substr(begin, end - begin));
  }
  return pointers;
}

std::optional<size_t> json_position(const std::string& text, const std::string& pointer) { return Walker(text, pointer).find(); }

std::optional<size_t> fault_position(const std::string& text, const std::string& message) {
  if (const auto place = place_in(message)) {
    size_t at = 0;
    for (size_t line = place->line; line > 1 && at < text.size(); --line) at = std::min(text.find('\n', at), text.size() - 1) + 1;
    return std::min(text.size(), at + std::max<size_t>(1, place->column) - 1);
  }
  const std::vector<std::string> pointers = pointers_in(message);
  for (const std::string& pointer : pointers)
    if (const auto found = json_position(text, pointer)) return found;
  for (std::string pointer : pointers)
    for (; !pointer.empty(); pointer.erase(pointer.rfind('/')))
      if (const auto found = json_position(text, pointer)) return found;
  return {};
}

}  // namespace saccade::ui
