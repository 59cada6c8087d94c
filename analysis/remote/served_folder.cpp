#include "analysis/remote/served_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <regex>

#include "kernels/engine/error.h"
#include "models/json.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLongestPart = 255, kLongestName = 2000;

std::string quoted(const std::string& text) {
  return nlohmann::json(text.substr(0, 200)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::vector<std::string> name_parts(const std::string& name) {
  std::vector<std::string> parts;
  size_t begin = 0;
  const auto bad = [](const std::string& part) {
    return part.empty() || part == "." || part == ".." || part.size() > kLongestPart || part.find('\0') != std::string::npos;
  };
  while (begin <= name.size() && name.size() <= kLongestName) {
    const size_t end = std::min(name.find('/', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    if (bad(parts.back())) break;
    begin = end + 1;
  }
  if (parts.empty() || bad(parts.back())) throw UsageError(quoted(name) + " is no name below the served folder");
  return parts;
}

ServedFolder::ServedFolder(const fs::path& folder)
    : path_(fs::absolute(folder).lexically_normal()), folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_) throw_file_error("serve", path_);
}

Descriptor ServedFolder::walk(const std::string& name, int flags) const {
  const std::vector<std::string> parts = name_parts(name);
  Descriptor at(::fcntl(folder_.get(), F_DUPFD_CLOEXEC, 0));
  for (size_t i = 0; i < parts.size(); ++i) {
    const int how = i + 1 < parts.size() ? O_RDONLY | O_DIRECTORY : flags;
    at = Descriptor(::openat(at.get(), parts[i].c_str(), how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!at) throw_file_error("open", path_ / name);
  }
  return at;
}

Descriptor ServedFolder::open(const std::string& name) const {
  Descriptor file = walk(name, O_RDONLY);
  struct stat state {};
  if (::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) throw DataError((path_ / name).string() + " is no regular file");
  return file;
}

Descriptor ServedFolder::open_folder(const std::string& name) const { return walk(name, O_RDONLY | O_DIRECTORY); }

fs::path ServedFolder::folder(const std::string& name) const {
  static_cast<void>(open_folder(name));
  return path_ / name;
}

fs::path ServedFolder::new_entry(const std::string& name) const {
  static const std::regex kName("[A-Za-z0-9][A-Za-z0-9._+=,@-]{0,199}");
  if (!std::regex_match(name, kName))
    throw UsageError(quoted(name) + " cannot be the name of a run or study on a host; expected letters, digits, dots and dashes");
  std::error_code none;
  if (fs::is_symlink(path_ / name, none)) throw DataError((path_ / name).string() + " is a link");
  return path_ / name;
}

}  // namespace saccade
