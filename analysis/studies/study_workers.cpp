#include "analysis/studies/study_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "analysis/studies/queue.h"
#include "analysis/studies/study_evaluations.h"
#include "analysis/studies/study_scores.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"
#include "models/config_text.h"

extern char** environ;

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Say = std::function<void(const std::string&)>;

namespace {

constexpr size_t kMostBytes = size_t{1} << 16;  ///< of a message

/// A message is one packet of the socket. Whether the other side is there.
bool send_message(int socket, const Json& message) {
  std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  while (true) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent >= 0 || errno != EINTR) return sent >= 0;
  }
}

/// Nothing where the other side has ended.
std::optional<Json> receive_message(int socket) {
  std::string text(kMostBytes, '\0');
  ssize_t got = 0;
  do got = ::recv(socket, text.data(), text.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return {};
  text.resize(static_cast<size_t>(got));
  return parse_json_or_discard(text);
}

/// This environment, with so many threads of the CPU.
std::vector<std::string> environment_with(int threads) {
  std::vector<std::string> all{"SACCADE_THREADS=" + std::to_string(threads)};
  for (char** at = environ; *at != nullptr; ++at)
    if (!std::string_view(*at).starts_with("SACCADE_THREADS=")) all.emplace_back(*at);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// A process that does one piece after the other.
class Worker {
 public:
  Worker(const fs::path& study, int threads) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw Error(std::string("cannot make a socket: ") + std::strerror(errno));
    socket_ = Descriptor(ends[0]);
    const Descriptor its(ends[1]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, its.get(), STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<std::string> words{"saccade", "-q", "study", "work", study.string()}, environment = environment_with(threads);
    // The program as it runs now, also where its file has been replaced since.
    const int failed =
        ::posix_spawn(&process_, "/proc/self/exe", &files, nullptr, pointers_to(words).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw Error(std::string("cannot start a process that evaluates: ") + std::strerror(failed));
  }
  ~Worker() {
    if (process_ <= 0) return;
    if (busy_) ::kill(process_, SIGKILL);  // an error ends this command; what is half done goes on from there
    socket_ = Descriptor();
    ::waitpid(process_, nullptr, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int socket() const { return socket_.get(); }
  void tell(const Json& request) { busy_ = true, send_message(socket_.get(), request); }
  /// Nothing where it has ended.
  std::optional<Json> hear() {
    std::optional<Json> answer = receive_message(socket_.get());
    if (answer && !answer->contains("say")) busy_ = false;
    return answer;
  }
  /// How it ended, once it has.
  std::string end() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    if (!WIFSIGNALED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
  }

 private:
  Descriptor socket_;
  pid_t process_ = -1;
  bool busy_ = false;
};

class Crew {
 public:
  Crew(const fs::path& study, const std::vector<StudyPiece>& pieces, const Say& say) : study_(study), pieces_(pieces), say_(say) {
    for (size_t i = 0; i < pieces.size(); ++i) waiting_.push_back(i);
  }

  PiecesDone work(const StudyWorkers& workers, double seconds, bool one) {
    const double until = now() + seconds;
    const size_t most = std::min(workers.devices.size(), pieces_.size());
    for (size_t i = 0; i < most; ++i) slots_.push_back({workers.devices[i], {}, {}});
    for (bool begun = false;; begun = true) {
      if (now() <= until || (one && !begun)) begin_what_can();
      if (std::none_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.piece.has_value(); })) break;
      hear();
    }
    done_.complete = waiting_.empty();
    return std::move(done_);
  }

 private:
  struct Slot {
    std::string device;
    std::unique_ptr<Worker> worker;
    std::optional<size_t> piece;  ///< at work
  };

  bool may_begin(size_t piece, const Slot& slot) const {
    return std::none_of(slots_.begin(), slots_.end(), [&](const Slot& other) {
      if (!other.piece) return false;
      const StudyPiece &mine = pieces_[piece], &its = pieces_[*other.piece];
      const bool one_run = mine.run == its.run && mine.writes_run && its.writes_run;
      return one_run || (other.device == slot.device && (is_alone(piece) || is_alone(*other.piece)));
    });
  }

  bool is_alone(size_t piece) const { return std::find(alone_.begin(), alone_.end(), piece) != alone_.end(); }

  void begin_what_can() {
    const int threads = std::max(1, thread_count() / static_cast<int>(slots_.size()));
    for (Slot& slot : slots_) {
      if (slot.piece) continue;
      const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](size_t piece) { return may_begin(piece, slot); });
      if (next == waiting_.end()) continue;
      if (!slot.worker) slot.worker = std::make_unique<Worker>(study_, threads);
      slot.piece = *next;
      waiting_.erase(next);
      if (say_) say_(pieces_[*slot.piece].line);
      Json request = pieces_[*slot.piece].request;
      request["device"] = slot.device;
      slot.worker->tell(request);
    }
  }

  /// Waits until one of them says something.
  void hear() {
    std::vector<pollfd> sockets;
    for (const Slot& slot : slots_) sockets.push_back({slot.piece ? slot.worker->socket() : -1, POLLIN, 0});
    if (::poll(sockets.data(), sockets.size(), -1) < 0 && errno != EINTR) throw Error(std::string("cannot wait: ") + std::strerror(errno));
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].piece && sockets[i].revents != 0) hear(slots_[i]);
  }

  void hear(Slot& slot) {
    const std::optional<Json> answer = slot.worker->hear();
    if (answer && answer->contains("say")) {
      if (say_) say_(answer->at("say"));
      return;
    }
    const size_t piece = *slot.piece;
    const bool beside = std::any_of(slots_.begin(), slots_.end(),
                                    [&](const Slot& other) { return &other != &slot && other.piece && other.device == slot.device; });
    slot.piece.reset();
    if (!answer) {
      done_.failed[piece] = "runs/" + pieces_[piece].run + ": the process at work on it ended with " + slot.worker->end();
      slot.worker.reset();
    } else if (!answer->contains("error")) {
      ++done_.made;
    } else if (answer->value("memory", false) && beside && !is_alone(piece)) {
      alone_.push_back(piece), waiting_.push_back(piece);
    } else {
      done_.failed[piece] = answer->at("error");
    }
  }

  const fs::path& study_;
  const std::vector<StudyPiece>& pieces_;
  const Say& say_;
  std::vector<Slot> slots_;
  std::vector<size_t> waiting_, alone_;  ///< alone: on their device
  PiecesDone done_;
};

}  // namespace

