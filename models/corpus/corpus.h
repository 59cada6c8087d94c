#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/corpus/tokenizer.h"

namespace saccade {

enum class Split { train, validation, test };
const char* to_string(Split split);

struct DomainInfo {
  std::string name;
  std::map<std::string, int64_t> documents, bytes;  ///< by split name
};

/// Text in domains and splits, imported once, kept under the user's data folder (`SACCADE_DATA`, else
/// $XDG_DATA_HOME/saccade, ~/.local/share/saccade) as corpora/NAME/.
class Corpus {
 public:
  /// `name` is an imported corpus, or a built-in one ("local-text", "task-copy", "task-mqar", "task-passkey"; tasks with
  /// settings as in tasks.h), which is made on first use, or the path of a folder of token shards (token_shards.h). Throws DataError when
  /// there is none or it is damaged.
  static Corpus open(const std::string& name, const std::function<void(const std::string&)>& progress = {});
  /// What stands for text where sequences are generated (models/tasks): a name and a hash, no domains.
  static Corpus generated(std::string name, std::string hash);

  const std::string& name() const { return name_; }
  const std::string& hash() const { return hash_; }  ///< SHA-256 over all documents, domains and splits
  const std::vector<DomainInfo>& domains() const { return domains_; }
  bool has_domain(const std::string& domain) const;
  /// One line: that the domain is missing, why if that is known (too little of it on this machine), and which there are.
  std::string missing_domain(const std::string& domain) const;
  /// Streams the documents of one domain and split in stored order; return false to stop.
  void each_document(const std::string& domain, Split split, const std::function<bool(std::string_view)>& visit) const;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::string name_, hash_;
  std::filesystem::path directory_;
  std::vector<DomainInfo> domains_;
};

struct CorpusSummary {
  std::string name, hash;
  bool built_in = false, present = false;
  std::vector<DomainInfo> domains;
  std::string problem;  ///< why it cannot be used, if so
};
std::vector<CorpusSummary> list_corpora();

struct ImportOptions {
  std::string name;
  std::vector<std::filesystem::path> sources;            ///< folders of text files, .txt, .jsonl, .jsonl.gz, .jsonl.zst
  std::string domain_field = "meta.redpajama_set_name";  ///< of JSON lines; where a record has none: the file's or folder's name
  std::string text_field = "text";
  std::map<std::string, std::string> rename;  ///< domain → domain ("RedPajamaGithub" → "github")
  double validation_share = 0.02, test_share = 0.02;
  bool use_file_splits = true;  ///< "web.train.jsonl.zst", "train/part-1.jsonl": the split in a file's or folder's name decides
  bool replace = false;         ///< a corpus of that name makes way
  int64_t min_bytes = 0;        ///< documents with less text are left out
  int64_t min_tokens = 0;       ///< likewise by the tokens of `tokenizer` ("bytes" or a file), where more than 0
  std::string tokenizer = "bytes";
  int64_t duplicates_memory = int64_t{2} << 30;  ///< bytes for telling duplicates; beyond them the corpora's folder helps (SeenDocuments)
  int64_t max_documents = 0, max_bytes = 0;      ///< the import ends before the corpus would have more; 0: no bound
};
struct ImportReport {
  int64_t documents = 0, bytes = 0, too_short = 0, duplicates = 0, invalid_utf8 = 0, malformed = 0;
  std::vector<std::string> problems;  ///< "file:line: what", the first hundred
};
/// Streams the sources into a new corpus; an interrupted import leaves nothing behind. Throws DataError, UsageError.
ImportReport import_corpus(const ImportOptions& options, const std::function<void(double fraction, const std::string&)>& progress = {});

/// "bytes", "bpe:4096", "unigram:8000" (trained on the train split of `domains`, cached), or a path (open_tokenizer_file).
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& spec, const Corpus& corpus, const std::vector<std::string>& domains,
                                          const std::function<void(const std::string&)>& progress = {});

/// Documents to take, by their tokens; end-of-text is not counted.
struct DocumentFilter {
  int64_t least = 0, most = 0;  ///< 0: no bound
  bool takes(int64_t tokens) const { return tokens >= least && (most == 0 || tokens <= most); }
};

