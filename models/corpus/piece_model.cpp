#include "models/corpus/piece_model.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/utf8.h"

namespace saccade {
namespace {

constexpr size_t kLookEvery = 1 << 16;  // steps between looks at whether to stop

/// Bytes of the character at the front; 1 where there is none.
size_t character_at(std::string_view text) { return std::max<size_t>(1, utf8_character(text)); }

class BytePairModel : public PieceModel {
 public:
  explicit BytePairModel(BytePairs settings) : s_(std::move(settings)) {}

  void encode(std::string_view piece, PieceScratch& scratch, std::vector<int32_t>& tokens) const override {
    if (scratch.cache.find(piece, tokens)) return;
    const size_t before = tokens.size();
    encode_new(piece, scratch, tokens);
    scratch.cache.keep(piece, tokens.data() + before, tokens.size() - before);
  }

 private:
  using Symbol = PieceScratch::Symbol;
  using Join = PieceScratch::Join;

  void encode_new(std::string_view piece, PieceScratch& scratch, std::vector<int32_t>& tokens) const {
    if (s_.whole_pieces)
      if (const auto found = s_.numbers.find(piece); found != s_.numbers.end()) return tokens.push_back(found->second);
    scratch.symbols.clear();
    s_.from_bytes ? start_from_bytes(piece, scratch.symbols) : start_from_characters(piece, scratch.symbols);
    join(scratch);
    for (const Symbol& symbol : scratch.symbols)
      if (symbol.token >= 0) tokens.push_back(symbol.token);
  }

  static void add(std::vector<Symbol>& symbols, int32_t token) {
    const auto at = static_cast<int32_t>(symbols.size());
    if (at == std::numeric_limits<int32_t>::max()) throw DataError("a piece of text of more than 2^31 characters");
    symbols.push_back({token, at - 1, at + 1});
  }

  void start_from_bytes(std::string_view piece, std::vector<Symbol>& symbols) const {
    for (const char c : piece) add(symbols, s_.unknown.byte_tokens[static_cast<unsigned char>(c)]);
    if (!symbols.empty()) symbols.back().after = -1;
  }

  void start_from_characters(std::string_view piece, std::vector<Symbol>& symbols) const {
    bool unknown_before = false;
    for (size_t size = 0; !piece.empty(); piece.remove_prefix(size)) {
      size = character_at(piece);
      const std::string_view character = piece.substr(0, size);
      const auto known = s_.numbers.find(character);
      if (known != s_.numbers.end()) {
        add(symbols, known->second);
      } else if (s_.unknown.byte_fallback) {
        for (const char c : character) add(symbols, s_.unknown.byte_tokens[static_cast<unsigned char>(c)]);
      } else if (!(s_.unknown.fuse && unknown_before)) {
        add(symbols, s_.unknown.unknown);
      }
      unknown_before = known == s_.numbers.end();
    }
    if (!symbols.empty()) symbols.back().after = -1;
  }

  /// The lowest rank is on top, the leftmost of equals.
  static bool later(const Join& a, const Join& b) { return a.rank != b.rank ? a.rank > b.rank : a.first > b.first; }

  const uint64_t* joined(const std::vector<Symbol>& symbols, int32_t first) const {
    const int32_t after = symbols[static_cast<size_t>(first)].after;
    if (after < 0) return nullptr;
    return s_.joins.find(pair_key(symbols[static_cast<size_t>(first)].token, symbols[static_cast<size_t>(after)].token));
  }

  void join(PieceScratch& scratch) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    std::vector<Join>& joins = scratch.joins;
    joins.clear();
    const auto offer = [&](int32_t first) {
      if (const uint64_t* found = joined(symbols, first))
        joins.push_back({static_cast<uint32_t>(*found >> 32), first, static_cast<int32_t>(*found & 0xFFFFFFFF)});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<int32_t>(i));
    std::make_heap(joins.begin(), joins.end(), later);
    for (size_t step = 0; !joins.empty(); ++step) {
      if (step % kLookEvery == kLookEvery - 1) stop_here_if_asked();
      std::pop_heap(joins.begin(), joins.end(), later);
      const Join next = joins.back();
      joins.pop_back();
      Symbol& left = symbols[static_cast<size_t>(next.first)];
      const uint64_t* now = left.token < 0 ? nullptr : joined(symbols, next.first);
      if (!now || static_cast<int32_t>(*now & 0xFFFFFFFF) != next.token) continue;  // one of the two was joined with another
      Symbol& right = symbols[static_cast<size_t>(left.after)];
      left.token = next.token;
      left.after = right.after;
      right.token = -1;
      if (left.after >= 0) symbols[static_cast<size_t>(left.after)].before = next.first;
      for (const int32_t first : {left.before, next.first}) {
        const size_t size = joins.size();
        if (first >= 0) offer(first);
        if (joins.size() > size) std::push_heap(joins.begin(), joins.end(), later);
      }
    }
  }

