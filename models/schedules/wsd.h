#pragma once
#include "models/settings.h"

namespace saccade {

/// Warm-up, stable, cooldown.
struct WsdSettings {
  double cooldown_share = 0.2;
  int64_t cooldown_steps = 0;
  std::string cooldown_form = "1-sqrt";
  std::vector<double> cooldown_at;       ///< steps or shares of all, where branches begin
  std::vector<double> cooldown_at_loss;  ///< or where the validation loss has come to these, nats per token

  /// Steps of the cooldown of a run of that many.
  int64_t cooldown(int64_t steps) const;
  /// Steps of the cooldown of a branch that begins behind `step`: its share is that of the branch's own steps.
  int64_t branch_cooldown(int64_t step) const;
};
extern const Schema<WsdSettings> wsd_schema;

}  // namespace saccade
