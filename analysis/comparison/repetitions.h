#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// One finite number of each seed: the mean of the runs that repeat it, of which `measure` gives NaN where one has none.
std::map<int64_t, double> by_seed(const std::vector<const Run*>& runs, const std::function<double(const Run&)>& measure);

/// Runs of one row that share their beginning: forks of one run, or a run and its fork. By the paths of parents in run.json. Empty when
/// there are none, so that their seeds are independent repetitions.
std::vector<const Run*> with_one_beginning(const std::vector<const Run*>& runs);

/// Why the runs of a row are fewer repetitions than they are runs, a sentence each: seeds that stand twice, forks of one run.
std::vector<std::string> describe_repeats(const std::vector<const Run*>& runs);

}  // namespace saccade
