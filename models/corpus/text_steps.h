#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/corpus/flat_table.h"
#include "models/corpus/split_pattern.h"

namespace saccade {

/// What happens to text before it is cut.
struct Normalization {
  enum class Kind { nfc, prepend, replace } kind = Kind::nfc;
  std::string from, to;  ///< prepend: `to`; replace: every `from`
  /// Of valid UTF-8.
  std::string operator()(std::string_view text) const;
};

/// Tokens that are looked for in text before it is cut, as Hugging Face's tokenizers do.
struct AddedToken {
  std::string content;
  int32_t number = 0;
  bool special = false;  ///< found, but then text like any other: what ends documents stands in none
  bool single_word = false, strip_left = false, strip_right = false;
};

/// Finds them: from the left, the longest of those that begin at a place.
class AddedTokens {
 public:
  void add(AddedToken token);
  /// Parts of text in their order: an added token (its number) or what stands between (−1), never empty.
  void split(std::string_view text, const std::function<void(std::string_view, int32_t)>& part) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  FlatTable children_, ends_;  ///< a trie: node << 8 | byte → node, node → index + 1
  uint64_t nodes_ = 0;
  std::vector<bool> begins_ = std::vector<bool>(256);  ///< by first byte
};

/// One step of cutting text into pieces; what a step leaves is cut by the next.
struct SplitStep {
  enum class Kind {
    pattern,       ///< matches, and what stands between them
    prefix_space,  ///< a space before a piece without one
    metaspace      ///< spaces become `mark`, and pieces begin at it
  } kind = Kind::pattern;
  enum class Prefix { never, first, always } prefix = Prefix::never;  ///< of metaspace: mark before pieces without one
  bool split = true;                                                  ///< of metaspace
  std::string mark;
  std::vector<SplitPattern> pattern;  ///< one, of the first kind
};

/// Calls `piece` with what the steps from `steps` on make of valid UTF-8. `at_beginning`: nothing of the whole text stands before it.
void split_text(const SplitStep* step, const SplitStep* end, std::string_view text, bool at_beginning, SplitPattern::Scratch& scratch,
                const std::function<void(std::string_view)>& piece);

}  // namespace saccade
