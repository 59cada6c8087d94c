#pragma once
#include <array>

#include "analysis/comparison/comparison.h"
#include "analysis/comparison/equal_cost.h"
#include "analysis/comparison/sequence_losses.h"

namespace saccade {

/// Losses in bits per byte of the text, by which runs with different tokenizers compare (Evaluation::bits_per_byte).

/// Means over domains, each once: those trained on, and OOD ones. NaN where one is not known.
struct MeanBits {
  double validation = std::numeric_limits<double>::quiet_NaN(), ood = std::numeric_limits<double>::quiet_NaN();
};
MeanBits bits_of(const SequenceLosses& losses);
/// Of what a run recorded last; of no evaluation NaN.
MeanBits bits_of(const std::optional<EvaluationRecord>& evaluation);

/// A trajectory and courses (by Spent) as a run's evaluations have them, in bits per byte. All are of the same text, so that a domain's
/// losses are in one ratio to its bits: that of the last evaluation. Empty where it is not known of every domain.
struct CourseInBits {
  Trajectory trajectory;
  std::array<Course, 3> courses = {};
};
CourseInBits course_in_bits(const Run& run);

struct CellNumbers;
/// The cells with losses in bits per byte in place of nats per token: at their ends, along trajectories and courses. Without losses by
/// sequence, since those of different tokenizers do not pair; the loss of single domains is not there.
std::vector<CellNumbers> in_bits_per_byte(std::vector<CellNumbers> cells);

}  // namespace saccade
