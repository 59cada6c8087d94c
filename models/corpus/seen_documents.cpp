#include "models/corpus/seen_documents.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <queue>
#include <string>
#include <vector>

#include "kernels/engine/error.h"
#include "models/corpus/sha256.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr size_t kKey = sizeof(DocumentKey), kPageKeys = 4096 / kKey, kMostFiles = 8;
static_assert(kKey == 16);

[[noreturn]] void fail(const fs::path& folder, const char* doing) {
  throw DataError(folder.string() + ": cannot " + doing + " the table of documents seen: " + std::strerror(errno));
}

/// Keys in ascending order in a file that has no name, with the first of every page in memory.
class SortedFile {
 public:
  explicit SortedFile(const fs::path& folder) : folder_(folder) {
    std::string name = (folder / ".seen-documents-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());
    if (descriptor_ < 0) fail(folder_, "make");
    ::unlink(name.c_str());
  }
  ~SortedFile() { ::close(descriptor_); }
  SortedFile(const SortedFile&) = delete;
  SortedFile& operator=(const SortedFile&) = delete;

  /// Keys that follow all before.
  void append(const DocumentKey* keys, size_t count) {
    for (size_t i = (kPageKeys - keys_ % kPageKeys) % kPageKeys; i < count; i += kPageKeys) firsts_.push_back(keys[i]);
    const char* at = reinterpret_cast<const char*>(keys);
    for (size_t left = count * kKey; left > 0;) {
      const ssize_t done = ::write(descriptor_, at, left);
      if (done < 0 && errno != EINTR) fail(folder_, "write");
      if (done > 0) at += done, left -= static_cast<size_t>(done);
    }
    keys_ += count;
  }

  size_t read(size_t first, DocumentKey* keys, size_t count) const {
    count = std::min(count, keys_ - first);
    char* at = reinterpret_cast<char*>(keys);
    auto offset = static_cast<off_t>(first * kKey);
    for (size_t left = count * kKey; left > 0;) {
      const ssize_t done = ::pread(descriptor_, at, left, offset);
      if (done == 0 || (done < 0 && errno != EINTR)) fail(folder_, "read");
      if (done > 0) at += done, offset += done, left -= static_cast<size_t>(done);
    }
    return count;
  }

  bool contains(const DocumentKey& key) const {
    const auto behind = std::upper_bound(firsts_.begin(), firsts_.end(), key);
    if (behind == firsts_.begin()) return false;
    std::array<DocumentKey, kPageKeys> page;
    const size_t count = read(static_cast<size_t>(behind - firsts_.begin() - 1) * kPageKeys, page.data(), kPageKeys);
    return std::binary_search(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(count), key);
  }

  size_t keys() const { return keys_; }
  size_t memory() const { return firsts_.capacity() * kKey; }
  void reserve(size_t keys) { firsts_.reserve(keys / kPageKeys + 1); }

 private:
  fs::path folder_;
  int descriptor_ = -1;
  size_t keys_ = 0;
  std::vector<DocumentKey> firsts_;
};

/// One after the other of a file's keys.
class SortedReader {
 public:
  SortedReader(const SortedFile& file, size_t buffer) : file_(&file), keys_(std::max<size_t>(buffer / kKey, kPageKeys)) { fill(); }
  bool done() const { return at_ == count_; }
  const DocumentKey& key() const { return keys_[at_]; }
  void next() {
    if (++at_ == count_) fill();
  }

 private:
  void fill() {
    at_ = 0;
    count_ = file_->read(read_, keys_.data(), keys_.size());
    read_ += count_;
  }
  const SortedFile* file_;
  std::vector<DocumentKey> keys_;
  size_t at_ = 0, count_ = 0, read_ = 0;
};

/// A bit in each of the eight words of one block; the keys are random bits already.
class BlockedFilter {
 public:
  explicit BlockedFilter(size_t bytes) : blocks_(std::max<size_t>(1, bytes / sizeof(Block))) {}
  void add(const DocumentKey& key) {
    Block& block = blocks_[place(key)];
    for (unsigned i = 0; i < 8; ++i) block[i] |= bit(key, i);
  }
  bool may_have(const DocumentKey& key) const {
    const Block& block = blocks_[place(key)];
    bool all = true;
    for (unsigned i = 0; i < 8; ++i) all &= (block[i] & bit(key, i)) != 0;
    return all;
  }
  size_t memory() const { return blocks_.size() * sizeof(Block); }

 private:
  using Block = std::array<uint32_t, 8>;
  size_t place(const DocumentKey& key) const { return static_cast<size_t>((key.high >> 32) * blocks_.size() >> 32); }
  static uint32_t bit(const DocumentKey& key, unsigned word) { return uint32_t{1} << (key.low >> (24 + 5 * word) & 31); }
  std::vector<Block> blocks_;
};

}  // namespace

