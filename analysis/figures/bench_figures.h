#pragma once
#include <map>

#include "analysis/figures/bench_results.h"
#include "analysis/figures/page.h"
#include "analysis/figures/palette.h"

namespace saccade {

/// What a figure leaves out is told in words: "Nothing of Transformer++ at 65536 and 102400 tokens: a step takes …".
struct BenchFigure {
  Figure figure;
  std::vector<std::string> notes;
};

/// A quantity of bench_quantities() over the length of sequences or prompts, of decoding-speed and whole-speed over the batch behind
/// prompts of `prompt` tokens (0: the longest that were measured); a curve for each model. Of training and prompts the band is from the
/// slowest to the fastest repeat; single tokens are timed once each, and have none. `relative`, a model's name or title: how many times as
/// fast as that one everything is, of state-bytes how many times as large. `beside`: the looks of runs on the same page by name, which a
/// model of the same name has and no other. Throws UsageError where no model is called so.
BenchFigure bench_figure(const std::vector<BenchedModel>& models, const std::string& quantity, const std::string& relative = {},
                         int64_t prompt = 0, const std::map<std::string, VariantLook>& beside = {});

/// A line for each model: tokens per second of training steps by length, and of decoding by prompt and batch, alone and with the prompts;
/// with `relative` how many times as fast as that one (arXiv:2505.18522, table 3).
PageTable bench_table(const std::vector<BenchedModel>& models, const std::string& relative, const std::string& title);

/// "Measured on NVIDIA H200; medians, bands from the slowest to the fastest repeat where a measurement was repeated."
std::string bench_caption(const std::vector<BenchedModel>& models);

}  // namespace saccade
