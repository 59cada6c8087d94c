#pragma once
#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace saccade {

/// The first 16 bytes of a document's SHA-256. Documents with the same key are taken for the same; that two of 6e8 different ones share
/// theirs has a probability of 5e-22.
struct DocumentKey {
  uint64_t high = 0, low = 0;
  auto operator<=>(const DocumentKey&) const = default;
};
DocumentKey document_key(std::string_view text);

/// Which documents came before: exact, within a bound on memory. Keys stand in an open table; when that is full they go to disk, sorted,
/// and a Bloom filter (in blocks: arXiv:2101.01719) tells for most new documents that none of those on disk is theirs. What it does not
/// tell is looked up there, one page of 4 KiB a sorted file, of which there are at most eight.
class SeenDocuments {
 public:
  static constexpr int64_t kLeastMemory = 16 << 10;
  /// `memory`: bytes, at least kLeastMemory, that table, filter and buffers take at most together; the places of pages on disk come to
  /// that, a sixteenth of a byte a document. Files without a name are made in `folder` when they are needed, which take 16 bytes a document
  /// and while they are merged twice that. Throws UsageError.
  SeenDocuments(std::filesystem::path folder, int64_t memory);
  ~SeenDocuments();

  /// Whether the document is new; it is seen from now on. Throws DataError where the disk is full.
  bool insert(const DocumentKey& key);
  bool contains(const DocumentKey& key);

  struct Use {
    int64_t documents = 0;
    int64_t memory_bytes = 0;  ///< held now
    int64_t disk_bytes = 0, files = 0;
    int64_t lookups = 0;  ///< of documents on disk, that the filter did not save
  };
  Use use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade
