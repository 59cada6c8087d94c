#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/corpus/sha256.h"

namespace saccade {

/// A corpus on disk:
///   corpus.json          name, hash, and per domain and split: documents, bytes, SHA-256; how it was made
///   DOMAIN.SPLIT.text    the documents, one after the other, UTF-8
///   DOMAIN.SPLIT.ends    where each ends in .text: 64-bit little-endian
/// The SHA-256 of a split is that of length (64-bit little-endian) and text of each document; the corpus hash is that of
/// domain, split, documents and split hash in sorted order.
struct SplitRecord {
  int64_t documents = 0, bytes = 0;
  std::string sha256;
};
using Manifest = std::map<std::pair<std::string, Split>, SplitRecord>;  ///< by domain and split; empty ones left out

std::filesystem::path corpora_folder();
std::filesystem::path text_path(const std::filesystem::path& corpus, const std::string& domain, Split split);
std::filesystem::path ends_path(const std::filesystem::path& corpus, const std::string& domain, Split split);

struct StoredCorpus {
  std::string name, hash;
  Manifest manifest;
};
/// Throws DataError when corpus.json is missing or damaged, or a file has not the size that it says.
StoredCorpus read_stored_corpus(const std::filesystem::path& directory);
/// What was given to CorpusWriter::finish.
nlohmann::json read_origin(const std::filesystem::path& directory);
std::vector<DomainInfo> domain_infos(const Manifest& manifest);

/// Streams documents into a new corpus. Without finish() nothing remains.
class CorpusWriter {
 public:
  explicit CorpusWriter(const std::string& name);
  ~CorpusWriter();
  /// `domain` must be plain (see plain_domain).
  void add(const std::string& domain, Split split, std::string_view text);
  int64_t documents() const { return documents_; }
  const Manifest& manifest() const { return manifest_; }  ///< counts so far; hashes come with finish()
  /// `origin` is kept in corpus.json. Returns the corpus hash.
  std::string finish(const nlohmann::json& origin, Existing existing);

 private:
  struct Stream;
  Stream& stream(const std::string& domain, Split split);
  std::string name_;
  StagedFolder folder_;
  Manifest manifest_;
  std::map<std::pair<std::string, Split>, std::unique_ptr<Stream>> streams_;
  int64_t documents_ = 0;
};

/// Lower case letters, digits, '.', '_', '+' and '-'; everything else becomes '-'. "GitHub Code" → "github-code".
std::string plain_domain(std::string_view name);
bool valid_corpus_name(std::string_view name);

}  // namespace saccade
