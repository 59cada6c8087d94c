#include "models/schedules/registry.h"

namespace saccade {
namespace {

const RegisterSchedule linear{
    {.id = "linear", .title = "linear", .paper = "", .course = [](const SchedulePoint& at, const nlohmann::json&) {
       return 1 - at.progress();
     }}};

}  // namespace
}  // namespace saccade
