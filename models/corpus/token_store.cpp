#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"
#include "kernels/interruption.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

/// The file: this header (little-endian), then the tokens.
struct Header {
  char magic[8] = {'s', 'a', 'c', 't', 'o', 'k', '0', '1'};
  uint32_t header_bytes = sizeof(Header), token_bytes = 0;
  int64_t tokens = 0, vocabulary = 0, end_of_text = 0;
  char corpus[64] = {}, tokenizer[64] = {};  ///< their hashes
  uint8_t check[32] = {};                    ///< SHA-256 of the header up to here

  std::string_view checked() const { return {reinterpret_cast<const char*>(this), offsetof(Header, check)}; }
  std::string_view all() const { return {reinterpret_cast<const char*>(this), sizeof(Header)}; }
};
static_assert(sizeof(Header) == 8 + 8 + 24 + 128 + 32);

Header make_header(const Corpus& corpus, const Tokenizer& tokenizer, int64_t tokens) {
  Header header;
  header.token_bytes = tokenizer.vocabulary() <= std::numeric_limits<uint16_t>::max() + 1 ? 2 : 4;
  header.tokens = tokens;
  header.vocabulary = tokenizer.vocabulary();
  header.end_of_text = tokenizer.end_of_text();
  corpus.hash().copy(header.corpus, sizeof header.corpus);
  tokenizer.hash().copy(header.tokenizer, sizeof header.tokenizer);
  const Digest check = sha256(header.checked());
  std::memcpy(header.check, check.data(), check.size());
  return header;
}

/// Encodes documents in groups, several at a time, and writes them in their order.
class TokenWriter {
 public:
  TokenWriter(OutputFile& file, const Tokenizer& tokenizer, uint32_t token_bytes)
      : file_(file), tokenizer_(tokenizer), token_bytes_(token_bytes) {}

  void add(std::string_view document) {
    group_.emplace_back(document);  // a copy: the view ends with the visit
    group_bytes_ += document.size();
    if (group_bytes_ >= kGroup) flush();
  }

  void flush() {
    std::vector<std::vector<int32_t>> encoded(group_.size());
    parallel_for(static_cast<int64_t>(group_.size()), [&](int64_t i) {
      stop_here_if_asked();
      encoded[i] = tokenizer_.encode(group_[i]);
    });
    for (auto& tokens : encoded) {
      tokens.push_back(tokenizer_.end_of_text());
      write(tokens);
    }
    group_.clear();
    group_bytes_ = 0;
  }

  int64_t tokens() const { return tokens_; }

 private:
  static constexpr size_t kGroup = 4 << 20;

  void write(const std::vector<int32_t>& tokens) {
    tokens_ += static_cast<int64_t>(tokens.size());
    if (token_bytes_ == 4) return file_.write({reinterpret_cast<const char*>(tokens.data()), tokens.size() * 4});
    std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
    file_.write({reinterpret_cast<const char*>(narrow.data()), narrow.size() * 2});
  }

  OutputFile& file_;
  const Tokenizer& tokenizer_;
  uint32_t token_bytes_;
  std::vector<std::string> group_;
  size_t group_bytes_ = 0;
  int64_t tokens_ = 0;
};

const SplitRecord* find_split(const StoredCorpus& stored, const std::string& domain, Split split) {
  const auto found = stored.manifest.find({domain, split});
  return found == stored.manifest.end() ? nullptr : &found->second;
}

