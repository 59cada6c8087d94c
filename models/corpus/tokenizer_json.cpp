#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/corpus/piece_tokenizer.h"
#include "models/corpus/sha256.h"
#include "models/corpus/unigram_scores.h"
#include "models/corpus/utf8.h"
#include "models/json.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostValues = 6'000'000;  // a parsed value takes some tens of bytes

/// A value of the file, as it may stand in a message.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

[[noreturn]] void not_read(const std::string& what, const Json& value) { throw DataError(what + " " + shown(value) + " is not read here"); }

/// Of an object's field, with a default where it is missing or null. Throws DataError for another type.
template <class T>
T field_of(const Json& object, const char* name, T usual) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return usual;
  bool right = false;
  if constexpr (std::is_same_v<T, bool>)
    right = found->is_boolean();
  else if constexpr (std::is_integral_v<T>)
    right = found->is_number_integer() && *found >= 0 && *found < kMostTokens;
  else
    right = found->is_string();
  if (!right) throw DataError("\"" + std::string(name) + "\" is " + shown(*found));
  return found->template get<T>();
}

/// Fields that are not among `known` and say something.
void refuse_others(const Json& object, const std::string& where, const std::set<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (!known.contains(key) && !value.is_null()) not_read(where + " has the field " + shown(key) + ", whose value", value);
}

std::string type_of(const Json& part, const std::string& where) {
  if (!part.is_object() || !part.contains("type") || !part.at("type").is_string()) throw DataError(where + " has no type: " + shown(part));
  return part.at("type").get<std::string>();
}

/// The parts of a Sequence, or the one part.
std::vector<const Json*> parts_of(const Json& part, const std::string& where, const char* list) {
  if (part.is_null()) return {};
  if (type_of(part, where) != "Sequence") return {&part};
  const auto found = part.find(list);
  if (found == part.end() || !found->is_array()) throw DataError(where + " is a Sequence without " + list);
  std::vector<const Json*> parts;
  for (const Json& inner : *found) {
    if (type_of(inner, where) == "Sequence") throw DataError(where + " has a Sequence in a Sequence");
    parts.push_back(&inner);
  }
  return parts;
}

/// {"String": …} or {"Regex": …} → the kind and the text.
std::pair<std::string, std::string> pattern_of(const Json& part, const std::string& where) {
  const auto found = part.find("pattern");
  if (found != part.end() && found->is_object() && found->size() == 1 && found->begin().value().is_string() &&
      (found->begin().key() == "String" || found->begin().key() == "Regex") &&
      !found->begin().value().get_ref<const std::string&>().empty())
    return {found->begin().key(), found->begin().value().get<std::string>()};
  throw DataError(where + " has no pattern");
}

// ---- GPT-2's letters for bytes

/// The character (UTF-8) that stands for each byte: itself where it can be seen, else one from U+0100 on.
/// Source: github.com/openai/gpt-2, src/encoder.py, bytes_to_unicode.
const std::array<std::string, 256>& byte_letters() {
  static const std::array<std::string, 256> letters = [] {
    std::array<std::string, 256> made;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const unsigned code = seen ? byte : next++;
      if (code < 128)
        made[byte] = std::string(1, static_cast<char>(code));
      else
        made[byte] = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    }
    return made;
  }();
  return letters;
}

/// A token in those letters as bytes; as it stands where it has others.
std::string bytes_of_letters(const std::string& token) {
  static const std::map<std::string, char, std::less<>> bytes = [] {
    std::map<std::string, char, std::less<>> made;
    for (size_t byte = 0; byte < 256; ++byte) made[byte_letters()[byte]] = static_cast<char>(byte);
    return made;
  }();
  std::string made;
  std::string_view rest = token;
  while (!rest.empty()) {
    const size_t size = std::max<size_t>(1, utf8_character(rest));
    const auto found = bytes.find(rest.substr(0, size));
    if (found == bytes.end()) return token;
    made += found->second;
    rest.remove_prefix(size);
  }
  return made;
}

// ---- the reader

