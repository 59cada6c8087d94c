#include "app/cli/render.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"

extern char** environ;

namespace saccade::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWorkbench = "saccade-workbench";

/// Runs a program with an environment of ours plus `extra`; returns its exit status, its stderr in `errors`.
int run_program(const std::vector<std::string>& arguments, const std::string& extra, std::string& errors) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw Error("cannot start " + arguments.front());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  std::vector<char*> argv, environment;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  for (char** e = environ; *e; ++e)
    if (std::string(*e).rfind("QT_QPA_PLATFORM=", 0) != 0) environment.push_back(*e);
  environment.push_back(const_cast<char*>(extra.c_str()));
  environment.push_back(nullptr);
  pid_t child = 0;
  const int started = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  char buffer[512];
  for (ssize_t n; started == 0 && (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) errors.append(buffer, static_cast<size_t>(n));
  close(pipe_ends[0]);
  if (started != 0) throw Error("cannot start " + arguments.front());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

fs::path find_workbench() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error && fs::exists(self.parent_path() / kWorkbench)) return self.parent_path() / kWorkbench;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / kWorkbench)) return fs::path(folder) / kWorkbench;
  return {};
}

void write_text(const fs::path& out, const std::string& text) {
  if (!out.has_filename() || fs::is_directory(out)) throw DataError("cannot write " + out.string() + ": it is a folder");
  replace_text(fs::absolute(out), text, 0666);
}

void require_figure_format(const fs::path& out) {
  const std::string suffix = out.extension();
  if (suffix == ".csv" || suffix == ".json") return;
  if (suffix != ".pdf" && suffix != ".svg" && suffix != ".png")
    throw UsageError("--out " + out.string() + ": expected a name that ends in .pdf, .svg, .png, .csv or .json");
  if (find_workbench().empty())
    throw Error("pictures are drawn by saccade-workbench, which is not installed; write .csv or .json instead, or install the workbench");
}

namespace {

/// Has the workbench draw what `json` says.
void draw(const std::string& json, const fs::path& out) {
  const fs::path workbench = find_workbench();
  if (workbench.empty()) throw Error("pictures are drawn by saccade-workbench, which is not installed");
  const Descriptor recipe(memfd_create("figure.json", 0));  // the workbench inherits it; nothing is left if this is killed
  if (!recipe || !write_all(recipe.get(), json))
    throw Error("cannot keep the figure for " + workbench.string() + ": " + std::strerror(errno));
  std::string errors;
  const int status =
      run_program({workbench.string(), "--render", "/proc/self/fd/" + std::to_string(recipe.get()), "--out", fs::absolute(out).string()},
                  "QT_QPA_PLATFORM=offscreen", errors);
  if (status == 0) return;
  while (!errors.empty() && errors.back() == '\n') errors.pop_back();
  if (const size_t line = errors.rfind('\n'); line != std::string::npos) errors = errors.substr(line + 1);
  throw DataError(errors.empty() ? out.string() + ": the workbench could not draw it (exit code " + std::to_string(status) + ")" : errors);
}

std::string text_of(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void write_figure(const Figure& figure, const fs::path& out) {
  require_figure_format(out);
  const std::string suffix = out.extension();
  if (suffix == ".csv") return write_text(out, to_csv(figure));
  if (suffix == ".json") return write_text(out, text_of(to_json(figure), 1));
  draw(text_of(to_json(figure), -1), out);
}

void write_page(const FigurePage& page, const fs::path& out) {
  const std::string suffix = out.extension();
  if (suffix == ".tex") {
    FigurePage named = page;
    named.id = out.stem().string();  // the picture that it includes stands beside it under the same name
    return write_text(out, to_latex(named));
  }
  require_figure_format(out);
  if (suffix == ".csv") return write_text(out, to_csv(page));
  if (suffix == ".json") return write_text(out, text_of(to_json(page), 1));
  draw(text_of(to_json(page), -1), out);
}

}  // namespace saccade::cli
