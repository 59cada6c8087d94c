#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "kernels/engine/parallel.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/crc32c.h"
#include "models/corpus/token_shards.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr char kMagic[] = "sactok02";
constexpr char kMagicWithoutChecks[] = "sactok01";  ///< of earlier versions, whose tokens had no checksum
constexpr int64_t kBlock = 8192;                    ///< tokens that one checksum covers

/// The file: this header (little-endian), then the tokens, then the CRC-32C (4 bytes) of every kBlock of them.
struct Header {
  char magic[8] = {};
  uint32_t header_bytes = sizeof(Header), token_bytes = 0;
  int64_t tokens = 0, vocabulary = 0, end_of_text = 0;
  char corpus[64] = {}, tokenizer[64] = {};   ///< their hashes
  uint32_t block = kBlock, blocks_check = 0;  ///< CRC-32C of the blocks' checksums
  uint8_t check[32] = {};                     ///< SHA-256 of the header up to here

  std::string_view checked() const { return {reinterpret_cast<const char*>(this), offsetof(Header, check)}; }
  std::string_view all() const { return {reinterpret_cast<const char*>(this), sizeof(Header)}; }
};
static_assert(sizeof(Header) == 8 + 8 + 24 + 128 + 8 + 32);

Header make_header(const Corpus& corpus, const Tokenizer& tokenizer, int64_t tokens, uint32_t blocks_check) {
  Header header;
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.blocks_check = blocks_check;
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
  TokenWriter(OutputFile& file, const Tokenizer& tokenizer, uint32_t token_bytes, DocumentFilter filter)
      : file_(file), tokenizer_(tokenizer), token_bytes_(token_bytes), filter_(filter) {}

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
      if (!filter_.takes(static_cast<int64_t>(tokens.size()))) continue;
      tokens.push_back(tokenizer_.end_of_text());
      write(tokens);
    }
    group_.clear();
    group_bytes_ = 0;
  }

  int64_t tokens() const { return tokens_; }

  /// Writes the checksums behind the tokens; returns that of themselves.
  uint32_t finish() {
    if (block_bytes_ > 0) close_block();
    const std::string_view all(reinterpret_cast<const char*>(checks_.data()), checks_.size() * sizeof(uint32_t));
    file_.write(all);
    return crc32c(all);
  }

 private:
  static constexpr size_t kGroup = 4 << 20;

  void write(const std::vector<int32_t>& tokens) {
    tokens_ += static_cast<int64_t>(tokens.size());
    if (token_bytes_ == 4) return write_bytes({reinterpret_cast<const char*>(tokens.data()), tokens.size() * 4});
    std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
    write_bytes({reinterpret_cast<const char*>(narrow.data()), narrow.size() * 2});
  }

  void write_bytes(std::string_view bytes) {
    file_.write(bytes);
    while (!bytes.empty()) {
      const size_t whole = static_cast<size_t>(kBlock) * token_bytes_, part = std::min(bytes.size(), whole - block_bytes_);
      check_ = crc32c(bytes.substr(0, part), check_);
      block_bytes_ += part;
      bytes.remove_prefix(part);
      if (block_bytes_ == whole) close_block();
    }
  }

  void close_block() {
    checks_.push_back(check_);
    check_ = 0;
    block_bytes_ = 0;
  }

  OutputFile& file_;
  const Tokenizer& tokenizer_;
  uint32_t token_bytes_;
  DocumentFilter filter_;
  std::vector<std::string> group_;
  size_t group_bytes_ = 0, block_bytes_ = 0;
  int64_t tokens_ = 0;
  std::vector<uint32_t> checks_;
  uint32_t check_ = 0;  ///< of the block begun
};

const SplitRecord* find_split(const StoredCorpus& stored, const std::string& domain, Split split) {
  const auto found = stored.manifest.find({domain, split});
  return found == stored.manifest.end() ? nullptr : &found->second;
}

void make_store(const fs::path& path, const Corpus& corpus, const std::string& domain, Split split, const Tokenizer& tokenizer,
                const std::function<void(const std::string&)>& progress, DocumentFilter filter) {
  const StoredCorpus stored = read_stored_corpus(corpus.directory());
  const SplitRecord* record = find_split(stored, domain, split);
  StagedFile staged(path);
  Header header = make_header(corpus, tokenizer, 0, 0);
  staged.file().write(header.all());
  TokenWriter writer(staged.file(), tokenizer, header.token_bytes, filter);
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
  const uint32_t blocks_check = writer.finish();
  header = make_header(corpus, tokenizer, writer.tokens(), blocks_check);
  staged.file().write_at(0, header.all());
  staged.commit();
}

