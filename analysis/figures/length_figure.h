#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

/// Loss over the length that documents are read to, as `saccade evaluate --lengths` left it in the runs (comparable_length_losses; notes
/// say of which text where runs have several), with a line at the trained length where the runs have one in common. Of each group of seeds
/// the mean, with a band over the seeds (`spread`), at the lengths that all have; of one run the band is the standard error over documents.
/// Of one `domain`; else the mean of the OOD domains, of those trained on where there is none. `last`: of the last T/2 targets before the
/// greatest length, the same for every length.
Figure length_figure(const DrawnSet& drawn, const std::string& domain, bool last, Spread spread = Spread::deviation);

}  // namespace saccade
