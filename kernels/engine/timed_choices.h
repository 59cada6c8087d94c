#pragma once
#include <memory>
#include <optional>
#include <string>

namespace saccade {

/// What was found out by timing: which of several ways to the same result is the fastest here. Processes that come later need not time
/// again where somebody keeps it for them.
class TimedChoices {
 public:
  virtual ~TimedChoices() = default;
  /// What was kept under a name that says what was timed, on what and with which version of a library; nothing where nothing was.
  virtual std::optional<int> find(const std::string& name) = 0;
  virtual void keep(const std::string& name, int choice) = 0;
};

/// For this process, before it computes. Without one (null, the default) every process times for itself.
void set_timed_choices(std::shared_ptr<TimedChoices> choices);
TimedChoices* timed_choices();

}  // namespace saccade
