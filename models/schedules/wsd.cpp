#include "models/schedules/wsd.h"

#include <cmath>
#include <numbers>

#include "models/schedules/registry.h"

namespace saccade {

namespace {
constexpr const char* kSource = "arXiv:2405.18392, section 3";
}

const Schema<WsdSettings> wsd_schema{
    field("cooldown_share", &WsdSettings::cooldown_share, {0, 1}, "Share of all steps that the cooldown at the end takes.", kSource),
    field("cooldown_steps", &WsdSettings::cooldown_steps, {0, 1e9}, "Steps of the cooldown, 0: as cooldown_share says."),
    choice_field("cooldown_form", &WsdSettings::cooldown_form, {"1-sqrt", "linear", "cosine"},
                 "How the learning rate falls in the cooldown, to min_lr_ratio of its peak.", kSource),
    repetition(list_field("cooldown_at", &WsdSettings::cooldown_at, {0, 1e9},
                          "Steps (below 1: shares of all steps) behind which a branch cools down, as a run of its own in branches/step-N.",
                          kSource)),
    repetition(
        list_field("cooldown_at_loss", &WsdSettings::cooldown_at_loss, {0, 1000},
                   "Validation losses (nats per token, mean of the training domains): behind the first evaluation at a constant rate "
                   "that is no higher, a branch cools down likewise.",
                   kSource)),
};

int64_t WsdSettings::cooldown(int64_t steps) const {
  return cooldown_steps > 0 ? cooldown_steps : std::llround(cooldown_share * static_cast<double>(steps));
}

int64_t WsdSettings::branch_cooldown(int64_t step) const {
  if (cooldown_steps > 0) return cooldown_steps;
  return cooldown_share < 1 ? std::llround(cooldown_share * static_cast<double>(step) / (1 - cooldown_share)) : 0;
}

namespace {

double course(const SchedulePoint& at, const nlohmann::json& values) {
  const WsdSettings s = wsd_schema.read(values, "/training");
  const int64_t cooldown = s.cooldown(at.steps), into = at.step - (at.steps - cooldown);
  if (into <= 0) return 1;
  const double x = static_cast<double>(into) / static_cast<double>(cooldown);
  if (s.cooldown_form == "1-sqrt") return 1 - std::sqrt(x);
  return s.cooldown_form == "linear" ? 1 - x : 0.5 * (1 + std::cos(std::numbers::pi * x));
}

void check(const SchedulePoint& last, const nlohmann::json& values, const std::string& pointer) {
  const int64_t cooldown = wsd_schema.read(values, pointer).cooldown(last.steps);
  if (last.warmup_steps + cooldown > last.steps)
    throw UsageError(pointer + ": warm-up and cooldown take " + std::to_string(last.warmup_steps + cooldown) + " steps; expected at most " +
                     pointer + "/steps, " + std::to_string(last.steps));
}

const RegisterSchedule wsd{{.id = "wsd",
                            .title = "warm-up, stable, cooldown",
                            .paper = kSource,
                            .settings = wsd_schema.settings(),
                            .defaults = {{"min_lr_ratio", 0.0}},
                            .course = course,
                            .check = check}};

}  // namespace
}  // namespace saccade
