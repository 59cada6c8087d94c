#include "analysis/comparison/tuning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace saccade {
namespace {

/// Three significant digits, so that values of a grid can be read and found again.
double rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return std::strtod(text.data(), nullptr);
}

std::string last_part(const std::string& setting) { return setting.substr(setting.rfind('.') + 1); }

constexpr const char* kRate = "training.learning_rate";

std::string words_for(const std::string& setting) {
  if (setting == kRate) return "rate";
  std::string words = last_part(setting);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// " in temperature", nothing of the learning rate.
std::string in_setting(const Tuning& tuning) { return leaves_rate_untuned(tuning) ? " in " + words_for(tuning.setting) : ""; }

}  // namespace

nlohmann::json::json_pointer setting_pointer(std::string setting) {
  std::replace(setting.begin(), setting.end(), '.', '/');
  return nlohmann::json::json_pointer("/" + setting);
}

std::string plain_number(double value) {
  std::array<char, 32> text{};
  const bool whole = std::abs(value) < 1e9 && value == std::floor(value);
  if (whole) std::snprintf(text.data(), text.size(), "%.0f", value);
  for (int digits = 1; digits <= 17 && !whole; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    if (std::strtod(text.data(), nullptr) == value) break;
  }
  return text.data();
}

Tuning judge_tuning(const std::string& setting, std::vector<TriedValue> tried) {
  std::sort(tried.begin(), tried.end(), [](const TriedValue& a, const TriedValue& b) { return a.value < b.value; });
  Tuning tuning{Tuning::State::open, setting, tried, {}, {}};
  if (tried.empty()) return tuning;
  const auto best = std::min_element(tried.begin(), tried.end(), [](const TriedValue& a, const TriedValue& b) { return a.loss < b.loss; });
  if (std::isfinite(best->loss)) tuning.best = best->value;
  tuning.state = tried.size() == 1 ? Tuning::State::untuned : Tuning::State::tuned;
  if (tried.size() == 1) return tuning;
  const bool low = best == tried.begin() || !tuning.best, high = tuning.best && best + 1 == tried.end();
  if (!low && !high) return tuning;
  tuning.state = Tuning::State::edge;
  const double edge = low ? tried.front().value : best->value, inner = low ? tried[1].value : (best - 1)->value;
  tuning.extend = rounded(edge * edge / inner);
  return tuning;
}

Tuning of_value(Tuning tuning, double value) {
  const bool judged = tuning.state == Tuning::State::tuned || tuning.state == Tuning::State::edge;
  if (!judged || !tuning.best || *tuning.best == value) return tuning;
  tuning.state = Tuning::State::off_best;
  tuning.own = value;
  return tuning;
}

double spread_of(const Tuning& tuning) {
  std::vector<double> losses;
  for (const TriedValue& each : tuning.tried)
    if (std::isfinite(each.loss)) losses.push_back(each.loss);
  if (losses.size() < 2) return std::nan("");
  const auto [least, greatest] = std::minmax_element(losses.begin(), losses.end());
  return (*greatest - *least) / *least;
}

Tuning untuned(const Run& run) {
  Tuning tuning{Tuning::State::untuned, kRate, {}, {}, {}};
  const double rate = run.info().config.value(nlohmann::json::json_pointer("/training/learning_rate"), std::nan(""));
  if (std::isfinite(rate)) tuning.tried = {{rate, std::nan("")}}, tuning.best = rate;
  return tuning;
}

const char* to_string(Tuning::State state) {
  switch (state) {
    case Tuning::State::unknown: return "unknown";
    case Tuning::State::open: return "open";
    case Tuning::State::untuned: return "untuned";
    case Tuning::State::edge: return "edge";
    case Tuning::State::tuned: return "tuned";
    case Tuning::State::off_best: return "not at its best value";
  }
  return "";
}

bool leaves_rate_untuned(const Tuning& tuning) {
  return tuning.state != Tuning::State::unknown && !tuning.setting.empty() && tuning.setting != kRate;
}

std::string describe(const Tuning& tuning) {
  std::string values;
  for (const TriedValue& tried : tuning.tried) values += (values.empty() ? "" : ", ") + plain_number(tried.value);
  const std::string of = (tuning.best ? plain_number(*tuning.best) : "none") + " of " + values, in = in_setting(tuning);
  const std::string rate = leaves_rate_untuned(tuning) ? "; one learning rate only (untuned)" : "";
  switch (tuning.state) {
    case Tuning::State::unknown: return "";
    case Tuning::State::open: return "open" + in + (values.empty() ? "" : ": " + values + " so far") + rate;
    case Tuning::State::untuned:
      return "untuned: one " + words_for(tuning.setting) + " only" + (values.empty() ? "" : " (" + values + ")") + rate;
    case Tuning::State::edge: return "edge" + in + ": " + of + "; extend with " + plain_number(*tuning.extend) + rate;
    case Tuning::State::tuned: return "tuned" + in + ": " + of + rate;
    case Tuning::State::off_best:
      return "not at its best value" + in + ": " + plain_number(*tuning.own) + ", the search chose " + of +
             (tuning.extend ? ", at its edge; extend with " + plain_number(*tuning.extend) : "") + rate;
  }
  return "";
}

std::string short_words(const Tuning& tuning) {
  if (tuning.state == Tuning::State::unknown) return "";
  const bool other = leaves_rate_untuned(tuning);
  if (tuning.state == Tuning::State::untuned) return "one " + words_for(tuning.setting) + (other ? " and one rate only" : " only");
  return to_string(tuning.state) + in_setting(tuning) + (other ? ", one rate only" : "");
}

nlohmann::json to_json(const Tuning& tuning) {
  const auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(); };
  nlohmann::json tried = nlohmann::json::array();
  for (const TriedValue& t : tuning.tried) tried.push_back({{"value", t.value}, {"validation_loss", number(t.loss)}});
  return {{"state", to_string(tuning.state)},
          {"setting", tuning.setting},
          {"rate_untuned", tuning.state == Tuning::State::untuned || leaves_rate_untuned(tuning)},
          {"tried", tried},
          {"best", tuning.best ? nlohmann::json(*tuning.best) : nlohmann::json()},
          {"extend", tuning.extend ? nlohmann::json(*tuning.extend) : nlohmann::json()},
          {"own", tuning.own ? nlohmann::json(*tuning.own) : nlohmann::json()},
          {"words", describe(tuning)}};
}

}  // namespace saccade