/// Of an earlier version, whose tokens cannot be checked.
bool has_no_checks(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[8] = {};
  return file.read(magic, sizeof magic) && std::memcmp(magic, kMagicWithoutChecks, sizeof magic) == 0;
}

}  // namespace

/// Where tokens come from.
struct TokenStore::Map {
  virtual ~Map() = default;
  virtual int64_t size() const = 0;
  virtual std::string label() const = 0;
  virtual int32_t end_of_text() const = 0;
  virtual void read(int64_t begin, std::span<int32_t> tokens) const = 0;  ///< of those that there are
  virtual std::string where() const = 0;                                  ///< for messages
  [[noreturn]] virtual void damaged(const std::string& why) const { throw DataError(where() + ": " + why); }

  std::once_flag ends_found;
  std::vector<int64_t> ends;  ///< of documents
};

/// Token shards as they are.
struct TokenStore::Shards : Map {
  std::string path, name;
  int32_t end;
  ShardTokens tokens;

  Shards(const Corpus& corpus, const std::string& domain, Split split, const Tokenizer& tokenizer)
      : path(corpus.directory().string()),
        name(domain + "." + to_string(split)),
        end(tokenizer.end_of_text()),
        tokens(read_token_shards(corpus.directory()), domain, split, tokenizer) {}
  int64_t size() const override { return tokens.size(); }
  std::string label() const override { return name; }
  int32_t end_of_text() const override { return end; }
  void read(int64_t begin, std::span<int32_t> to) const override { tokens.read(begin, to); }
  std::string where() const override { return path + ", " + name; }
};

/// A file of the cache.
struct TokenStore::Stored : Map {
  fs::path path;
  MappedFile file;
  Header header{};
  std::unique_ptr<std::atomic<bool>[]> checked;  ///< of every block: its checksum was compared

  Stored(fs::path where, const Corpus& corpus, const Tokenizer& tokenizer) : path(std::move(where)), file(path) {
    if (file.bytes().size() < sizeof header) damaged("it has " + std::to_string(file.bytes().size()) + " bytes");
    std::memcpy(&header, file.bytes().data(), sizeof header);
    const Header expected = make_header(corpus, tokenizer, header.tokens, header.blocks_check);
    if (std::memcmp(&header, &expected, sizeof header) != 0) damaged("its header does not fit the corpus and the tokenizer");
    if (header.tokens < 0 || header.tokens > static_cast<int64_t>(file.bytes().size())) damaged("it is too short for its tokens");
    const size_t size = checks_begin() + static_cast<size_t>(blocks()) * sizeof(uint32_t);
    if (file.bytes().size() != size) damaged("it has " + std::to_string(file.bytes().size()) + " bytes, expected " + std::to_string(size));
    if (crc32c(file.bytes().substr(checks_begin())) != header.blocks_check) damaged("its checksums differ from theirs");
    checked = std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(blocks()));
  }

  int64_t blocks() const { return (header.tokens + kBlock - 1) / kBlock; }
  size_t checks_begin() const { return sizeof header + static_cast<size_t>(header.tokens) * header.token_bytes; }

  /// Compares the checksums of the blocks that these tokens lie in, each once.
  void check(int64_t begin, int64_t end) const {
    for (int64_t block = begin / kBlock; block * kBlock < end; ++block) {
      if (checked[static_cast<size_t>(block)].load(std::memory_order_relaxed)) continue;
      const auto bytes = static_cast<size_t>(kBlock) * header.token_bytes, first = static_cast<size_t>(block) * bytes;
      uint32_t expected = 0;
      std::memcpy(&expected, file.bytes().data() + checks_begin() + static_cast<size_t>(block) * sizeof expected, sizeof expected);
      const size_t size = std::min(bytes, checks_begin() - sizeof header - first);
      if (crc32c(file.bytes().substr(sizeof header + first, size)) != expected)
        damaged("tokens " + std::to_string(block * kBlock) + " to " + std::to_string(std::min(header.tokens, (block + 1) * kBlock) - 1) +
                " differ from their checksum");
      checked[static_cast<size_t>(block)].store(true, std::memory_order_relaxed);
    }
  }

  template <class Number>
  void read_as(int64_t begin, std::span<int32_t> tokens) const {
    check(begin, begin + static_cast<int64_t>(tokens.size()));
    const char* from = file.bytes().data() + sizeof header + begin * static_cast<int64_t>(sizeof(Number));
    for (size_t i = 0; i < tokens.size(); ++i) {
      Number token;
      std::memcpy(&token, from + i * sizeof token, sizeof token);
      if (token >= static_cast<uint64_t>(header.vocabulary))
        damaged("token " + std::to_string(begin + static_cast<int64_t>(i)) + " is " + std::to_string(token) + ", the vocabulary has " +
                std::to_string(header.vocabulary));
      tokens[i] = static_cast<int32_t>(token);
    }
  }

  int64_t size() const override { return header.tokens; }
  std::string label() const override { return path.stem().string(); }
  int32_t end_of_text() const override { return static_cast<int32_t>(header.end_of_text); }
  void read(int64_t begin, std::span<int32_t> tokens) const override {
    header.token_bytes == 2 ? read_as<uint16_t>(begin, tokens) : read_as<uint32_t>(begin, tokens);
  }
  std::string where() const override { return path.string(); }
  [[noreturn]] void damaged(const std::string& why) const override {
    throw DataError(path.string() + ": the token store is damaged: " + why + "; delete this file, it will be made again");
  }
};

