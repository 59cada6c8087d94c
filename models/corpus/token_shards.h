#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/corpus/corpus.h"

namespace saccade {

/// Token shards as llm.c and modded-nanogpt write them: 256 little-endian 32-bit integers, of which the first three are the magic number,
/// the version and the number of tokens, then the tokens. Version 1 of 20240520 has 2 bytes a token (GPT-2), version 7 of 20240801 has 4
/// (Llama 3); documents begin with end-of-text. Source: github.com/karpathy/llm.c, dev/data/data_common.py.
///
/// A folder of them is a corpus: its name is the path. Files are DOMAIN_train_000001.bin and so on; _val_ and _test_ are the other splits,
/// and the number may be missing.
struct TokenShard {
  std::filesystem::path path;
  std::string domain;
  Split split = Split::train;
  int64_t tokens = 0;
  int token_bytes = 2;
};

/// Whether a corpus' name is the path of a folder of shards: it begins with a slash, so that runs go on from any folder.
bool names_token_shards(const std::string& corpus);
/// Every .bin file of a folder, sorted by name; headers and sizes are checked. Throws DataError, of one line, for a folder without any, a
/// file whose name says no split, another magic number or version, a count that is not that of the file's tokens.
std::vector<TokenShard> read_token_shards(const std::filesystem::path& folder);
/// SHA-256 over names, sizes, and of each file its first, middle and last 64 KiB: tells other data, not every damage.
std::string hash_of(const std::vector<TokenShard>& shards);
/// Files stand for documents, which are not counted.
std::vector<DomainInfo> domains_of(const std::vector<TokenShard>& shards);

/// The tokens of one domain and split, one file behind the other, mapped.
class ShardTokens {
 public:
  /// Documents end with end-of-text: that of the first one's beginning is left out, and one stands behind the last.
  ShardTokens(const std::vector<TokenShard>& shards, const std::string& domain, Split split, const Tokenizer& tokenizer);
  ~ShardTokens();
  int64_t size() const;
  /// Throws DataError, with the file, for a token that the tokenizer does not have.
  void read(int64_t begin, std::span<int32_t> tokens) const;

 private:
  struct File;
  void read_stored(int64_t number, std::span<int32_t> tokens) const;
  template <class Number>
  void read_file(const File& file, int64_t at, std::span<int32_t> tokens) const;

  std::vector<std::unique_ptr<File>> files_;
  std::string tokenizer_;
  int64_t vocabulary_ = 0, stored_ = 0;
  int32_t end_of_text_ = 0;
  bool skips_first_ = false, closes_ = false;
};

}  // namespace saccade
