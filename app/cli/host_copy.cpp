#include "app/cli/host_copy.h"

#include <fcntl.h>

#include <sstream>

#include "analysis/remote/channel.h"
#include "analysis/remote/file_pieces.h"
#include "analysis/runs/files.h"
#include "analysis/slurm/program_call.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/this_program.h"
#include "models/corpus/corpus.h"

namespace saccade::cli {
namespace fs = std::filesystem;

namespace {

constexpr const char* kFolder = "~/.local/share/saccade/bundles";
constexpr double kBrief = 60, kLong = 3600;

/// This program's own, as packaging/bundle makes it: BUNDLE/bin/saccade beside BUNDLE/run.
fs::path own_bundle() {
  const fs::path folder = this_program().parent_path().parent_path();
  std::error_code none;
  if (!fs::exists(folder / "run", none) || !fs::exists(folder / "glibc", none))
    throw UsageError(
        "this program is not of a bundle; make one with packaging/bundle BUILD saccade.tar.gz and name it: saccade host copy NAME "
        "saccade.tar.gz");
  return folder;
}

std::string checked(const ProgramAnswer& answer, const std::string& what) {
  if (answer.timed_out) throw Error(what + ": no answer in time");
  if (!answer.ok()) throw DataError(what + ": " + answer.last_line());
  return answer.out;
}

/// One file to send: a folder is packed in the cache.
fs::path packed(const fs::path& bundle) {
  std::error_code none;
  if (!fs::exists(bundle, none)) throw DataError(bundle.string() + ": there is no such bundle");
  if (!fs::is_directory(bundle, none)) return bundle;
  const fs::path file = cache_folder() / "bundle.tar.gz", folder = fs::absolute(bundle).lexically_normal();
  make_folders_above(file);
  const fs::path plain = folder.has_filename() ? folder : folder.parent_path();
  checked(call_program({"tar", "-czf", file.string(), "-C", plain.parent_path().string(), plain.filename().string()}, kLong), "packing");
  return file;
}

std::pair<int, int> version_in(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  int major = 0, minor = 0;
  while (words >> word)
    if (std::sscanf(word.c_str(), "%d.%d", &major, &minor) == 2) break;
  return {major, minor};
}

std::string shown(const std::pair<int, int>& version) { return std::to_string(version.first) + "." + std::to_string(version.second); }

}  // namespace

int copy_to_host(const std::string& host, const fs::path& bundle) {
  HostProfile profile = load_host(host);
  const fs::path file = packed(bundle.empty() ? own_bundle() : bundle);
  const std::pair<int, int> oldest =
      version_in(checked(call_program({"tar", "-xzOf", file.string(), "--wildcards", "*/glibc"}, kBrief), file.string() + " is no bundle"));
  const std::pair<int, int> there = version_in(checked(call_program(ssh_command(profile, "getconf GNU_LIBC_VERSION"), kBrief), host));
  say("the bundle needs glibc " + shown(oldest) + " or newer; " + host + " has " + shown(there));
  if (there < oldest)
    throw DataError("the bundle needs glibc " + shown(oldest) + ", and " + host + " has " + shown(there) +
                    "; make the bundle on an older system");

  const std::string name = whole_hash(open_run_file(file, O_RDONLY)).substr(0, 12), folder = shell_path(kFolder);
  // Aside, then renamed, so that a copy that was cut off is none; what is there already is not sent again.
  const std::string receive = "set -e; mkdir -p " + folder + "; cd " + folder + "; if [ ! -d " + name + " ]; then rm -rf " + name +
                              ".new; mkdir " + name + ".new; tar -xzf - -C " + name + ".new --strip-components=1; mv " + name + ".new " +
                              name + "; fi; ln -sfn " + name + " current; current/run saccade --version | head -n 1";
  std::vector<std::string> words{"sh", "-c", "file=$1; shift; exec \"$@\" < \"$file\"", "sh", file.string()};
  for (const std::string& word : ssh_command(profile, receive)) words.push_back(word);
  std::error_code none;
  say("sending " + human_bytes(static_cast<double>(fs::file_size(file, none))) + " …");
  std::string version = checked(call_program(words, kLong), host);
  while (!version.empty() && version.back() == '\n') version.pop_back();

  profile.program = std::string(kFolder) + "/current/run saccade";
  save_host(host, host_schema().write(profile), true);
  print_result({{"name", host}, {"version", version}, {"glibc", shown(oldest)}, {"program", profile.program}},
               host + " has " + version + " (glibc " + shown(oldest) + " or newer), started as " + profile.program);
  return 0;
}

}  // namespace saccade::cli