TokenStore::TokenStore() = default;
TokenStore::~TokenStore() = default;

std::shared_ptr<const TokenStore> TokenStore::open(const Corpus& corpus, const std::string& domain, Split split, const Tokenizer& tokenizer,
                                                   const std::function<void(const std::string&)>& progress, DocumentFilter filter) {
  std::shared_ptr<TokenStore> store(new TokenStore);
  if (names_token_shards(corpus.name())) {
    if (!corpus.has_domain(domain)) throw DataError(corpus.missing_domain(domain));
    if (filter.least > 0 || filter.most > 0)
      throw UsageError("corpus " + corpus.name() + " is token shards; expected no least or greatest length of documents");
    store->map_ = std::make_unique<Shards>(corpus, domain, split, tokenizer);
    return store;
  }
  const bool filtered = filter.least > 0 || filter.most > 0;
  const std::string part = filtered ? "." + std::to_string(filter.least) + "-" + (filter.most > 0 ? std::to_string(filter.most) : "") : "";
  const fs::path path = cache_folder() / "tokens" / (corpus.hash().substr(0, 16) + "-" + tokenizer.hash().substr(0, 16)) /
                        (domain + "." + to_string(split) + part + ".tokens");
  remove_abandoned(path.parent_path());
  const bool old = has_no_checks(path);
  if (old && progress) progress("tokens of " + domain + " (" + to_string(split) + ") are made again: those stored had no checksums");
  if (old || !corpus.has_domain(domain) || !fs::exists(path)) make_store(path, corpus, domain, split, tokenizer, progress, filter);
  store->map_ = std::make_unique<Stored>(path, corpus, tokenizer);
  return store;
}

int64_t TokenStore::size() const { return map_->size(); }

std::string TokenStore::label() const { return map_->label(); }

int32_t TokenStore::end_of_text() const { return map_->end_of_text(); }

const std::vector<int64_t>& TokenStore::document_ends() const {
  constexpr int64_t kPart = 128 * kBlock;
  std::call_once(map_->ends_found, [&] {
    std::vector<std::vector<int64_t>> found(static_cast<size_t>((size() + kPart - 1) / kPart));
    parallel_for(static_cast<int64_t>(found.size()), [&](int64_t part) {
      std::vector<int32_t> tokens(static_cast<size_t>(std::min(kPart, size() - part * kPart)));
      read(part * kPart, tokens);
      for (size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] == end_of_text()) found[static_cast<size_t>(part)].push_back(part * kPart + static_cast<int64_t>(i) + 1);
    });
    for (const std::vector<int64_t>& part : found) map_->ends.insert(map_->ends.end(), part.begin(), part.end());
    if (size() > 0 && (map_->ends.empty() || map_->ends.back() != size())) map_->damaged("its last document has no end");
  });
  return map_->ends;
}

void TokenStore::read(int64_t begin, std::span<int32_t> tokens) const {
  if (begin < 0 || begin + static_cast<int64_t>(tokens.size()) > size())
    throw DataError(map_->where() + ": tokens " + std::to_string(begin) + " to " +
                    std::to_string(begin + static_cast<int64_t>(tokens.size())) + " asked for, there are " + std::to_string(size()));
  map_->read(begin, tokens);
}

}  // namespace saccade
