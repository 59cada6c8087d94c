#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/runs/files.h"

namespace saccade::h5 {

/// A process that reads one HDF5 file for this one: this program, started again with the file as it was opened. HDF5 never sees the bytes
/// of others in a process that has anything to lose. The helper may use kSeconds of CPU time and one more for every kBytesPerSecond of the
/// file, kMemory and what Budget allows, and can write no file. Its answers are messages of texts; numbers come as they lie in memory.
class Helper {
 public:
  static constexpr int64_t kSeconds = 5, kBytesPerSecond = 20'000'000, kMemory = int64_t{256} << 20;

  /// `file`: opened for reading; `name` is for messages. Throws DataError when the file is not one of HDF5, Error when no process can be
  /// started.
  Helper(const Descriptor& file, std::string name);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// The answer to a request, of which the group's path is the second word. Throws DataError with the helper's words, or with how the
  /// file ended it; Error when somebody else killed it, which says nothing of the file.
  std::vector<std::string> ask(const std::vector<std::string>& request);
  /// The same, for an answer of just so many bytes.
  void ask(const std::vector<std::string>& request, void* values, size_t bytes);

 private:
  std::vector<std::string> receive();
  int wait();
  void end();
  [[noreturn]] void tell_end();

  std::string name_;
  Descriptor socket_;
  pid_t process_ = -1;
};

}  // namespace saccade::h5
