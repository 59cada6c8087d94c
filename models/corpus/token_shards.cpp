#include "models/corpus/token_shards.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <regex>

#include "kernels/engine/error.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/disk.h"
#include "models/corpus/sha256.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr size_t kHeader = 256 * sizeof(int32_t), kHashed = 64 << 10;

struct Format {
  int32_t magic, version;
  int token_bytes;
};
constexpr std::array<Format, 2> kFormats{{{20240520, 1, 2}, {20240801, 7, 4}}};

[[noreturn]] void refuse(const fs::path& path, const std::string& why) { throw DataError(path.string() + " is no token shard: " + why); }

/// Domain and split by the file's name.
TokenShard named(const fs::path& path) {
  static const std::regex form("(.+)_(train|val|validation|test)(_[0-9]+)?\\.bin");
  std::smatch parts;
  const std::string name = path.filename().string();
  if (!std::regex_match(name, parts, form)) refuse(path, "expected a name such as fineweb_train_000001.bin or fineweb_val_000000.bin");
  TokenShard shard{path, plain_domain(parts[1].str())};
  const std::string split = parts[2];
  shard.split = split == "train" ? Split::train : split == "test" ? Split::test : Split::validation;
  return shard;
}

void read_header(TokenShard& shard) {
  if (!fs::is_regular_file(shard.path)) refuse(shard.path, "it is no file");
  const MappedFile file(shard.path);
  const std::string_view bytes = file.bytes();
  if (bytes.size() < kHeader) refuse(shard.path, "it has " + std::to_string(bytes.size()) + " bytes, the header alone has 1024");
  std::array<int32_t, 3> head{};
  std::memcpy(head.data(), bytes.data(), sizeof head);
  const auto format = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return f.magic == head[0]; });
  if (format == kFormats.end())
    refuse(shard.path, "its magic number is " + std::to_string(head[0]) + ", expected 20240520 (2 bytes a token) or 20240801 (4 bytes)");
  if (format->version != head[1])
    refuse(shard.path, "it has version " + std::to_string(head[1]) + ", expected " + std::to_string(format->version));
  shard.token_bytes = format->token_bytes;
  shard.tokens = head[2];
  const auto stored = static_cast<int64_t>(bytes.size() - kHeader);
  if (shard.tokens < 1 || stored != shard.tokens * shard.token_bytes)
    refuse(shard.path, "it says " + std::to_string(shard.tokens) + " tokens of " + std::to_string(shard.token_bytes) +
                           " bytes, behind the " + "header are " + std::to_string(stored) + " bytes");
}

}  // namespace

bool names_token_shards(const std::string& corpus) { return corpus.starts_with('/'); }

std::vector<TokenShard> read_token_shards(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw DataError(folder.string() + ": there is no such folder of token shards");
  std::vector<TokenShard> shards;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".bin") shards.push_back(named(entry.path()));
  if (shards.empty()) throw DataError(folder.string() + " has no token shard, such as fineweb_train_000001.bin");
  std::sort(shards.begin(), shards.end(), [](const TokenShard& a, const TokenShard& b) { return a.path < b.path; });
  for (TokenShard& shard : shards) read_header(shard);
  return shards;
}

std::string hash_of(const std::vector<TokenShard>& shards) {
  Sha256 sha;
  sha.update("saccade token shards 1");
  for (const TokenShard& shard : shards) {
    const std::string name = shard.path.filename().string();
    const MappedFile file(shard.path);
    const std::string_view bytes = file.bytes();
    sha.update(name.size());
    sha.update(name);
    sha.update(bytes.size());
    for (const size_t begin : {size_t{0}, bytes.size() / 2, bytes.size() - std::min(bytes.size(), kHashed)})
      sha.update(bytes.substr(begin, kHashed));
  }
  return hex(sha.finish());
}

std::vector<DomainInfo> domains_of(const std::vector<TokenShard>& shards) {
  std::map<std::string, DomainInfo> domains;
  for (const TokenShard& shard : shards) {
    DomainInfo& info = domains[shard.domain];
    info.name = shard.domain;
    ++info.documents[to_string(shard.split)];
    info.bytes[to_string(shard.split)] += shard.tokens * shard.token_bytes;
  }
  std::vector<DomainInfo> list;
  for (auto& [name, info] : domains) list.push_back(std::move(info));
  return list;
}

struct ShardTokens::File {
  TokenShard shard;
  MappedFile file;
  int64_t first;  ///< number of its first token
  File(const TokenShard& s, int64_t number) : shard(s), file(s.path), first(number) {
    if (file.bytes().size() != kHeader + static_cast<size_t>(s.tokens * s.token_bytes)) refuse(s.path, "it has changed");
  }
};

ShardTokens::~ShardTokens() = default;

ShardTokens::ShardTokens(const std::vector<TokenShard>& shards, const std::string& domain, Split split, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer.name()), vocabulary_(tokenizer.vocabulary()), end_of_text_(tokenizer.end_of_text()) {
  for (const TokenShard& shard : shards) {
    if (shard.domain != domain || shard.split != split) continue;
    files_.push_back(std::make_unique<File>(shard, stored_));
    stored_ += shard.tokens;
  }
  if (stored_ == 0) return;
  int32_t first = 0, last = 0;
  read_stored(0, {&first, 1});
  read_stored(stored_ - 1, {&last, 1});
  skips_first_ = first == end_of_text_, closes_ = last != end_of_text_;
}

int64_t ShardTokens::size() const { return stored_ - (skips_first_ ? 1 : 0) + (closes_ ? 1 : 0); }

void ShardTokens::read_stored(int64_t number, std::span<int32_t> tokens) const {
  auto next = std::upper_bound(files_.begin(), files_.end(), number, [](int64_t n, const auto& file) { return n < file->first; }) - 1;
  while (!tokens.empty()) {
    const File& file = **next++;
    const int64_t at = number - file.first, count = std::min(static_cast<int64_t>(tokens.size()), file.shard.tokens - at);
    file.shard.token_bytes == 2 ? read_file<uint16_t>(file, at, tokens.first(static_cast<size_t>(count)))
                                : read_file<uint32_t>(file, at, tokens.first(static_cast<size_t>(count)));
    number += count;
    tokens = tokens.subspan(static_cast<size_t>(count));
  }
}

template <class Number>
void ShardTokens::read_file(const File& file, int64_t at, std::span<int32_t> tokens) const {
  const char* from = file.file.bytes().data() + kHeader + at * static_cast<int64_t>(sizeof(Number));
  for (size_t i = 0; i < tokens.size(); ++i) {
    Number value = 0;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    if (value >= static_cast<uint64_t>(vocabulary_))
      throw DataError(file.shard.path.string() + ": token " + std::to_string(at + static_cast<int64_t>(i)) + " is " +
                      std::to_string(value) + ", tokenizer " + tokenizer_ + " has " + std::to_string(vocabulary_) +
                      "; expected the tokenizer that made the shard");
    tokens[i] = static_cast<int32_t>(value);
  }
}

void ShardTokens::read(int64_t begin, std::span<int32_t> tokens) const {
  const int64_t first = begin + (skips_first_ ? 1 : 0), end = first + static_cast<int64_t>(tokens.size());
  if (end > stored_ && !tokens.empty()) {
    tokens.back() = end_of_text_;
    tokens = tokens.first(tokens.size() - 1);
  }
  read_stored(first, tokens);
}

}  // namespace saccade
