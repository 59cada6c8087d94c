#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace saccade::avey {

/// Which rows the neural processor works on, and where they stand. Split i (S tokens) is read in a context of C = S (k + 1)
/// positions: zero rows, then its min(i, k) chosen splits, then its own tokens (arXiv:2506.11305, section 2.1). Kept as rows of one
/// matrix:
///
///     [ padding: S k rows | chosen splits of every context: b, i, slot | own tokens: b, t ]
///
/// Padding is kept once for all contexts: row t of a context sees rows up to t only, so what stands in a padding row is the
/// same wherever it is padding. Rows of a last partial split that no token owns influence no token; they are left out.
/// The own rows are the last B·T ones, in the order of the sequence.
struct ContextLayout {
  int64_t batch = 1, tokens = 1;
  int64_t split = 64, top_k = 7;
  bool padding = true;  ///< false: zero rows are masked, so they do not exist
  int64_t offset = 0;   ///< position of the first row, where a context is given by itself (decoding)

  constexpr int64_t splits() const { return (tokens + split - 1) / split; }
  constexpr int64_t context_width() const { return split * (top_k + 1); }
  constexpr int64_t chosen_count(int64_t i) const { return std::min(i, top_k); }
  constexpr int64_t own_count(int64_t i) const { return std::min(split, tokens - i * split); }
  /// Zero rows in front of context i.
  constexpr int64_t padding_before(int64_t i) const { return split * (top_k - chosen_count(i)); }

  constexpr int64_t pad_rows() const { return padding ? split * top_k : 0; }
  constexpr int64_t chosen_rows() const { return split * chosen_before(splits()); }  ///< of one sequence
  constexpr int64_t own_rows() const { return batch * tokens; }
  constexpr int64_t rows() const { return pad_rows() + batch * chosen_rows() + own_rows(); }
  constexpr int64_t first_own_row() const { return rows() - own_rows(); }

  constexpr int64_t chosen_row(int64_t b, int64_t i) const { return pad_rows() + b * chosen_rows() + split * chosen_before(i); }
  constexpr int64_t own_row(int64_t b, int64_t i) const { return first_own_row() + b * tokens + i * split; }

  /// Multiply-adds of a causal product over all contexts per column, queries being the own rows only or all rows.
  double causal_pairs(bool own_queries) const;

 private:
  /// Σ_{j<i} min(j, k)
  constexpr int64_t chosen_before(int64_t i) const {
    const int64_t j = std::min(i, top_k + 1);
    return j * (j - 1) / 2 + (i - j) * top_k;
  }
};

/// One context as runs of rows: the row it reads at each position, in order.
struct ContextRows {
  struct Run {
    int64_t row = 0, count = 0;
  };
  std::array<Run, 3> runs;     ///< padding, chosen, own; some may be empty
  int64_t first_position = 0;  ///< position in the context of the first row present
  int64_t size() const { return runs[0].count + runs[1].count + runs[2].count; }
};

/// Context i of sequence b.
ContextRows context_rows(const ContextLayout& layout, int64_t b, int64_t i);
/// The padding rows by themselves, as a context that has nothing else.
ContextRows padding_context(const ContextLayout& layout);

}  // namespace saccade::avey
