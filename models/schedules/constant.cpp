#include "models/schedules/registry.h"

namespace saccade {
namespace {

const RegisterSchedule constant{
    {.id = "constant", .title = "constant", .paper = "", .course = [](const SchedulePoint&, const nlohmann::json&) { return 1.0; }}};

}  // namespace
}  // namespace saccade
