#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace saccade {

/// How many runs at a time pay on a device, by the tokens a second that runs were seen to make. Runs of different models make different
/// numbers of tokens, so what n runs make together is judged by each of them alone: n times its tokens a second, against what a run of
/// the same model (and batch) made in smaller company. Where all are of one model that is the sum of their tokens a second.
class DeviceSharing {
 public:
  static constexpr double kGain = 0.05;     ///< one more run has to bring this share at least
  static constexpr int64_t kMostRuns = 16;  ///< at a time

  /// Of a run's steps while `together` runs were at work, itself included; several measurements are averaged.
  void measured(const std::string& model, int64_t together, double tokens_per_second);

  /// What `together` runs make over what one fewer makes, as the mean over these models; nothing before one of them is known at both.
  std::optional<double> gain(const std::vector<std::string>& models, int64_t together) const;

  /// Whether one more run may be tried beside runs of these models (one entry each): all of them have been measured in the company they
  /// have, the last one that came paid, and one more is not known not to.
  bool may_add(const std::vector<std::string>& models) const;

 private:
  struct Mean {
    double sum = 0;
    int64_t count = 0;
  };
  std::optional<double> pace(const std::string& model, int64_t together) const;

  std::map<std::pair<std::string, int64_t>, Mean> paces_;
};

}  // namespace saccade
