#include "ui/configure/json_position.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <regex>

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

}  // namespace

std::optional<size_t> json_position(const std::string& text, const std::string& pointer) { return Walker(text, pointer).find(); }

std::optional<size_t> fault_position(const std::string& text, const std::string& message) {
  static const std::regex place("^[^:/]+:([0-9]+):([0-9]+):"), pointer("(/[A-Za-z0-9_]+)+");
  if (std::smatch match; std::regex_search(message, match, place)) {
    size_t at = 0;
    for (int line = std::stoi(match[1]); line > 1 && at < text.size(); --line) at = std::min(text.find('\n', at), text.size() - 1) + 1;
    return std::min(text.size(), at + static_cast<size_t>(std::max(1, std::stoi(match[2])) - 1));
  }
  const std::sregex_iterator first(message.begin(), message.end(), pointer), end;
  for (auto match = first; match != end; ++match)
    if (const auto found = json_position(text, match->str())) return found;
  for (auto match = first; match != end; ++match)
    for (std::string candidate = match->str(); !candidate.empty(); candidate.erase(candidate.rfind('/')))
      if (const auto found = json_position(text, candidate)) return found;
  return {};
}

}  // namespace saccade::ui
