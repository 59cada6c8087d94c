#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/corpus/flat_table.h"

namespace saccade {

/// Token numbers by their text.
struct PieceHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using PieceNumbers = std::unordered_map<std::string, int32_t, PieceHash, std::equal_to<>>;

/// The tokens of short pieces that were met before, the last one of those that share a place. Of one thread.
class PieceCache {
 public:
  bool find(std::string_view piece, std::vector<int32_t>& tokens) const;
  void keep(std::string_view piece, const int32_t* tokens, size_t count);

 private:
  static constexpr size_t kPlaces = 1 << 15, kLongest = 22, kMostTokens = 10;
  struct Place {
    uint8_t bytes = 0, count = 0;
    char piece[kLongest] = {};
    int32_t tokens[kMostTokens] = {};
  };
  static_assert(sizeof(Place) == 64);
  std::vector<Place> places_ = std::vector<Place>(kPlaces);
};

/// What one thread needs while a model encodes.
struct PieceScratch {
  struct Symbol {
    int32_t token, before, after;  ///< token −1: joined with the one before; −1: there is none
  };
  struct Join {
    uint32_t rank;
    int32_t first, token;
  };
  struct Step {
    double score;
    size_t begin;
    int32_t token;
  };
  PieceCache cache;
  std::vector<Symbol> symbols;
  std::vector<Join> joins;
  std::vector<Step> steps;
};

/// From a piece of text to tokens.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  /// Appends the tokens of a piece, which may be any bytes.
  virtual void encode(std::string_view piece, PieceScratch& scratch, std::vector<int32_t>& tokens) const = 0;
};

/// What a model does with characters that it has no token for.
struct UnknownCharacters {
  bool byte_fallback = false;              ///< a token for each of their bytes
  std::array<int32_t, 256> byte_tokens{};  ///< of byte_fallback, or of every byte where a model starts from bytes
  int32_t unknown = -1;                    ///< else this one; −1: none
  bool fuse = false;                       ///< one for several in a row
};

/// Byte pair encoding (arXiv:1508.07909, section 3.2): a piece starts as its bytes or characters, and the adjacent pair of the lowest rank
/// is joined, the leftmost of equals, until none can be. Time n log n in the length of a piece.
struct BytePairs {
  bool from_bytes = false;    ///< else from characters
  bool whole_pieces = false;  ///< a piece that is a token is that token
  PieceNumbers numbers;       ///< of characters, and of whole pieces
  FlatTable joins;            ///< pair_key() → rank << 32 | token
  UnknownCharacters unknown;
};
inline uint64_t pair_key(int32_t left, int32_t right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }
std::unique_ptr<PieceModel> make_byte_pair_model(BytePairs settings);

/// Unigram language model (arXiv:1804.10959, section 3.2): the segmentation whose tokens' scores (log probabilities) have the largest sum,
/// where a character without a token costs ten more than the least score; an empty piece is none of any text. Throws DataError without
/// `unknown`.
std::unique_ptr<PieceModel> make_unigram_model(std::vector<std::pair<std::string, double>> pieces, UnknownCharacters unknown);

}  // namespace saccade
