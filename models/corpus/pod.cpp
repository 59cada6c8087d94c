#include "models/corpus/pod.h"

#include <algorithm>
#include <map>
#include <vector>

namespace saccade {
namespace {

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool is_command(std::string_view line) { return line.size() > 1 && line[0] == '=' && line[1] >= 'a' && line[1] <= 'z'; }

std::string entity(const std::string& name) {
  static const std::map<std::string, std::string> table{{"lt", "<"},     {"gt", ">"},   {"verbar", "|"}, {"sol", "/"},
                                                        {"eacute", "é"}, {"uuml", "ü"}, {"auml", "ä"},   {"ouml", "ö"},
                                                        {"copy", "©"},   {"amp", "&"},  {"quot", "\""}};
  const auto found = table.find(name);
  return found == table.end() ? std::string() : found->second;
}

/// Formatting codes: B<bold>, C<< code >>, L<text|target>, E<gt> …, nested.
class Formatted {
 public:
  explicit Formatted(std::string_view text) : text_(text) {}
  std::string plain() { return until(0); }

 private:
  std::string until(size_t brackets) {
    std::string out;
    while (at_ < text_.size()) {
      if (brackets && closes(brackets)) {
        at_ += brackets;
        break;
      }
      const char c = text_[at_++];
      if (c >= 'A' && c <= 'Z' && at_ < text_.size() && text_[at_] == '<')
        out += code(c);
      else
        out += c == '\n' ? ' ' : c;
    }
    return out;
  }

  bool closes(size_t brackets) const { return text_.substr(at_, brackets) == std::string(brackets, '>'); }

  std::string code(char kind) {
    size_t brackets = 0;
    while (at_ < text_.size() && text_[at_] == '<') ++at_, ++brackets;
    std::string inside = until(brackets);
    if (brackets > 1) inside = trimmed(inside);
    if (kind == 'E') return entity(inside);
    if (kind == 'X' || kind == 'Z') return {};
    if (kind == 'L' && inside.find('|') != inside.npos) return inside.substr(0, inside.find('|'));
    return inside;
  }

  static std::string trimmed(const std::string& text) {
    const size_t begin = text.find_first_not_of(' ');
    return begin == text.npos ? std::string() : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string after_command(std::string_view paragraph) {
  const size_t space = paragraph.find_first_of(" \t\n");
  if (space == paragraph.npos) return {};
  const size_t begin = paragraph.find_first_not_of(" \t\n", space);
  return begin == paragraph.npos ? std::string() : std::string(paragraph.substr(begin));
}

std::string command_text(std::string_view paragraph) {
  const std::string text = Formatted(after_command(paragraph)).plain();
  if (paragraph.starts_with("=head")) return text;
  if (!paragraph.starts_with("=item")) return {};
  return text.empty() || text == "*" ? "-" : text;
}

}  // namespace

std::string pod_to_text(std::string_view file) {
  std::string out, paragraph;
  bool inside = false, other_format = false;
  const auto end_paragraph = [&] {
    if (paragraph.empty()) return;
    if (is_command(paragraph)) {
      if (paragraph.starts_with("=begin")) other_format = true;
      if (paragraph.starts_with("=end")) other_format = false;
      if (const std::string text = command_text(paragraph); !text.empty() && !other_format) out += text + "\n\n";
    } else if (!other_format) {
      const bool verbatim = paragraph.front() == ' ' || paragraph.front() == '\t';
      out += verbatim ? paragraph : Formatted(paragraph).plain();
      out += "\n\n";
    }
    paragraph.clear();
  };
  while (!file.empty()) {
    std::string_view line = next_line(file);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_command(line)) {
      end_paragraph();
      inside = !line.starts_with("=cut");
    }
    if (!inside || line.find_first_not_of(" \t") == line.npos) {
      end_paragraph();
    } else {
      if (!paragraph.empty()) paragraph += '\n';
      paragraph.append(line);
    }
  }
  end_paragraph();
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string perl_code(std::string_view file) {
  std::string out;
  bool documentation = false;
  while (!file.empty()) {
    const std::string_view line = next_line(file);
    if (is_command(line)) {
      documentation = !line.starts_with("=cut");
    } else if (!documentation) {
      if (line.starts_with("__END__") || line.starts_with("__DATA__")) break;
      out.append(line) += '\n';
    }
  }
  return out;
}

}  // namespace saccade