void make_store(const fs::path& path, const Corpus& corpus, const std::string& domain, Split split, const Tokenizer& tokenizer,
                const std::function<void(const std::string&)>& progress) {
  const StoredCorpus stored = read_stored_corpus(corpus.directory());
  const SplitRecord* record = find_split(stored, domain, split);
  StagedFile staged(path);
  Header header = make_header(corpus, tokenizer, 0);
  staged.file().write(header.all());
  TokenWriter writer(staged.file(), tokenizer, header.token_bytes);
  Sha256 sha;
  int64_t done = 0, told = 0;
  corpus.each_document(domain, split, [&](std::string_view document) {
    stop_here_if_asked();
    sha.update(document.size());
    sha.update(document);
    writer.add(document);
    done += static_cast<int64_t>(document.size());
    if (progress && done - told > (16 << 20)) {
      progress("tokens of " + domain + " (" + to_string(split) + "): " + std::to_string(done * 100 / record->bytes) + " %");
      told = done;
    }
    return true;
  });
  writer.flush();
  if (record && hex(sha.finish()) != record->sha256)
    throw DataError(text_path(corpus.directory(), domain, split).string() + ": the corpus is damaged: the text is not what was imported");
  header = make_header(corpus, tokenizer, writer.tokens());
  staged.file().write_at(0, header.all());
  staged.commit();
}

}  // namespace

struct TokenStore::Map {
  fs::path path;
  MappedFile file;
  Header header{};

  Map(fs::path where, const Corpus& corpus, const Tokenizer& tokenizer) : path(std::move(where)), file(path) {
    if (file.bytes().size() < sizeof header) damaged("it has " + std::to_string(file.bytes().size()) + " bytes");
    std::memcpy(&header, file.bytes().data(), sizeof header);
    const Header expected = make_header(corpus, tokenizer, header.tokens);
    if (std::memcmp(&header, &expected, sizeof header) != 0) damaged("its header does not fit the corpus and the tokenizer");
    const auto size = static_cast<int64_t>(sizeof header) + header.tokens * header.token_bytes;
    if (header.tokens < 0 || static_cast<int64_t>(file.bytes().size()) != size)
      damaged("it has " + std::to_string(file.bytes().size()) + " bytes, expected " + std::to_string(size));
  }

  template <class Stored>
  void read(int64_t begin, std::span<int32_t> tokens) const {
    const char* from = file.bytes().data() + sizeof header + begin * static_cast<int64_t>(sizeof(Stored));
    for (size_t i = 0; i < tokens.size(); ++i) {
      Stored token;
      std::memcpy(&token, from + i * sizeof token, sizeof token);
      if (token >= static_cast<uint64_t>(header.vocabulary))
        damaged("token " + std::to_string(begin + static_cast<int64_t>(i)) + " is " + std::to_string(token) + ", the vocabulary has " +
                std::to_string(header.vocabulary));
      tokens[i] = static_cast<int32_t>(token);
    }
  }

  [[noreturn]] void damaged(const std::string& why) const {
    throw DataError(path.string() + ": the token store is damaged: " + why + "; delete this file, it will be made again");
  }
};

TokenStore::TokenStore() = default;
TokenStore::~TokenStore() = default;

std::shared_ptr<const TokenStore> TokenStore::open(const Corpus& corpus, const std::string& domain, Split split, const Tokenizer& tokenizer,
                                                   const std::function<void(const std::string&)>& progress) {
  const fs::path path = cache_folder() / "tokens" / (corpus.hash().substr(0, 16) + "-" + tokenizer.hash().substr(0, 16)) /
                        (domain + "." + to_string(split) + ".tokens");
  remove_abandoned(path.parent_path());
  if (!corpus.has_domain(domain) || !fs::exists(path)) make_store(path, corpus, domain, split, tokenizer, progress);
  std::shared_ptr<TokenStore> store(new TokenStore);
  store->map_ = std::make_unique<Map>(path, corpus, tokenizer);
  return store;
}

int64_t TokenStore::size() const { return map_->header.tokens; }

std::string TokenStore::label() const { return map_->path.stem().string(); }

void TokenStore::read(int64_t begin, std::span<int32_t> tokens) const {
  if (begin < 0 || begin + static_cast<int64_t>(tokens.size()) > size())
    throw DataError(map_->path.string() + ": tokens " + std::to_string(begin) + " to " +
                    std::to_string(begin + static_cast<int64_t>(tokens.size())) + " asked for, there are " + std::to_string(size()));
  if (map_->header.token_bytes == 2)
    map_->read<uint16_t>(begin, tokens);
  else
    map_->read<uint32_t>(begin, tokens);
}

}  // namespace saccade