  BytePairs s_;
};

class UnigramModel : public PieceModel {
 public:
  UnigramModel(std::vector<std::pair<std::string, double>> pieces, UnknownCharacters unknown) : unknown_(unknown) {
    double least = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto& [text, score] = pieces[i];
      least = i == 0 ? score : std::min(least, score);
      scores_.push_back(score);
      if (text.empty()) continue;
      numbers_.emplace(text, static_cast<int32_t>(i));
      add(text, static_cast<int32_t>(i));
    }
    unknown_score_ = least - 10;
  }

  void encode(std::string_view piece, PieceScratch& scratch, std::vector<int32_t>& tokens) const override {
    if (scratch.cache.find(piece, tokens)) return;
    const size_t before = tokens.size();
    search(piece, scratch.steps);
    collect(piece, scratch.steps, tokens);
    scratch.cache.keep(piece, tokens.data() + before, tokens.size() - before);
  }

 private:
  using Step = PieceScratch::Step;
  static constexpr size_t kNowhere = ~size_t{0};

  void add(const std::string& text, int32_t token) {
    uint64_t node = 0;
    for (const char c : text) {
      uint64_t& next = children_[node << 8 | static_cast<unsigned char>(c)];
      if (next == 0) next = ++nodes_;
      node = next;
    }
    ends_[node] = static_cast<uint64_t>(token) + 1;
  }

  static void offer(Step& step, double score, size_t begin, int32_t token) {
    if (step.begin == kNowhere || score > step.score) step = {score, begin, token};
  }

  /// steps[i]: the best way to what ends before byte i.
  void search(std::string_view piece, std::vector<Step>& steps) const {
    steps.assign(piece.size() + 1, {0, kNowhere, 0});
    size_t looked = 0;
    for (size_t begin = 0; begin < piece.size();) {
      const double here = steps[begin].score;
      const size_t character = character_at(piece.substr(begin));
      bool has_character = false;
      uint64_t node = 0;
      for (size_t end = begin; end < piece.size(); ++looked) {
        const uint64_t* next = children_.find(node << 8 | static_cast<unsigned char>(piece[end]));
        if (!next) break;
        node = *next;
        ++end;
        if (const uint64_t* token = ends_.find(node)) {
          offer(steps[end], here + scores_[*token - 1], begin, static_cast<int32_t>(*token - 1));
          has_character |= end - begin == character;
        }
      }
      if (!has_character) offer(steps[begin + character], here + unknown_score_, begin, unknown_.unknown);
      begin += character;
      if (looked > kLookEvery) looked = 0, stop_here_if_asked();
    }
  }

  /// Unknown characters in a row are one.
  void collect(std::string_view piece, const std::vector<Step>& steps, std::vector<int32_t>& tokens) const {
    const size_t first = tokens.size();
    for (size_t end = piece.size(); end > 0;) {
      size_t begin = steps[end].begin;
      const bool unknown = steps[end].token == unknown_.unknown;
      while (unknown && begin > 0 && steps[begin].token == unknown_.unknown) begin = steps[begin].begin;
      if (!unknown) {
        tokens.push_back(steps[end].token);
      } else if (const auto known = numbers_.find(piece.substr(begin, end - begin)); known != numbers_.end()) {
        tokens.push_back(known->second);
      } else if (unknown_.byte_fallback) {
        for (size_t i = end; i > begin; --i) tokens.push_back(unknown_.byte_tokens[static_cast<unsigned char>(piece[i - 1])]);
      } else {
        tokens.push_back(unknown_.unknown);
      }
      end = begin;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  }

  UnknownCharacters unknown_;
  std::vector<double> scores_;
  PieceNumbers numbers_;
  FlatTable children_, ends_;  ///< a trie: node << 8 | byte → node, node → token + 1
  uint64_t nodes_ = 0;
  double unknown_score_ = 0;
};

}  // namespace

bool PieceCache::find(std::string_view piece, std::vector<int32_t>& tokens) const {
  if (piece.empty() || piece.size() > kLongest) return false;
  const Place& place = places_[PieceHash()(piece) % kPlaces];
  if (place.bytes != piece.size() || std::memcmp(place.piece, piece.data(), piece.size()) != 0) return false;
  tokens.insert(tokens.end(), place.tokens, place.tokens + place.count);
  return true;
}

void PieceCache::keep(std::string_view piece, const int32_t* tokens, size_t count) {
  if (piece.empty() || piece.size() > kLongest || count > kMostTokens) return;
  Place& place = places_[PieceHash()(piece) % kPlaces];
  place.bytes = static_cast<uint8_t>(piece.size());
  place.count = static_cast<uint8_t>(count);
  std::memcpy(place.piece, piece.data(), piece.size());
  std::copy(tokens, tokens + count, place.tokens);
}

std::unique_ptr<PieceModel> make_byte_pair_model(BytePairs settings) { return std::make_unique<BytePairModel>(std::move(settings)); }

std::unique_ptr<PieceModel> make_unigram_model(std::vector<std::pair<std::string, double>> pieces, UnknownCharacters unknown) {
  if (unknown.unknown < 0) throw DataError("its Unigram model has no unk_id");
  return std::make_unique<UnigramModel>(std::move(pieces), unknown);
}

}  // namespace saccade