PiecesDone do_pieces(const fs::path& study, const std::vector<StudyPiece>& pieces, const StudyWorkers& workers, const Say& say,
                     double seconds, bool one) {
  return Crew(study, pieces, say).work(workers, seconds, one);
}

void serve_pieces(const fs::path& study) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // what is half done is as after a crash of this machine, which every file here is written for
  pollfd parent{STDIN_FILENO, POLLIN, 0};
  while (::poll(&parent, 1, -1) >= 0 || errno == EINTR) {
    if ((parent.revents & POLLHUP) != 0) return;
    const std::optional<Json> request = receive_message(STDIN_FILENO);
    if (!request) return;
    Json answer = {{"done", true}};
    try {
      perform_piece(study, *request, [](const std::string& line) { send_message(STDIN_FILENO, {{"say", line}}); });
    } catch (const DeviceError& error) {
      answer = {{"error", error.what()}, {"memory", true}};
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    if (!send_message(STDIN_FILENO, answer)) return;
  }
}

void perform_piece(const fs::path& study, const Json& request, const Say& say) {
  if (request.at("kind") == "score") return make_score(study, request, say);
  make_evaluation(study, request);
}

namespace {

fs::path claim_file(const fs::path& study, const std::string& name) { return study / "logs" / (name + ".claim"); }

}  // namespace

PieceClaim::PieceClaim(const fs::path& study, const std::string& name) : file_(claim_file(study, name)) {
  if (::access(study.c_str(), W_OK) != 0)
    throw DataError(
        study.string() + " cannot be written (" + std::strerror(errno) +
        "), so that what is evaluated could not be kept there; saccade study report --recorded --out FOLDER shows what is there");
  make_run_folder(file_.parent_path());
  while (!(held_ = claim_log(file_))) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

PieceClaim::~PieceClaim() { remove_run_file(file_); }

void PieceClaim::clear(const fs::path& study, const std::string& name) try {
  const fs::path file = claim_file(study, name);
  if (!fs::exists(file)) return;
  if (const std::optional<Descriptor> mine = claim_log(file)) remove_run_file(file);
} catch (const std::exception&) {  // it harms nobody
}

}  // namespace saccade