/// Reads a tokenizer.json part by part; every error is a DataError without the file's name.
class Reader {
 public:
  /// `content`: the file's text.
  Reader(const Json& file, const std::string& content) : file_(file), content_(content) {
    if (!file_.is_object()) throw DataError("it is no JSON object");
    refuse_others(
        file_, "it",
        {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
    if (!file_.contains("model") || !file_.at("model").is_object()) throw DataError("it has no model");
  }

  PieceTokenizerParts read() {
    read_normalizers();
    read_pre_tokenizers();
    const Json& model = file_.at("model");
    const std::string type = model_type(model);
    if (type == "BPE")
      read_byte_pairs(model);
    else if (type == "Unigram")
      read_unigram(model);
    else
      not_read("the model of type", type);
    read_added_tokens();
    find_end_of_text();
    find_begin_of_text();
    return std::move(parts_);
  }

 private:
  static std::string model_type(const Json& model) {  // older files do not say it
    if (model.contains("type")) return type_of(model, "the model");
    return model.contains("merges") ? "BPE" : model.contains("unk_id") ? "Unigram" : type_of(model, "the model");
  }

  const Json& part(const char* name) const {
    static const Json none;
    return file_.contains(name) ? file_.at(name) : none;
  }

  void read_normalizers() {
    for (const Json* normalizer : parts_of(part("normalizer"), "the normalizer", "normalizers")) {
      const std::string type = type_of(*normalizer, "the normalizer");
      Normalization& made = parts_.normalizations.emplace_back();
      if (type == "NFC") {
        made.kind = Normalization::Kind::nfc;
      } else if (type == "Prepend") {
        made.kind = Normalization::Kind::prepend;
        made.to = field_of(*normalizer, "prepend", std::string());
        parts_.adds_space |= made.to == "\u2581" || made.to == " ";
      } else if (type == "Replace") {
        const auto [kind, from] = pattern_of(*normalizer, "the normalizer Replace");
        if (kind != "String") not_read("the normalizer Replace with the pattern", from);
        made = {Normalization::Kind::replace, from, field_of(*normalizer, "content", std::string())};
        if (from == " ") mark_ = made.to;
      } else {
        not_read("the normalizer", type);
      }
    }
  }

  void read_pre_tokenizers() {
    for (const Json* cutter : parts_of(part("pre_tokenizer"), "the pre-tokenizer", "pretokenizers")) {
      const std::string type = type_of(*cutter, "the pre-tokenizer");
      if (from_bytes_) throw DataError("the pre-tokenizer " + shown(type) + " behind ByteLevel is not read here");
      if (type == "ByteLevel")
        read_byte_level(*cutter);
      else if (type == "Split")
        read_split(*cutter);
      else if (type == "Metaspace")
        read_metaspace(*cutter);
      else
        not_read("the pre-tokenizer", type);
    }
  }

  void read_byte_level(const Json& cutter) {
    from_bytes_ = true;
    if (field_of(cutter, "add_prefix_space", true)) {
      parts_.steps.emplace_back().kind = SplitStep::Kind::prefix_space;
      parts_.adds_space = true;
    }
    if (field_of(cutter, "use_regex", true)) parts_.steps.emplace_back().pattern.emplace_back(kGpt2Pattern);
  }

  void read_split(const Json& cutter) {
    const std::string behavior = field_of(cutter, "behavior", std::string());
    if (behavior != "Isolated") not_read("the pre-tokenizer Split with the behavior", behavior);
    if (field_of(cutter, "invert", false)) throw DataError("the pre-tokenizer Split with invert is not read here");
    const auto [kind, pattern] = pattern_of(cutter, "the pre-tokenizer Split");
    parts_.steps.emplace_back().pattern.emplace_back(kind == "Regex" ? pattern : literal_pattern(pattern));
  }

  void read_metaspace(const Json& cutter) {
    SplitStep& step = parts_.steps.emplace_back();
    step.kind = SplitStep::Kind::metaspace;
    step.mark = field_of(cutter, "replacement", std::string("\u2581"));
    if (step.mark.empty() || step.mark == " ") not_read("the pre-tokenizer Metaspace with the replacement", step.mark);
    step.split = field_of(cutter, "split", true);
    const std::string prefix =
        field_of(cutter, "prepend_scheme", std::string(field_of(cutter, "add_prefix_space", true) ? "always" : "never"));
    if (prefix != "always" && prefix != "first" && prefix != "never")
      not_read("the pre-tokenizer Metaspace with the prepend_scheme", prefix);
    step.prefix = prefix == "always" ? SplitStep::Prefix::always : prefix == "first" ? SplitStep::Prefix::first : SplitStep::Prefix::never;
    mark_ = step.mark;
    parts_.adds_space |= prefix != "never";
  }

  /// What a token of the model decodes to.
  std::string decoded(const std::string& token) const {
    if (from_bytes_) return bytes_of_letters(token);
    if (byte_fallback_ && token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
        std::isxdigit(static_cast<unsigned char>(token[3])) && std::isxdigit(static_cast<unsigned char>(token[4])))
      return std::string(1, static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16)));
    if (mark_.empty()) return token;
    return Normalization{Normalization::Kind::replace, mark_, " "}(token);
  }

