#include "models/corpus/local_sources.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "models/corpus/pod.h"
#include "models/corpus/roff.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

/// The name without .gz, which documentation often has.
std::string plain_name(const fs::path& path) { return path.extension() == ".gz" ? path.stem().string() : path.filename().string(); }

bool has_extension(const fs::path& path, std::initializer_list<std::string_view> extensions) {
  const std::string extension = fs::path(plain_name(path)).extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

bool contains(const fs::path& path, std::string_view part) { return path.string().find(part) != std::string::npos; }

/// English running text: mostly letters, and the function words that no English paragraph does without.
bool is_prose(const std::string& text) {
  static const std::set<std::string_view> function_words{"the", "of", "and", "to",  "a",  "in", "is",   "that", "for", "it",
                                                         "be",  "as", "or",  "are", "by", "if", "with", "this", "not", "on"};
  size_t letters = 0, words = 0, function = 0, begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    letters += letter || c == ' ';
    if (letter) continue;
    if (i > begin) {
      ++words;
      function += function_words.contains(std::string_view(text).substr(begin, i - begin));
    }
    begin = i + 1;
  }
  return words >= 30 && letters * 10 >= text.size() * 7 && function * 100 >= words * 15;
}

std::string only_prose(std::string text) { return is_prose(text) ? text : std::string(); }

/// Info files: menus and node headers between lines with a control character.
std::string info_text(const std::string& raw) {
  std::string text;
  bool header = false;
  for (size_t at = 0; at < raw.size();) {
    const size_t end = std::min(raw.find('\n', at), raw.size());
    const std::string_view line = std::string_view(raw).substr(at, end - at);
    if (line.starts_with('\x1f'))
      header = true;
    else if (header)
      header = false;
    else if (line.find_first_of(std::string_view("\0\b\x7f", 3)) == line.npos && !line.starts_with("* "))
      text.append(line) += '\n';
    at = end + 1;
  }
  return text;
}

/// In documentation these names are text for people; changelogs, lists and examples are not.
bool is_document(const fs::path& path) {
  static const std::set<std::string> names{"README", "NEWS", "FAQ", "HOWTO", "INTRO", "INSTALL", "HACKING", "TUTORIAL", "MANUAL", "GUIDE"};
  const std::string name = plain_name(path);
  const std::string first = name.substr(0, name.find_first_of(".-_"));
  return has_extension(path, {".txt", ".md", ".rst", ".text"}) || names.contains(first);
}

bool is_manual_page(const fs::path& path) {
  const std::string section = path.parent_path().filename().string();
  return section.size() == 4 && section.starts_with("man") && section[3] >= '1' && section[3] <= '8' &&
         path.parent_path().parent_path().filename() == "man";
}

std::string shell_script(const std::string& raw) {
  const std::string first = raw.substr(0, raw.find('\n'));
  const bool shell = first.starts_with("#!") && (first.find("/sh") != first.npos || first.find("bash") != first.npos);
  return shell ? raw : std::string();
}

std::string as_it_is(const std::string& raw) { return raw; }
bool any_name(const fs::path&) { return true; }

void add_prose(std::vector<LocalSource>& sources) {
  const auto prose = [&](std::vector<std::string> folders, auto accepts, auto convert, bool spare = false) {
    sources.push_back(
        {"prose", std::move(folders), accepts, [convert](const std::string& raw) { return only_prose(convert(raw)); }, spare});
  };
  prose({"usr/share/man"}, is_manual_page, roff_to_text);
  prose({"usr/share/doc", "usr/share/help/C"}, is_document, as_it_is);
  prose(
      {"usr/share/info"}, [](const fs::path& path) { return contains(path, ".info"); }, info_text);
  prose(
      {"usr/share/perl", "usr/share/perl5", "usr/lib"},
      [](const fs::path& path) { return has_extension(path, {".pod"}) || (has_extension(path, {".pm"}) && contains(path, "perl")); },
      pod_to_text);
  prose(
      {"usr/share/cmake/Help", "usr/share/cmake-3.25/Help"}, [](const fs::path& path) { return has_extension(path, {".rst"}); }, as_it_is);
  prose({"usr/share/common-licenses"}, any_name, as_it_is);
  prose(
      {"usr/share/doc"}, [](const fs::path& path) { return plain_name(path) == "copyright" || plain_name(path).starts_with("changelog"); },
      as_it_is, true);
}

void add_code(std::vector<LocalSource>& sources) {
  sources.push_back({"c",
                     {"usr/include"},
                     [](const fs::path& path) {
                       return has_extension(path, {".h", ".hh", ".hpp", ".hxx", ".inl", ""});
                     },
                     as_it_is});
  sources.push_back({"python",
                     {"usr/lib", "usr/share"},
                     [](const fs::path& path) { return has_extension(path, {".py"}) && !contains(path, "/encodings/"); },
                     as_it_is});
  sources.push_back({"cmake", {"usr/share", "usr/lib"}, [](const fs::path& path) { return has_extension(path, {".cmake"}); }, as_it_is});
  sources.push_back({"perl",
                     {"usr/share", "usr/lib"},
                     [](const fs::path& path) {
                       return has_extension(path, {".pm", ".pl"}) && !contains(path, "/unicore/");
                     },
                     perl_code});
  sources.push_back({"shell", {"usr/bin", "usr/sbin", "etc/init.d"}, any_name, shell_script});
  sources.push_back({"shell", {"usr/share", "usr/lib"}, [](const fs::path& path) { return has_extension(path, {".sh"}); }, as_it_is});
  sources.push_back({"shell",
                     {"var/lib/dpkg/info"},
                     [](const fs::path& path) {
                       return has_extension(path, {".postinst", ".prerm", ".postrm", ".preinst", ".config"});
                     },
                     shell_script});
}

}  // namespace

std::vector<LocalSource> local_sources() {
  std::vector<LocalSource> sources;
  add_prose(sources);
  add_code(sources);
  return sources;
}

std::string local_advice(const std::string& domain) {
  if (domain == "prose") return "install manpages, manpages-dev or perl-doc";
  if (domain == "c") return "install libc6-dev or any other development package";
  if (domain == "python") return "install python3";
  if (domain == "cmake") return "install cmake";
  if (domain == "perl") return "install perl";
  return "install bash-completion or git";
}

}  // namespace saccade
