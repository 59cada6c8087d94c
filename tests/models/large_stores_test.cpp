#include <fcntl.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/crc32c.h"
#include "models/corpus/permutation.h"
#include "models/corpus/sha256.h"
#include "models/json.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// A file of zeros that takes no room on the disk, with something written here and there.
class SparseFile {
 public:
  SparseFile(const fs::path& path, int64_t size) : file_(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (file_ < 0 || ::ftruncate(file_, size) != 0) throw std::runtime_error("no sparse file: " + path.string());
  }
  ~SparseFile() { ::close(file_); }
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;
  void write(int64_t at, std::string_view bytes) const {
    if (::pwrite(file_, bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("a sparse file cannot be written");
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void write(int64_t at, Number number) const { write(at, std::string_view(reinterpret_cast<const char*>(&number), sizeof number)); }

 private:
  int file_;
};

/// Corpora and token stores of more than 2^32 bytes and tokens, made of holes: what lies behind is read from where it stands, by stores and
/// by the sequences that are drawn from them.
class LargeStoresTest : public QObject {
  Q_OBJECT

  static constexpr int64_t k32 = int64_t{1} << 32;
  using Marks = std::map<int64_t, uint16_t>;  ///< tokens other than 0, by position

  fs::path path(const QString& name) const { return folder_->filePath(name).toStdString(); }

  /// Every mark is read where it stands, and a zero at both sides of it.
  static void check_marks(const TokenStore& store, const Marks& marks) {
    for (const auto& [at, token] : marks) {
      const int64_t begin = std::max<int64_t>(0, at - 1), end = std::min(store.size(), at + 2);
      std::vector<int32_t> read(static_cast<size_t>(end - begin));
      store.read(begin, read);
      for (int64_t i = begin; i < end; ++i) {
        const auto mark = marks.find(i);
        const int32_t expected = mark == marks.end() ? 0 : mark->second;
        QVERIFY2(read[static_cast<size_t>(i - begin)] == expected, qPrintable(QString("token %1").arg(i)));
      }
    }
  }

  /// Sequences of one token, in their order: the numbers of sequences and of tokens are the same, and go beyond 2^32.
  static void check_sequences(const std::shared_ptr<const TokenStore>& store, const Marks& marks) {
    BatchSource source({store}, 1, 1, false);
    QCOMPARE(source.sequences_per_epoch(), store->size() - 1);
    for (const auto& [at, token] : marks) {
      if (at == 0) continue;
      for (const int64_t epoch : {0, 1}) {
        source.seek(static_cast<uint64_t>(epoch * source.sequences_per_epoch() + at - 1));
        std::vector<int32_t> tokens(1), targets(1);
        source.next(1, tokens, targets);
        QVERIFY2(targets[0] == token, qPrintable(QString("target %1: %2").arg(at).arg(targets[0])));
      }
    }
  }

  /// Shuffled ones come from the whole store, and none comes twice.
  static void check_shuffled(const std::shared_ptr<const TokenStore>& store) {
    const auto sequences = static_cast<uint64_t>(store->size() - 1);
    const Permutation order(sequences, 1, "data order", 0);
    std::set<uint64_t> drawn;
    int behind = 0;
    for (uint64_t i = 0; i < 4000; ++i) {
      const uint64_t number = order(sequences - 1 - i);
      QVERIFY(number < sequences && drawn.insert(number).second);
      behind += number >= static_cast<uint64_t>(k32);
    }
    const double share = static_cast<double>(sequences - static_cast<uint64_t>(k32)) / static_cast<double>(sequences);
    QVERIFY2(std::abs(behind / 4000.0 - share) < 0.04, qPrintable(QString("%1 of %2").arg(behind / 4000.0).arg(share)));
    BatchSource source({store}, 1, 1, true, {1.0});  // by weight; a position beyond 2^42 is one of a later epoch
    source.seek(uint64_t{1} << 42);
    std::vector<int32_t> tokens(2000), targets(2000);
    source.next(2000, tokens, targets);
    QCOMPARE(source.position(), (uint64_t{1} << 42) + 2000);
    QCOMPARE(source.taken(source.position()), (std::vector<int64_t>{(int64_t{1} << 42) + 2000}));
  }

 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    qputenv("SACCADE_DATA", folder_->filePath("data").toUtf8());
    qputenv("SACCADE_CACHE", folder_->filePath("cache").toUtf8());
  }

  void token_shards() {
    constexpr int64_t kEach = std::numeric_limits<int32_t>::max();
    const Marks marks{{0, 7},    {1, 8},        {kEach - 1, 9},         {kEach, 10},         {2 * kEach - 1, 11}, {k32 - 1, 12},
                      {k32, 13}, {k32 + 1, 14}, {2 * kEach + 1000, 15}, {3 * kEach - 2, 16}, {3 * kEach - 1, 256}};
    for (int64_t i = 0; i < 3; ++i) {
      const SparseFile file(path(QString("web_train_00000%1.bin").arg(i)), 1024 + 2 * kEach);
      for (const int32_t word : {0, 1, 2})
        file.write(4 * word, std::array{20240520, 1, static_cast<int32_t>(kEach)}[static_cast<size_t>(word)]);
      for (const auto& [at, token] : marks)
        if (at / kEach == i) file.write(1024 + 2 * (at % kEach), token);
    }
    const Corpus corpus = Corpus::open(folder_->path().toStdString());
    const auto store = TokenStore::open(corpus, "web", Split::train, *make_byte_tokenizer());
    QCOMPARE(store->size(), 3 * kEach);
    check_marks(*store, marks);
    check_sequences(store, marks);
    check_shuffled(store);
    std::vector<int32_t> across(5);
    QVERIFY_THROWS_EXCEPTION(DataError, store->read(3 * kEach - 4, across));
  }

  /// The file as token_store.cpp describes it, with the checksum of every 8192 tokens.
  void a_token_store() {
    constexpr int64_t kHeader = 208, kBlock = 8192, kTokens = k32 + 3 * kBlock + 5, kBlocks = (kTokens + kBlock - 1) / kBlock;
    const Marks marks{{0, 7}, {k32 - 1, 12}, {k32, 13}, {k32 + 1, 14}, {k32 + kBlock, 15}, {kTokens - 1, 256}};
    CorpusWriter writer("small");
    writer.add("a", Split::train, "hello");
    writer.finish({}, Existing::refuse);
    const auto open = [] { return TokenStore::open(Corpus::open("small"), "a", Split::train, *make_byte_tokenizer()); };
    open();
    const fs::path file = only_store();
    std::string header(kHeader, '\0');
    std::ifstream(file, std::ios::binary).read(header.data(), kHeader);
    fs::remove(file);

    std::vector<uint32_t> checks(kBlocks, crc32c(std::string(2 * kBlock, '\0')));
    std::map<int64_t, std::string> blocks{{kBlocks - 1, std::string(2 * (kTokens % kBlock), '\0')}};
    for (const auto& [at, token] : marks) {
      std::string& block = blocks.try_emplace(at / kBlock, std::string(2 * kBlock, '\0')).first->second;
      std::memcpy(block.data() + 2 * (at % kBlock), &token, sizeof token);
    }
    for (const auto& [number, block] : blocks) checks[static_cast<size_t>(number)] = crc32c(block);
    const std::string_view all_checks(reinterpret_cast<const char*>(checks.data()), 4 * checks.size());
    const uint32_t checks_check = crc32c(all_checks);
    std::memcpy(header.data() + 16, &kTokens, sizeof kTokens);
    std::memcpy(header.data() + 172, &checks_check, sizeof checks_check);
    const Digest digest = sha256(std::string_view(header).substr(0, 176));
    std::memcpy(header.data() + 176, digest.data(), digest.size());
    const SparseFile made(file, kHeader + 2 * kTokens + static_cast<int64_t>(all_checks.size()));
    made.write(0, header);
    made.write(kHeader + 2 * kTokens, all_checks);
    for (const auto& [number, block] : blocks) made.write(kHeader + 2 * kBlock * number, block);

    const auto store = open();
    QCOMPARE(store->size(), kTokens);
    check_marks(*store, marks);
    check_sequences(store, marks);
    made.write(kHeader + 2 * (k32 + 2 * kBlock), uint16_t{5});
    std::string why;
    try {
      std::vector<int32_t> read(1);
      open()->read(k32 + 2 * kBlock + 9, read);
    } catch (const DataError& error) {
      why = error.what();
    }
    QVERIFY2(why.find("tokens " + std::to_string(k32 + 2 * kBlock) + " to ") != why.npos, why.c_str());
  }

  void a_corpus() {
    CorpusWriter writer("long");
    writer.add("a", Split::train, "");
    writer.add("a", Split::train, "behind");
    writer.finish({}, Existing::refuse);
    const fs::path corpus = corpora_folder() / "long";
    const int64_t first = k32 + 10, all = first + 6;
    {
      const SparseFile text(text_path(corpus, "a", Split::train), all);
      text.write(0, std::string_view("\0\0\0\0\0\0", 6));
      text.write(first, std::string_view("behind"));
      const SparseFile ends(ends_path(corpus, "a", Split::train), 16);
      ends.write(0, first), ends.write(8, all);
    }
    nlohmann::json manifest = nlohmann::json::parse(std::ifstream(corpus / "corpus.json"));
    manifest["domains"]["a"]["train"]["bytes"] = all;
    std::ofstream(corpus / "corpus.json") << manifest.dump();
    const Corpus opened = Corpus::open("long");
    QCOMPARE(opened.domains().at(0).bytes.at("train"), all);
    std::vector<int64_t> sizes;
    std::string last;
    opened.each_document("a", Split::train, [&](std::string_view document) {
      sizes.push_back(static_cast<int64_t>(document.size()));
      last = document.substr(document.size() - 6);
      return true;
    });
    QCOMPARE(sizes, (std::vector<int64_t>{first, 6}));
    QCOMPARE(last, std::string("behind"));
  }

 private:
  static fs::path only_store() {
    for (const auto& entry : fs::recursive_directory_iterator(cache_folder() / "tokens"))
      if (entry.path().extension() == ".tokens") return entry.path();
    return {};
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LargeStoresTest)
#include "large_stores_test.moc"