  void place(int32_t number, std::string bytes) {
    const auto at = static_cast<size_t>(number);
    if (parts_.token_bytes.size() <= at) parts_.token_bytes.resize(at + 1), taken_.resize(at + 1);
    taken_[at] = true;
    parts_.token_bytes[at] = std::move(bytes);
  }

  /// Numbers by text, each once.
  void read_vocabulary(const Json& model) {
    const auto vocab = model.find("vocab");
    if (vocab == model.end() || !vocab->is_object() || vocab->empty()) throw DataError("its model has no vocab");
    for (const auto& [token, number] : vocab->items()) {
      if (!number.is_number_integer() || number < 0 || number >= kMostTokens)
        throw DataError("token " + shown(token) + " has the number " + shown(number));
      const auto value = number.get<int32_t>();
      if (static_cast<size_t>(value) < taken_.size() && taken_[static_cast<size_t>(value)])
        throw DataError("two tokens have the number " + std::to_string(value));
      place(value, decoded(token));
      numbers_.emplace(token, value);
    }
  }

  int32_t number_of(const std::string& token, const std::string& what) const {
    const auto found = numbers_.find(token);
    if (found == numbers_.end()) throw DataError(what + " " + shown(token) + " is not in the vocab");
    return found->second;
  }

  void read_byte_tokens(UnknownCharacters& unknown) const {
    for (size_t byte = 0; byte < 256; ++byte) {
      char name[8] = {};
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
      unknown.byte_tokens[byte] = from_bytes_ ? number_of(byte_letters()[byte], "the letter of a byte,") : number_of(name, "the byte");
    }
  }

