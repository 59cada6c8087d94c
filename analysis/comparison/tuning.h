#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// One value that was tried for a tuned setting, and the validation loss at its end: infinite where it diverged.
struct TriedValue {
  double value = 0;
  double loss = 0;  ///< nats per token, validation split
};

/// What can be said of the search for a setting's best value.
struct Tuning {
  enum class State {
    unknown,  ///< not asked for
    open,     ///< values of the search have not ended yet
    untuned,  ///< one value only
    edge,     ///< the best value is the smallest or the largest that was tried
    tuned,    ///< the best value has neighbours on both sides that are no better
    off_best  ///< the runs have another value than the best one
  };
  State state = State::unknown;
  std::string setting;              ///< "training.learning_rate"
  std::vector<TriedValue> tried{};  ///< ascending
  std::optional<double> best{};     ///< the value with the least validation loss
  std::optional<double> extend{};   ///< at an edge: the value to try next
  std::optional<double> own{};      ///< of State::off_best: the value that the runs have
};

/// Judges values that have all ended; their order does not matter. The value to try next continues the ratio of the last two.
Tuning judge_tuning(const std::string& setting, std::vector<TriedValue> tried);
/// What a search says of runs with that value: off_best where it chose another one.
Tuning of_value(Tuning tuning, double value);
/// A run of which only its own value is known.
Tuning untuned(const Run& run);

/// How far the losses of what was tried lie apart: (greatest − least) / least of the finite ones; NaN of fewer than two.
double spread_of(const Tuning& tuning);

const char* to_string(Tuning::State state);
/// Whether another setting than the learning rate was searched, which leaves the rate at one value: untuned, however the search ended.
bool leaves_rate_untuned(const Tuning& tuning);
/// "tuned: 0.003 of 0.001, 0.003, 0.01", "edge: 0.01 of 0.003, 0.01; extend with 0.03", "untuned: one rate only (0.001)", "not at its best
/// value: 0.001, the search chose 0.003 of 0.001, 0.003, 0.01"; of another setting "tuned in temperature: 2 of 1, 2, 4; one learning rate
/// only (untuned)"; empty where nothing is known.
std::string describe(const Tuning& tuning);
/// In a column or a caption: "tuned", "edge", "one rate only", "not at its best value", "tuned in temperature, one rate only".
std::string short_words(const Tuning& tuning);
nlohmann::json to_json(const Tuning& tuning);

/// Where a config has a setting: "/training/learning_rate" of "training.learning_rate".
nlohmann::json::json_pointer setting_pointer(std::string setting);

/// As few digits as tell it: "0.003".
std::string plain_number(double value);

}  // namespace saccade
