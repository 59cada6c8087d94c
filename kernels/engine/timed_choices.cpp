#include "kernels/engine/timed_choices.h"

#include <utility>

namespace saccade {
namespace {

std::shared_ptr<TimedChoices>& slot() {
  static std::shared_ptr<TimedChoices> choices;
  return choices;
}

}  // namespace

void set_timed_choices(std::shared_ptr<TimedChoices> choices) { slot() = std::move(choices); }
TimedChoices* timed_choices() { return slot().get(); }

}  // namespace saccade
