#include <openssl/evp.h>

#include <charconv>
#include <filesystem>
#include <optional>

#include "kernels/engine/error.h"
#include "models/corpus/piece_tokenizer.h"
#include "models/corpus/sha256.h"

namespace saccade {
namespace {

constexpr size_t kLongestToken = 256;  // bytes; the published ones have 128 at most

/// What a rank file does not say. Source: github.com/openai/tiktoken, tiktoken_ext/openai_public.py.
struct Encoding {
  const char* name;
  const char* pattern;
  int32_t end_of_text;
  int64_t vocabulary;
};

constexpr const char* kCl100kPattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
                                       R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const Encoding& encoding_named(const std::string& file) {
  static const std::vector<Encoding> all{{"gpt2", kGpt2Pattern, 50256, 50257},
                                         {"r50k_base", kGpt2Pattern, 50256, 50257},
                                         {"p50k_base", kGpt2Pattern, 50256, 50281},
                                         {"cl100k_base", kCl100kPattern, 100257, 100277},
                                         {"o200k_base", kO200kPattern, 199999, 200019}};
  const std::filesystem::path path(file);
  const std::string name = path.extension() == ".tiktoken" ? path.stem().string() : path.filename().string();
  std::string names;
  for (const Encoding& encoding : all) {
    if (name == encoding.name) return encoding;
    names += (names.empty() ? "" : ", ") + std::string(encoding.name);
  }
  throw DataError("a rank file says neither how text is cut nor what ends it, its name does; expected one of " + names +
                  ", with .tiktoken");
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > 2 * kLongestToken) return {};
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return {};
  bytes.resize(static_cast<size_t>(size) - text.ends_with('=') - text.ends_with("=="));
  return bytes;
}

/// "aGVsbG8= 31373" → the token's bytes and its number.
std::optional<std::pair<std::string, int32_t>> read_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos) return {};
  const auto bytes = from_base64(line.substr(0, space));
  int32_t rank = -1;
  const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
  if (!bytes || bytes->empty() || error != std::errc() || end != line.data() + line.size() || rank < 0) return {};
  return std::pair(*bytes, rank);
}

void read_ranks(std::string_view content, const Encoding& encoding, PieceTokenizerParts& parts, BytePairs& pairs) {
  parts.token_bytes.resize(static_cast<size_t>(encoding.vocabulary));
  std::vector<bool> given(parts.token_bytes.size());
  for (size_t at = 0, number = 1; at < content.size(); ++number) {
    const size_t end = std::min(content.find('\n', at), content.size());
    const std::string where = "line " + std::to_string(number);
    const auto entry = read_line(content.substr(at, end - at));
    at = end + 1;
    if (!entry) throw DataError(where + " is not a token in base64, a space and its rank");
    const auto rank = static_cast<size_t>(entry->second);
    if (rank >= given.size() || entry->second == encoding.end_of_text)
      throw DataError(where + ": rank " + std::to_string(rank) + ", which " + encoding.name + " does not have");
    if (given[rank] || !pairs.numbers.emplace(entry->first, entry->second).second)
      throw DataError(where + ": its token or rank stands there twice");
    given[rank] = true;
    parts.token_bytes[rank] = entry->first;
  }
}

/// tiktoken joins two tokens where their bytes together are one: every way to cut a token into two is a join, of the token's rank.
void find_joins(BytePairs& pairs) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = pairs.numbers.find(std::string(1, static_cast<char>(byte)));
    if (found == pairs.numbers.end()) throw DataError("byte " + std::to_string(byte) + " has no rank");
    pairs.unknown.byte_tokens[static_cast<size_t>(byte)] = found->second;
  }
  for (const auto& [bytes, rank] : pairs.numbers)
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = pairs.numbers.find(std::string_view(bytes).substr(0, cut));
      const auto right = pairs.numbers.find(std::string_view(bytes).substr(cut));
      if (left == pairs.numbers.end() || right == pairs.numbers.end()) continue;
      pairs.joins[pair_key(left->second, right->second)] = uint64_t(uint32_t(rank)) << 32 | uint32_t(rank);
    }
}

}  // namespace

bool is_rank_file(std::string_view content) {
  return read_line(content.substr(0, std::min(content.find('\n'), content.size()))).has_value();
}

std::unique_ptr<Tokenizer> parse_rank_file(const std::string& content, const std::string& name) {
  try {
    const Encoding& encoding = encoding_named(name);
    PieceTokenizerParts parts;
    BytePairs pairs;
    pairs.from_bytes = pairs.whole_pieces = true;
    read_ranks(content, encoding, parts, pairs);
    find_joins(pairs);
    parts.name = name;
    parts.content = content;
    parts.hash = hex(sha256("tiktoken " + std::string(encoding.name) + "\n" + content));
    parts.steps.emplace_back().pattern.emplace_back(encoding.pattern);
    parts.model = make_byte_pair_model(std::move(pairs));
    parts.end_of_text = encoding.end_of_text;
    return make_piece_tokenizer(std::move(parts));
  } catch (const DataError& error) {
    throw DataError(name + ": no usable rank file: " + error.what());
  }
}

}  // namespace saccade
