#include "models/corpus/roff.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

namespace saccade {
namespace {

const std::map<std::string_view, std::string_view>& special_characters() {
  static const std::map<std::string_view, std::string_view> table{
      {"aq", "'"}, {"dq", "\""}, {"lq", "“"}, {"rq", "”"}, {"oq", "‘"},  {"cq", "’"}, {"em", "—"}, {"en", "–"}, {"hy", "-"},
      {"bu", "•"}, {"co", "©"},  {"rg", "®"}, {"tm", "™"}, {"+-", "±"},  {"mu", "×"}, {"->", "→"}, {"<-", "←"}, {"<=", "≤"},
      {">=", "≥"}, {"!=", "≠"},  {"ha", "^"}, {"ti", "~"}, {"rs", "\\"}, {"ga", "`"}, {"ba", "|"}, {"or", "|"}, {"sl", "/"},
      {"at", "@"}, {"sh", "#"},  {"Do", "$"}, {"de", "°"}, {"mc", "µ"},  {"la", "⟨"}, {"ra", "⟩"}, {"lB", "["}, {"rB", "]"},
      {"lC", "{"}, {"rC", "}"},  {":u", "ü"}, {":o", "ö"}, {":a", "ä"},  {"'e", "é"}, {"`e", "è"}, {"'a", "á"}, {"/o", "ø"},
      {"ss", "ß"}, {"Fo", "«"},  {"Fc", "»"}, {"12", "½"}, {"*a", "α"},  {"*b", "β"}, {"*m", "μ"}, {"*p", "π"}};
  return table;
}

/// Predefined strings: \*(lq, \*R …
std::string_view string_value(std::string_view name) {
  if (name == "lq" || name == "Lq") return "“";
  if (name == "rq" || name == "Rq") return "”";
  if (name == "Aq" || name == "aq") return "'";
  if (name == "R") return "®";
  if (name == "Tm") return "™";
  if (name == "L\"") return "“";
  if (name == "R\"") return "”";
  return {};
}

/// Turns escapes of one line into text.
class Escapes {
 public:
  explicit Escapes(std::string_view line) : line_(line) {}

  std::string text() {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '\\' && at_ < line_.size())
        escape(line_[at_++]);
      else
        out_ += c;
    }
    return std::move(out_);
  }

 private:
  void escape(char kind) {
    switch (kind) {
      case '"':
      case '#': at_ = line_.size(); break;  // comment
      case 'f':
      case 'F':
      case 'm':
      case 'M':
      case 'n':
      case 'k':
      case 'g': name(); break;
      case 's': size(); break;
      case '*': out_ += string_value(name()); break;
      case '(': character(take(2)); break;
      case '[': --at_, character(name()); break;
      case 'C': character(quoted()); break;
      case 'N':
      case 'w':
      case 'h':
      case 'v':
      case 'l':
      case 'L':
      case 'D':
      case 'b':
      case 'o':
      case 'R':
      case 'S':
      case 'X':
      case 'Z':
      case 'A':
      case 'B':
      case 'x': quoted(); break;
      case 'e':
      case 'E': out_ += '\\'; break;
      case 't': out_ += '\t'; break;
      case ' ':
      case '~':
      case '0': out_ += ' '; break;
      case '&':
      case '|':
      case '^':
      case '%':
      case '/':
      case ',':
      case ')':
      case ':':
      case '{':
      case '}':
      case 'c':
      case 'd':
      case 'u':
      case 'z':
      case 'p':
      case 'a':
      case 'r': break;               // motions and break hints
      default: out_ += kind; break;  // \- \. \' \\ stand for themselves
    }
  }

  std::string_view take(size_t count) {
    const std::string_view taken = line_.substr(at_, count);
    at_ += taken.size();
    return taken;
  }

