#pragma once
#include <filesystem>
#include <map>
#include <mutex>

#include "kernels/engine/timed_choices.h"

namespace saccade {

/// Choices in a file that all processes of a user share: a line each, "CRC choice name", the CRC-32C of the rest in eight hexadecimal
/// digits. A line is appended in one write; one that is damaged is as if it were not there, the last one of a name counts, and what
/// cannot be read or written costs the next process its timing, nothing else. The file grows to kMostBytes.
class KeptChoices : public TimedChoices {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  /// Nothing is read before the first `find`.
  explicit KeptChoices(std::filesystem::path file) : file_(std::move(file)) {}
  std::optional<int> find(const std::string& name) override;
  /// Names are of one line. Other ones are not kept.
  void keep(const std::string& name, int choice) override;

 private:
  void read();

  std::filesystem::path file_;
  std::mutex mutex_;
  bool read_ = false;
  std::map<std::string, int> known_;
};

}  // namespace saccade