struct SeenDocuments::Impl {
  fs::path folder;
  size_t memory, most_places;
  std::vector<DocumentKey> places = std::vector<DocumentKey>(64);  ///< the key of zeros: empty
  size_t used = 0;
  std::vector<std::unique_ptr<SortedFile>> files;
  std::unique_ptr<BlockedFilter> filter;  ///< of the keys on disk
  int64_t documents = 0, lookups = 0;

  static DocumentKey stored(DocumentKey key) {
    if (key == DocumentKey{}) key.low = 1;
    return key;
  }

  size_t place_of(const DocumentKey& key) const {
    size_t at = key.low & (places.size() - 1);
    while (places[at] != key && places[at] != DocumentKey{}) at = (at + 1) & (places.size() - 1);
    return at;
  }

  bool on_disk(const DocumentKey& key) {
    if (!filter || !filter->may_have(key)) return false;
    ++lookups;
    return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file->contains(key); });
  }

  void make_room() {
    if (4 * (used + 1) <= 3 * places.size()) return;
    if (places.size() < most_places) {
      std::vector<DocumentKey> old(2 * places.size());
      old.swap(places);
      for (const DocumentKey& key : old)
        if (key != DocumentKey{}) places[place_of(key)] = key;
      return;
    }
    write_out();
  }

  void write_out() {
    if (!filter) filter = std::make_unique<BlockedFilter>(memory - most_places * kKey - memory / 16);
    const auto end = std::remove(places.begin(), places.end(), DocumentKey{});
    std::sort(places.begin(), end);
    files.push_back(std::make_unique<SortedFile>(folder));
    files.back()->reserve(used);
    files.back()->append(places.data(), used);
    for (size_t i = 0; i < used; ++i) filter->add(places[i]);
    std::fill(places.begin(), places.end(), DocumentKey{});
    used = 0;
    if (files.size() == kMostFiles) merge();
  }

  void merge() {
    const size_t buffer = memory / 256;
    std::vector<SortedReader> readers;
    size_t all = 0;
    for (const auto& file : files) readers.emplace_back(*file, buffer), all += file->keys();
    const auto later = [&](size_t a, size_t b) { return readers[a].key() > readers[b].key(); };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> next(later);
    for (size_t i = 0; i < readers.size(); ++i)
      if (!readers[i].done()) next.push(i);
    auto merged = std::make_unique<SortedFile>(folder);
    merged->reserve(all);
    std::vector<DocumentKey> out;
    const size_t most = std::max<size_t>(buffer / kKey, kPageKeys);
    out.reserve(most);
    while (!next.empty()) {
      SortedReader& least = readers[next.top()];
      const size_t which = next.top();
      next.pop();
      out.push_back(least.key());
      if (out.size() == most) merged->append(out.data(), out.size()), out.clear();
      least.next();
      if (!least.done()) next.push(which);
    }
    merged->append(out.data(), out.size());
    files.clear();
    files.push_back(std::move(merged));
  }
};

DocumentKey document_key(std::string_view text) {
  const Digest digest = sha256(text);
  DocumentKey key;
  std::memcpy(&key.high, digest.data(), 8);
  std::memcpy(&key.low, digest.data() + 8, 8);
  return key;
}

SeenDocuments::SeenDocuments(fs::path folder, int64_t memory) : impl_(std::make_unique<Impl>()) {
  if (memory < kLeastMemory)
    throw UsageError("the table of documents seen takes at least " + std::to_string(kLeastMemory) + " bytes of memory, not " +
                     std::to_string(memory));
  impl_->folder = std::move(folder);
  impl_->memory = static_cast<size_t>(memory);
  impl_->most_places = std::bit_floor(impl_->memory / 2 / kKey);
}
SeenDocuments::~SeenDocuments() = default;

bool SeenDocuments::contains(const DocumentKey& document) {
  const DocumentKey key = Impl::stored(document);
  return impl_->places[impl_->place_of(key)] == key || impl_->on_disk(key);
}

bool SeenDocuments::insert(const DocumentKey& document) {
  const DocumentKey key = Impl::stored(document);
  if (contains(key)) return false;
  impl_->make_room();
  impl_->places[impl_->place_of(key)] = key;
  ++impl_->used;
  ++impl_->documents;
  return true;
}

SeenDocuments::Use SeenDocuments::use() const {
  Use use{impl_->documents, static_cast<int64_t>(impl_->places.capacity() * kKey + (impl_->filter ? impl_->filter->memory() : 0)), 0,
          static_cast<int64_t>(impl_->files.size()), impl_->lookups};
  for (const auto& file : impl_->files) {
    use.memory_bytes += static_cast<int64_t>(file->memory());
    use.disk_bytes += static_cast<int64_t>(file->keys() * kKey);
  }
  return use;
}

}  // namespace saccade