  /// X, (XX or [name], optionally signed.
  std::string_view name() {
    if (at_ < line_.size() && (line_[at_] == '+' || line_[at_] == '-')) ++at_;
    if (at_ >= line_.size()) return {};
    if (line_[at_] == '(') return ++at_, take(2);
    if (line_[at_] != '[') return take(1);
    const size_t end = line_.find(']', ++at_);
    const std::string_view inside = take((end == line_.npos ? line_.size() : end) - at_);
    take(1);
    return inside;
  }

  void size() {
    if (at_ < line_.size() && (line_[at_] == '(' || line_[at_] == '[' || line_[at_] == '\'')) {
      line_[at_] == '\'' ? quoted() : name();
      return;
    }
    if (at_ < line_.size() && (line_[at_] == '+' || line_[at_] == '-')) ++at_;
    take(1);
  }

  std::string_view quoted() {
    if (at_ >= line_.size()) return {};
    const char quote = line_[at_++];
    const size_t end = line_.find(quote, at_);
    const std::string_view inside = take((end == line_.npos ? line_.size() : end) - at_);
    take(1);
    return inside;
  }

  void character(std::string_view glyph) {
    const auto& table = special_characters();
    if (const auto found = table.find(glyph); found != table.end()) out_ += found->second;
    if (glyph.size() > 4 && glyph[0] == 'u') append_code_point(glyph.substr(1));
  }

  void append_code_point(std::string_view digits) {
    unsigned code = 0;
    for (char c : digits) {
      if (!std::isxdigit(static_cast<unsigned char>(c))) return;
      code = code * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    if (code < 0x80)
      out_ += static_cast<char>(code);
    else if (code < 0x800)
      out_ += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    else if (code < 0xD800 || (code > 0xDFFF && code < 0x10000))
      out_ += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
  }

  std::string_view line_;
  std::string out_;
  size_t at_ = 0;
};

/// Arguments of a macro: words, or "several words" with "" for a quote.
std::vector<std::string> arguments(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    std::string word;
    if (line[at] == '"') {
      for (++at; at < line.size(); ++at) {
        if (line[at] == '"' && (at + 1 >= line.size() || line[at + 1] != '"')) break;
        if (line[at] == '"') ++at;
        word += line[at];
      }
      ++at;
    } else {
      for (; at < line.size() && line[at] != ' ' && line[at] != '\t'; ++at) {
        word += line[at];
        if (line[at] == '\\' && at + 1 < line.size()) word += line[++at];
      }
    }
    words.push_back(Escapes(word).text());
  }
  return words;
}

std::string joined(const std::vector<std::string>& words, size_t from, std::string_view between) {
  std::string text;
  for (size_t i = from; i < words.size(); ++i) {
    if (i > from) text += between;
    text += words[i];
  }
  return text;
}

bool is_punctuation(std::string_view word) {
  return word.size() == 1 && std::string_view(".,:;)]?!").find(word[0]) != std::string_view::npos;
}

/// mdoc(7): words in a line, where some are macros that mark the words after them.
class MdocLine {
 public:
  explicit MdocLine(std::string& name) : name_(name) {}

