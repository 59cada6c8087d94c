#include <cmath>
#include <numbers>

#include "models/schedules/registry.h"

namespace saccade {
namespace {

const RegisterSchedule cosine{
    {.id = "cosine",
     .title = "cosine",
     .paper = "arXiv:1608.03983, section 3, without restarts",
     .course = [](const SchedulePoint& at, const nlohmann::json&) { return 0.5 * (1 + std::cos(std::numbers::pi * at.progress())); }}};

}  // namespace
}  // namespace saccade
