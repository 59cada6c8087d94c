#include "analysis/runs/step_line.h"

#include <charconv>
#include <limits>

namespace saccade {
namespace {

/// Takes what is expected from the front of a text, piece by piece.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : text_(text) {}

  Pieces& literal(std::string_view expected) {
    good_ = good_ && text_.starts_with(expected);
    if (good_) text_.remove_prefix(expected.size());
    return *this;
  }
  Pieces& number(int64_t& value) { return digits(value); }
  Pieces& number(double& value) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const auto& [name, special] : {std::pair("\"NaN\"", std::numeric_limits<double>::quiet_NaN()),
                                        std::pair("\"Infinity\"", kInfinity), std::pair("\"-Infinity\"", -kInfinity)})
      if (good_ && text_.starts_with('"') && text_.starts_with(name)) {
        value = special;
        text_.remove_prefix(std::string_view(name).size());
        return *this;
      }
    return digits(value);
  }
  bool ended() const { return good_ && text_.empty(); }

 private:
  template <class T>
  Pieces& digits(T& value) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    good_ = good_ && error == std::errc();
    if (good_) text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return *this;
  }

  std::string_view text_;
  bool good_ = true;
};

}  // namespace

std::optional<StepRecord> read_step_line(std::string_view body, int64_t number) {
  int64_t n = -1;
  StepRecord step;
  Pieces pieces(body);
  pieces.literal("{\"n\":").number(n).literal(",\"type\":\"step\",\"step\":").number(step.step);
  pieces.literal(",\"tokens\":").number(step.tokens).literal(",\"flops\":").number(step.flops);
  pieces.literal(",\"seconds\":").number(step.seconds).literal(",\"loss\":").number(step.loss);
  pieces.literal(",\"learning_rate\":").number(step.learning_rate).literal(",\"gradient_norm\":").number(step.gradient_norm);
  pieces.literal(",\"tokens_per_second\":").number(step.tokens_per_second);
  if (!pieces.ended() || n != number) return {};
  return step;
}

}  // namespace saccade
