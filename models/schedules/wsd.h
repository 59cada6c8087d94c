#pragma once
#include "models/settings.h"

namespace saccade {

/// Warm-up, stable, cooldown.
struct WsdSettings {
  double cooldown_share = 0.2;
  int64_t cooldown_steps = 0;
  std::string cooldown_form = "1-sqrt";

  /// Steps of the cooldown of a run of that many.
  int64_t cooldown(int64_t steps) const;
};
extern const Schema<WsdSettings> wsd_schema;

}  // namespace saccade