  std::string text(const std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); ++i) i = word(words, i);
    for (; !closers_.empty(); closers_.pop_back()) out_ += closers_.back();
    return std::move(out_);
  }

 private:
  struct Enclosure {
    std::string_view open, close;
  };

  static const Enclosure* enclosure(std::string_view macro) {
    static const std::map<std::string_view, Enclosure> table{
        {"Op", {"[", "]"}}, {"Oo", {"[", ""}},  {"Oc", {"]", ""}},  {"Dq", {"“", "”"}},  {"Sq", {"‘", "’"}}, {"Qq", {"\"", "\""}},
        {"Ql", {"‘", "’"}}, {"Pq", {"(", ")"}}, {"Bq", {"[", "]"}}, {"Brq", {"{", "}"}}, {"Aq", {"<", ">"}}};
    const auto found = table.find(macro);
    return found == table.end() ? nullptr : &found->second;
  }

  size_t word(const std::vector<std::string>& words, size_t i) {
    static const std::set<std::string_view> silent{"Ar", "Cm", "Ic", "Li", "Em", "Sy", "Pa", "Va", "Vt", "Fa",
                                                   "Ft", "Ev", "Er", "No", "Tn", "Ad", "An", "Dv", "Lk", "Mt",
                                                   "Ux", "Bx", "At", "St", "Lb", "Ms", "Rv", "Ec", "Xo", "Xc"};
    const std::string& w = words[i];
    if (const Enclosure* marks = enclosure(w)) {
      if (w == "Oc") glue_ = true;
      put(marks->open);
      glue_ = w != "Oc";
      if (!marks->close.empty()) closers_.emplace_back(marks->close);
    } else if (w == "Nm" || w == "Ns" || w == "Ap" || w == "Fl") {
      return marked(words, i);
    } else if ((w == "Xr" || w == "Fn") && i + 1 < words.size()) {
      return reference(words, i);
    } else if (!silent.contains(w)) {
      if (is_punctuation(w)) glue_ = true;
      put(w);
    }
    return i;
  }

  size_t marked(const std::vector<std::string>& words, size_t i) {
    const bool last = i + 1 >= words.size();
    if (words[i] == "Ns") {
      glue_ = true;
    } else if (words[i] == "Ap") {
      glue_ = true;
      put("'");
      glue_ = true;
    } else if (words[i] == "Fl") {
      put("-");
      glue_ = true;
    } else if (last || is_punctuation(words[i + 1]) || enclosure(words[i + 1])) {
      put(name_);
    } else if (name_.empty()) {
      name_ = words[i + 1];
    }
    return i;
  }

  size_t reference(const std::vector<std::string>& words, size_t i) {
    put(words[i + 1]);
    const bool section = words[i] == "Xr" && i + 2 < words.size() && !is_punctuation(words[i + 2]);
    out_ += words[i] == "Fn" ? "()" : section ? "(" + words[i + 2] + ")" : "";
    return i + (section ? 2 : 1);
  }

  void put(std::string_view text) {
    if (!out_.empty() && !glue_) out_ += ' ';
    out_ += text;
    glue_ = false;
  }

  std::string& name_;
  std::string out_;
  std::vector<std::string> closers_;
  bool glue_ = false;
};

/// Reads the page line by line and fills paragraphs.
class Page {
 public:
  void line(std::string_view line) {
    if (skip_until_ != "") {
      if (line.starts_with(skip_until_)) skip_until_.clear();
      return;
    }
    if (line.starts_with('.') || line.starts_with('\'')) return control(line.substr(1));
    if (line.empty()) return filled_ ? paragraph() : verbatim("");
    const std::string text = Escapes(line).text();
    if (!filled_ || line.front() == ' ') return verbatim(text);
    add(text);
  }

  std::string finish() {
    paragraph();
    while (out_.ends_with('\n')) out_.pop_back();
    if (!out_.empty()) out_ += '\n';
    return std::move(out_);
  }

 private:
  void control(std::string_view line) {
    while (line.starts_with(' ')) line.remove_prefix(1);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string macro(line.substr(0, end));
    const std::string_view rest = line.substr(end);
    if (macro.empty() || macro.starts_with("\\\"")) return;
    if (macro == "de" || macro == "am" || macro == "ig") return void(skip_until_ = "..");
    if (macro == "TS") return void(skip_until_ = ".TE");
    if (macro == "EQ") return void(skip_until_ = ".EN");
    if (macro == "if" || macro == "ie" || macro == "el" || macro == "while") return conditional(rest);
    block(macro, rest);
  }

  /// Only what is not conditional on typesetting is text; a block { … } is skipped.
  void conditional(std::string_view rest) {
    if (rest.find("\\{") != rest.npos && rest.find("\\}") == rest.npos) skip_until_ = ".\\}";
  }

