#pragma once
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade {

/// What one evaluation found, sequence by sequence. Two of the same text can be compared in pairs: the standard error of the difference of
/// two models on the same sequences is far below those of their losses.
struct SequenceLosses {
  struct Domain {
    bool ood = false;
    double loss = 0;                                                  ///< mean over tokens, nats
    double bits_per_byte = std::numeric_limits<double>::quiet_NaN();  ///< of the same text; NaN: not known
    std::vector<double> by_sequence;                                  ///< mean over the tokens of each
    std::vector<int64_t> targets;                                     ///< how many those are
  };
  int64_t step = 0;
  int64_t length = 0;  ///< tokens of a sequence, at most
  std::string text;    ///< what the sequences are: equal texts are equal sequences
  std::string split;
  std::map<std::string, Domain> domains;
};

/// From to_json(RunEvaluation), as files of `evaluations/` have it. Throws DataError naming `origin` when something is missing or is no
/// number.
SequenceLosses parse_sequence_losses(const nlohmann::json& evaluation, const std::string& origin);

/// Whether no domain had as many sequences as `tokens` of every domain are: there is no more text.
bool is_whole_split(const SequenceLosses& losses, int64_t tokens);

/// Tokens of every domain, `tokens` doubled at least once, after which an error of `error` is likely to be at most `goal`: it falls with
/// the root of their number.
int64_t tokens_for_error(int64_t tokens, double error, double goal);

/// An evaluation as it is kept in a file; null where there is no such file. It is read once, as long as it does not change: the window
/// compares the same runs again and again while a line is dragged. Throws DataError when the file is damaged.
std::shared_ptr<const SequenceLosses> kept_losses(const std::filesystem::path& file);

/// The evaluation that a run made of the validation split when it ended (`training.final_evaluation_tokens`); null where it made none, and
/// otherwise as kept_losses().
std::shared_ptr<const SequenceLosses> losses_at_end(const std::filesystem::path& run, int64_t step);

/// The mean of several, of seeds of one experiment; of the domains and sequences of the first. Throws DataError where they are of other
/// text.
SequenceLosses mean_of(const std::vector<std::shared_ptr<const SequenceLosses>>& seeds);

/// A mean over domains, those trained on or OOD ones, and its standard error over the sequences, √Σ e_d² / D, with e_d that of a domain's
/// mean (standard_error). NaN where there is no such domain, the error also where there is one sequence.
struct LossAndError {
  double loss = std::numeric_limits<double>::quiet_NaN(), error = std::numeric_limits<double>::quiet_NaN();
};
/// `domain` empty: all of them; else that one alone.
LossAndError mean_over_domains(const SequenceLosses& losses, bool ood, const std::string& domain = "");

/// The same of a − b on the domains that both have; which of them are OOD, a says. Throws DataError where the two are of other text.
LossAndError paired_difference(const SequenceLosses& a, const SequenceLosses& b, bool ood, const std::string& domain = "");
/// Two-sided p of a difference over many sequences, of which its error alone is known: by the normal distribution. NaN without an error.
double p_of(const LossAndError& difference);

}  // namespace saccade
