#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/runs/files.h"
#include "models/json.h"

namespace saccade {

/// Where the runs of a study are evaluated and scored for a report: in this process, one after the other, or side by side in processes of
/// their own, which end with this one.
struct StudyWorkers {
  std::vector<std::string> devices = {};  ///< of each process at a time, such as "cuda:0", "cuda:1"; "": what the run's config names

  bool side_by_side() const { return devices.size() > 1; }
  /// For what is done in this process; empty: what the run's config names.
  std::string device() const { return devices.empty() ? "" : devices.front(); }
};

/// An evaluation or a score that is to be made, and that keeps its own result.
struct StudyPiece {
  nlohmann::json request;   ///< what perform_piece() is told, but for the device
  std::string run;          ///< of the study; for messages
  std::string line;         ///< said when it is begun
  bool writes_run = false;  ///< it writes into the run: pieces of one run are then done one after the other, in their order
};

struct PiecesDone {
  int64_t made = 0;
  bool complete = true;                  ///< none was left for want of time
  std::map<size_t, std::string> failed;  ///< why, by the piece's place in the list
};

/// Does the pieces, one at a time on each of `workers`' devices, in processes of this program (`saccade study work STUDY`), which share the
/// cores. One that fails, or whose process ends, takes no other with it. What finds too little memory beside others is done again once it
/// has the device alone. After `seconds` no more are begun, but with `one` the first of each process. Throws Error where no process can be
/// started.
PiecesDone do_pieces(const std::filesystem::path& study, const std::vector<StudyPiece>& pieces, const StudyWorkers& workers,
                     const std::function<void(const std::string&)>& say, double seconds, bool one);

/// What such a process does: takes requests from its standard input, a socket, and answers there, until its parent has no more or ends.
void serve_pieces(const std::filesystem::path& study);

/// Makes what a request asks for and keeps it, unless it is there meanwhile. Throws Error.
void perform_piece(const std::filesystem::path& study, const nlohmann::json& request, const std::function<void(const std::string&)>& say);

/// Held while a result of a study is made: a second process that is to make the same one waits here, and then finds it.
class PieceClaim {
 public:
  /// `name`: of the result, without slashes.
  PieceClaim(const std::filesystem::path& study, const std::string& name);
  ~PieceClaim();
  /// Removes what a process has left that was killed behind its result.
  static void clear(const std::filesystem::path& study, const std::string& name);
  PieceClaim(const PieceClaim&) = delete;
  PieceClaim& operator=(const PieceClaim&) = delete;

 private:
  std::filesystem::path file_;
  std::optional<Descriptor> held_;
};

}  // namespace saccade