/// Memory-mapped tokens of one domain and split, documents one after the other, each closed by end-of-text.
/// Made once per (corpus hash, tokenizer hash, filter) in the cache folder.
class TokenStore {
 public:
  static std::shared_ptr<const TokenStore> open(const Corpus& corpus, const std::string& domain, Split split, const Tokenizer& tokenizer,
                                                const std::function<void(const std::string&)>& progress = {}, DocumentFilter filter = {});
  ~TokenStore();
  int64_t size() const;
  std::string label() const;  ///< "prose.train", for messages
  void read(int64_t begin, std::span<int32_t> tokens) const;
  int32_t end_of_text() const;
  /// Where the documents end, each behind its end-of-text, ascending. The first call reads all tokens.
  const std::vector<int64_t>& document_ends() const;

 private:
  struct Map;
  struct Stored;
  struct Shards;
  std::unique_ptr<Map> map_;
  TokenStore();
};

/// What a sequence of T tokens holds. packed: text across documents, with end-of-text between them. document: end-of-text, as a mark of the
/// beginning, then the first tokens of one document; what is behind T is left out, and behind a shorter document's end the tokens are
/// end-of-text and the targets kNoTarget.
enum class Packing { packed, document };
Packing parse_packing(const std::string& name);  ///< "packed" or "document". Throws UsageError.
constexpr int32_t kNoTarget = -1;                ///< counts for nothing (linear_cross_entropy)

/// Sequences of T tokens with their targets, by number.
class SequenceStore {
 public:
  virtual ~SequenceStore() = default;
  virtual int64_t size() const = 0;                     ///< sequences
  virtual std::string label() const = 0;                ///< "prose.train", for messages
  virtual int64_t targets(int64_t sequence) const = 0;  ///< of a sequence, other than kNoTarget
  virtual void read(int64_t sequence, std::span<int32_t> tokens, std::span<int32_t> targets) const = 0;  ///< [T] each
};
/// Throws DataError where there is not one sequence.
std::shared_ptr<const SequenceStore> text_sequences(std::shared_ptr<const TokenStore> store, int64_t length, Packing packing);

/// Sequences of T tokens and their targets, in an order shuffled by seed; an epoch visits each once.
/// With weights every store gives its share of every kWeightedBlock sequences, in an order shuffled by seed, and goes through its own
/// sequences again and again, so that small ones come more often. The position is one number, so it resumes exactly.
class BatchSource {
 public:
  static constexpr int64_t kWeightedBlock = 1024;
  /// `weights`: one for each store, at least one positive; empty: every sequence of every store once in an epoch. Throws UsageError,
  /// DataError for a store with less text than a sequence.
  BatchSource(std::vector<std::shared_ptr<const TokenStore>> stores, int64_t sequence_length, uint64_t seed, bool shuffle = true,
              const std::vector<double>& weights = {}, Packing packing = Packing::packed);
  /// Of sequences of any kind.
  BatchSource(int64_t sequence_length, std::vector<std::shared_ptr<const SequenceStore>> stores, uint64_t seed, bool shuffle = true,
              const std::vector<double>& weights = {});
  bool weighted() const { return !quotas_.empty(); }
  /// Sequences that each store has given before a position; with weights only.
  std::vector<int64_t> taken(uint64_t position) const;
  /// Sequences in each store.
  std::vector<int64_t> sizes() const;
  int64_t sequences_per_epoch() const;
  /// Targets other than kNoTarget in the sequences from a position on.
  int64_t targets(uint64_t position, int64_t count) const;
  /// Fills tokens and targets, both [count, T] row-major: targets are the tokens one later.
  void next(int64_t count, std::span<int32_t> tokens, std::span<int32_t> targets);
  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position; }

 private:
  /// A sequence of a store.
  struct Place {
    size_t store;
    int64_t sequence;
  };
  Place place(uint64_t position) const;
  Place weighted_place(uint64_t position) const;
  /// The store of a number below kWeightedBlock, and how many of the store's come before it.
  Place share_of(uint64_t number) const;

  std::vector<std::shared_ptr<const SequenceStore>> stores_;
  std::vector<int64_t> quotas_;  ///< of each store in a block; empty without weights
  int64_t length_;
  uint64_t seed_;
  bool shuffle_;
  uint64_t position_ = 0;  ///< sequences handed out
};

/// User folders (XDG): data (corpora), cache (tokens, tokenizers), runs (default place of runs).
std::filesystem::path data_folder();
std::filesystem::path cache_folder();
std::filesystem::path runs_folder();

}  // namespace saccade