  void read_byte_pairs(const Json& model) {
    refuse_others(model, "the model",
                  {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
                   "ignore_merges", "vocab", "merges"});
    if (model.contains("dropout") && !model.at("dropout").is_null() && model.at("dropout") != 0)
      not_read("the model's dropout", model.at("dropout"));
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const std::string value = field_of(model, affix, std::string()); !value.empty())
        not_read(std::string("the model's ") + affix, value);
    BytePairs pairs;
    pairs.from_bytes = from_bytes_;
    pairs.whole_pieces = field_of(model, "ignore_merges", false);
    pairs.unknown.byte_fallback = byte_fallback_ = field_of(model, "byte_fallback", false) && !from_bytes_;
    pairs.unknown.fuse = field_of(model, "fuse_unk", false);
    read_vocabulary(model);
    if (from_bytes_ || byte_fallback_) read_byte_tokens(pairs.unknown);
    if (const std::string token = field_of(model, "unk_token", std::string()); !token.empty() && !from_bytes_)
      pairs.unknown.unknown = number_of(token, "the unk_token");
    else if (!from_bytes_ && !byte_fallback_)
      throw DataError("its model has neither byte_fallback nor an unk_token: characters that it does not have would be lost");
    if (pairs.unknown.unknown >= 0) parts_.token_bytes[static_cast<size_t>(pairs.unknown.unknown)] = "\uFFFD";
    read_merges(model, pairs);
    for (auto& [token, number] : numbers_) pairs.numbers.emplace(from_bytes_ ? bytes_of_letters(token) : token, number);
    parts_.model = make_byte_pair_model(std::move(pairs));
  }

  void read_merges(const Json& model, BytePairs& pairs) const {
    const auto merges = model.find("merges");
    if (merges == model.end() || !merges->is_array()) throw DataError("its model has no merges");
    uint64_t rank = 0;
    for (const Json& merge : *merges) {
      std::string left, right;
      if (merge.is_string()) {
        const auto& text = merge.get_ref<const std::string&>();
        const size_t space = std::min(text.find(' '), text.size());
        left = text.substr(0, space);
        if (space < text.size()) right = text.substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        left = merge[0], right = merge[1];
      }
      if (left.empty() || right.empty())
        throw DataError("merge " + std::to_string(rank + 1) + " is " + shown(merge) + ", expected two tokens");
      const std::string what = "a token of merge " + std::to_string(rank + 1) + ",";
      pairs.joins[pair_key(number_of(left, what), number_of(right, what))] =
          rank << 32 | static_cast<uint32_t>(number_of(left + right, what));
      ++rank;
    }
  }

  std::vector<std::string> special_contents() const {
    std::vector<std::string> contents;
    if (part("added_tokens").is_array())
      for (const Json& entry : part("added_tokens"))
        if (entry.is_object() && field_of(entry, "special", false)) contents.push_back(field_of(entry, "content", std::string()));
    return contents;
  }

  void read_unigram(const Json& model) {
    refuse_others(model, "the model", {"type", "unk_id", "vocab", "byte_fallback"});
    if (from_bytes_) throw DataError("a Unigram model behind ByteLevel is not read here");
    UnknownCharacters unknown;
    unknown.byte_fallback = byte_fallback_ = field_of(model, "byte_fallback", false);
    const auto vocab = model.find("vocab");
    if (vocab == model.end() || !vocab->is_array() || vocab->empty() || vocab->size() >= kMostTokens)
      throw DataError("its model has no vocab");
    const std::vector<double> scores = unigram_scores(content_);
    std::vector<std::pair<std::string, double>> pieces;
    for (const Json& entry : *vocab) {
      const std::string where = "entry " + std::to_string(pieces.size()) + " of the vocab";
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number() || pieces.size() >= scores.size() ||
          !std::isfinite(scores[pieces.size()]))
        throw DataError(where + " is " + shown(entry) + ", expected a token and its score");
      pieces.emplace_back(entry[0].get<std::string>(), scores[pieces.size()]);
      const auto number = static_cast<int32_t>(pieces.size() - 1);
      if (!numbers_.emplace(pieces.back().first, number).second) throw DataError(where + " (" + shown(entry[0]) + ") stands there twice");
      place(number, decoded(pieces.back().first));
    }
    unknown.unknown = field_of<int32_t>(model, "unk_id", -1);
    if (unknown.unknown >= static_cast<int32_t>(pieces.size())) throw DataError("its unk_id is no entry of the vocab");
    if (unknown.byte_fallback) read_byte_tokens(unknown);
    if (unknown.unknown >= 0) parts_.token_bytes[static_cast<size_t>(unknown.unknown)] = "\uFFFD";
    for (const std::string& special : special_contents())  // no text has them, though it may spell them
      if (const auto found = numbers_.find(special); found != numbers_.end()) pieces[static_cast<size_t>(found->second)].first.clear();
    parts_.model = make_unigram_model(std::move(pieces), unknown);
  }

  void read_added_tokens() {
    const Json& list = part("added_tokens");
    if (list.is_null()) return;
    if (!list.is_array()) throw DataError("added_tokens is " + shown(list));
    for (const Json& entry : list) {
      if (!entry.is_object()) throw DataError("an added token is " + shown(entry));
      refuse_others(entry, "an added token", {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      AddedToken token;
      token.content = field_of(entry, "content", std::string());
      token.number = field_of<int32_t>(entry, "id", -1);
      const auto known = numbers_.find(token.content);
      const bool free =
          token.number >= 0 && (static_cast<size_t>(token.number) >= taken_.size() || !taken_[static_cast<size_t>(token.number)]);
      if (token.content.empty() || (known == numbers_.end() ? !free : known->second != token.number))
        throw DataError("the added token " + shown(entry) + " has no number of its own");
      token.single_word = field_of(entry, "single_word", false);
      token.strip_left = field_of(entry, "lstrip", false);
      token.strip_right = field_of(entry, "rstrip", false);
      token.special = field_of(entry, "special", false);
      numbers_.emplace(token.content, token.number);
      place(token.number, token.special ? std::string() : token.content);
      if (token.special) specials_.emplace(token.content, token.number);
      if (!field_of(entry, "normalized", !token.special)) {
        parts_.added.add(std::move(token));
        continue;
      }
      for (const Normalization& normalize : parts_.normalizations) token.content = normalize(token.content);
      parts_.added_normalized.add(std::move(token));
    }
  }

  void find_end_of_text() {
    std::string names;
    for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
      names += (names.empty() ? "" : ", ") + std::string(name);
      const auto special = specials_.find(name);
      const auto known = special != specials_.end() ? special : numbers_.find(name);
      if (known == numbers_.end()) continue;
      parts_.end_of_text = known->second;
      parts_.token_bytes[static_cast<size_t>(known->second)].clear();
      return;
    }
    throw DataError("it has no token that ends a text; expected one of " + names);
  }

  void find_begin_of_text() {
    for (const char* name : {"<|begin_of_text|>", "<s>", "<bos>"})
      if (const auto special = specials_.find(name); special != specials_.end()) {
        parts_.begin_of_text = special->second;
        return;
      }
  }

  const Json& file_;
  const std::string& content_;
  PieceTokenizerParts parts_;
  PieceNumbers numbers_, specials_;
  std::vector<bool> taken_;
  bool from_bytes_ = false, byte_fallback_ = false;
  std::string mark_;  ///< what stands for a space in tokens, where another character does
};