  void block(const std::string& macro, std::string_view rest) {
    static const std::set<std::string> breaks{"PP", "P", "LP", "Pp", "sp", "br", "RS", "RE", "El", "Bl", "HP", "Ed"};
    static const std::set<std::string> ignored{"TH",  "Dd", "Dt", "Os", "ds", "nr", "so", "ad",  "na", "hy", "nh",  "ft", "in",
                                               "ti",  "ta", "ne", "ll", "tr", "rm", "rr", "als", "do", "ce", "mso", "PD", "DT",
                                               "AT",  "UC", "IX", "bp", "cc", "ec", "eo", "fam", "ps", "vs", "pl",  "po", "lf",
                                               "nop", "rn", "tm", "ex", "Bk", "Ek", "Rs", "Re",  "..", "\\}"};
    if (ignored.contains(macro)) return;
    if (macro == "SH" || macro == "SS" || macro == "Sh" || macro == "Ss") return heading(joined(arguments(rest), 0, " "));
    if (macro == "nf" || macro == "EX" || macro == "Bd" || macro == "Vb") return set_filled(false);
    if (macro == "fi" || macro == "EE" || macro == "Ve") return set_filled(true);
    if (macro == "Ed") set_filled(true);
    if (macro == "TP" || macro == "TQ") return item("");
    if (macro == "IP" || macro == "It") return item(macro == "IP" ? first(arguments(rest)) : MdocLine(name_).text(arguments(rest)));
    if (breaks.contains(macro)) return paragraph();
    inline_macro(macro, arguments(rest));
  }

  void inline_macro(const std::string& macro, std::vector<std::string> words) {
    static const std::set<std::string> alternating{"BR", "RB", "IR", "RI", "BI", "IB"};
    static const std::set<std::string> plain{"B", "I", "R", "SM", "SB", "UR", "MT", "UE", "ME", "SY", "YS", "OP"};
    std::string text;
    if (alternating.contains(macro))
      text = joined(words, 0, "");
    else if (plain.contains(macro))
      text = joined(words, 0, " ");
    else if (macro == "Nd")
      text = "– " + joined(words, 0, " ");
    else if (macro.size() <= 3 && macro[0] >= 'A' && macro[0] <= 'Z') {
      words.insert(words.begin(), macro);
      text = MdocLine(name_).text(words);
      if (macro == "Nm" && words.size() > 1) text = name_.empty() ? text : name_;
      if (macro == "Dl" || macro == "D1") text.erase(0, macro.size() + 1);
    }
    if (text.empty()) return;
    filled_ ? add(text) : verbatim(text);
  }

  static std::string first(const std::vector<std::string>& words) { return words.empty() ? std::string() : words.front(); }

  void heading(const std::string& text) {
    set_filled(true);
    open_paragraph();
    if (!text.empty()) out_ += text + "\n\n";
  }

  /// A blank line between what stands as it is and what follows.
  void open_paragraph() {
    if (filled_ && !out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
  }

  void item(const std::string& label) {
    paragraph();
    if (label == "•" || label == "*" || label == "o" || label == "-" || label == "\\(bu")
      add("-");
    else if (!label.empty())
      add(label + ":");
  }

  void set_filled(bool filled) {
    paragraph();
    filled_ = filled;
  }

  void add(const std::string& text) {
    if (paragraph_.empty())
      open_paragraph();
    else
      paragraph_ += ' ';
    paragraph_ += text;
  }

  void verbatim(const std::string& text) {
    paragraph();
    out_ += text + "\n";
  }

  void paragraph() {
    if (!paragraph_.empty()) out_ += paragraph_ + (filled_ ? "\n\n" : "\n");
    paragraph_.clear();
  }

  std::string out_, paragraph_, skip_until_, name_;
  bool filled_ = true;
};

}  // namespace

std::string roff_to_text(std::string_view page) {
  Page out;
  while (!page.empty()) {
    const size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.line(line);
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  return out.finish();
}

}  // namespace saccade