Json parse_bounded(const std::string& text) {
  const auto values = std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '[' || c == '{'; });
  if (static_cast<size_t>(values) > kMostValues) throw DataError("it has more than " + std::to_string(kMostValues) + " values");
  try {
    return parse_json_text(text, "the file");
  } catch (const UsageError& error) {
    throw DataError(error.what());
  }
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(const std::string& content, const std::string& name) {
  try {
    const Json file = parse_bounded(content);
    PieceTokenizerParts parts = Reader(file, content).read();
    parts.name = name;
    parts.content = content.substr(content.find('{'));  // by which it is known for one in a run
    parts.hash = hex(sha256("tokenizer.json\n" + parts.content));
    return make_piece_tokenizer(std::move(parts));
  } catch (const DataError& error) {
    throw DataError(name + ": no usable tokenizer.json: " + error.what());
  }
}

std::string join_vocabulary_and_merges(const std::string& vocabulary, const std::string& merges, const std::string& name) {
  Json vocab;
  try {
    vocab = parse_bounded(vocabulary);
  } catch (const DataError& error) {
    throw DataError(name + ": " + error.what());
  }
  if (valid_utf8(merges) != merges.size()) throw DataError(name + ": the merges beside it are no UTF-8");
  Json list = Json::array(), added = Json::array();
  for (size_t at = 0; at < merges.size();) {
    const size_t end = std::min(merges.find('\n', at), merges.size());
    std::string line = merges.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !(at == 0 && line.starts_with("#version"))) list.push_back(line);
    at = end + 1;
  }
  if (vocab.is_object() && vocab.contains("<|endoftext|>"))
    added.push_back({{"id", vocab.at("<|endoftext|>")}, {"content", "<|endoftext|>"}, {"special", true}, {"normalized", false}});
  return Json{{"version", "1.0"},
              {"added_tokens", added},
              {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
              {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}}
      .dump();
}

}  // namespace saccade
