#include <QtTest>
#include <filesystem>
#include <fstream>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/json.h"

namespace saccade::test {
namespace fs = std::filesystem;

/// As many tokens as asked for; token = byte, scaled, so that it needs 4 bytes.
class WideTokenizer : public Tokenizer {
 public:
  int64_t vocabulary() const override { return 300000; }
  int32_t end_of_text() const override { return 299999; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    for (char c : text) tokens.push_back(1000 * static_cast<unsigned char>(c));
    return tokens;
  }
  std::string decode(std::span<const int32_t>) const override { return {}; }
  std::string piece(int32_t) const override { return {}; }
  std::string name() const override { return "wide"; }
  std::string hash() const override { return std::string(64, 'f'); }
};

class TokenStoreTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    qputenv("SACCADE_DATA", (folder_->path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_->path() + "/cache").toUtf8());
    CorpusWriter writer("small");
    writer.add("a", Split::train, "hello");
    writer.add("a", Split::train, "");
    writer.add("a", Split::train, "wörld");
    writer.finish({}, Existing::refuse);
  }

  void tokens_are_the_documents_each_closed() {
    const auto tokens = read_all(*open());
    const std::string second = "wörld";
    std::vector<int32_t> expected{'h', 'e', 'l', 'l', 'o', 256, 256};
    for (unsigned char c : second) expected.push_back(c);
    expected.push_back(256);
    QCOMPARE(tokens, expected);
  }

  void large_vocabularies_take_four_bytes() {
    const auto store = TokenStore::open(Corpus::open("small"), "a", Split::train, WideTokenizer());
    const auto tokens = read_all(*store);
    QCOMPARE(tokens.at(0), 1000 * 'h');
    QCOMPARE(tokens.at(5), 299999);
  }

  void a_split_without_documents_is_empty() {
    QCOMPARE(TokenStore::open(Corpus::open("small"), "a", Split::test, *make_byte_tokenizer())->size(), 0);
  }

  void the_cache_is_used_and_left_alone() {
    open();
    const auto written = fs::last_write_time(store_file());
    open();
    QCOMPARE(fs::last_write_time(store_file()).time_since_epoch().count(), written.time_since_epoch().count());
    QCOMPARE(std::distance(fs::directory_iterator(store_file().parent_path()), fs::directory_iterator()), 1);
  }

  void damage_is_a_data_error_data() {
    QTest::addColumn<int>("offset");
    QTest::addColumn<int>("cut");
    QTest::newRow("magic") << 0 << 0;
    QTest::newRow("count") << 16 << 0;
    QTest::newRow("checksum") << 170 << 0;
    QTest::newRow("truncated") << -1 << 1;
    QTest::newRow("header only in part") << -1 << 150;
    QTest::newRow("empty") << -1 << 100000;
  }
  void damage_is_a_data_error() {
    QFETCH(int, offset);
    QFETCH(int, cut);
    open();
    if (offset >= 0) overwrite(store_file(), offset);
    if (cut) fs::resize_file(store_file(), std::max<int64_t>(0, static_cast<int64_t>(fs::file_size(store_file())) - cut));
    QVERIFY_THROWS_EXCEPTION(DataError, open());
  }

  void a_token_beyond_the_vocabulary_is_a_data_error() {
    open();
    overwrite(store_file(), 209);  // second byte of the first token
    QVERIFY_THROWS_EXCEPTION(DataError, read_all(*open()));
  }

  /// Header, tokens and checksums: no bit can be turned over and other tokens come out, or the same in silence.
  void every_flipped_bit_is_noticed() {
    open();
    const std::string whole = read_file(store_file());
    for (size_t at = 0; at < whole.size(); ++at)
      for (const int bit : {0, 3, 7}) {
        std::string bad = whole;
        bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
        std::ofstream(store_file(), std::ios::binary) << bad;
        QVERIFY_THROWS_EXCEPTION(DataError, read_all(*open()));
      }
  }

  /// Blocks are checked where they are first read, at each end of one and at the last, shorter one.
  void blocks_are_checked_when_first_read() {
    CorpusWriter writer("large");
    writer.add("a", Split::train, std::string(30000, 'x'));
    writer.finish({}, Existing::refuse);
    const auto open_large = [] { return TokenStore::open(Corpus::open("large"), "a", Split::train, *make_byte_tokenizer()); };
    QCOMPARE(open_large()->size(), 30001);
    const std::string whole = read_file(store_file());
    for (const int64_t token : {0, 8191, 8192, 24575, 24576, 30000}) {
      std::string bad = whole;
      bad[static_cast<size_t>(208 + 2 * token)] ^= 1;
      std::ofstream(store_file(), std::ios::binary) << bad;
      const auto store = open_large();
      for (const int64_t block : {0, 1, 2, 3}) {
        std::vector<int32_t> tokens(block == 3 ? 1000 : 8192);
        const auto read = [&] { store->read(block * 8192, tokens); };
        if (block == token / 8192)
          QVERIFY_THROWS_EXCEPTION(DataError, read());
        else
          read();
      }
      std::vector<int32_t> both(9000);
      if (token < 16384) QVERIFY_THROWS_EXCEPTION(DataError, store->read(7500, both));
    }
  }

  /// Tokens that an earlier version stored without checksums are not used, but made again.
  void a_store_without_checksums_is_made_again() {
    const std::vector<int32_t> tokens = read_all(*open());
    std::string old = read_file(store_file());
    const std::string fresh = old;
    old.replace(0, 8, "sactok01");
    old.erase(168, 8);                          // the fields of the blocks
    old.resize(old.size() - sizeof(uint32_t));  // the one block's checksum
    old[200] ^= 1;                              // a token that is damaged
    std::ofstream(store_file(), std::ios::binary) << old;
    std::string said;
    const auto store =
        TokenStore::open(Corpus::open("small"), "a", Split::train, *make_byte_tokenizer(), [&](const std::string& line) { said = line; });
    QVERIFY(said.find("had no checksums") != std::string::npos);
    QCOMPARE(read_all(*store), tokens);
    QCOMPARE(read_file(store_file()), fresh);
  }

  void damaged_corpora_are_data_errors() {
    const fs::path corpus = corpora_folder() / "small";
    overwrite(corpus / "a.train.text", 1);
    QVERIFY_THROWS_EXCEPTION(DataError, open());  // the text has the right size, but not the right hash
    for (const auto& entry : fs::recursive_directory_iterator(folder_->path().toStdString() + "/cache")) QVERIFY(entry.is_directory());
    fs::resize_file(corpus / "a.train.text", 3);
    QVERIFY_THROWS_EXCEPTION(DataError, Corpus::open("small"));
    std::ofstream(corpus / "corpus.json") << "{\"format\": ";
    QVERIFY_THROWS_EXCEPTION(DataError, Corpus::open("small"));
    fs::remove(corpus / "corpus.json");
    QVERIFY_THROWS_EXCEPTION(DataError, Corpus::open("small"));
  }

  void unknown_names_are_errors() {
    QVERIFY_THROWS_EXCEPTION(DataError, Corpus::open("nothing"));
    QVERIFY_THROWS_EXCEPTION(UsageError, Corpus::open("../small"));
    QVERIFY_THROWS_EXCEPTION(DataError, TokenStore::open(Corpus::open("small"), "b", Split::train, *make_byte_tokenizer()));
    const auto store = open();
    std::vector<int32_t> tokens(2);
    QVERIFY_THROWS_EXCEPTION(DataError, store->read(store->size() - 1, tokens));
    QVERIFY_THROWS_EXCEPTION(DataError, store->read(-1, tokens));
  }

  void folders_follow_xdg() {
    qunsetenv("SACCADE_DATA");
    qunsetenv("SACCADE_CACHE");
    qunsetenv("SACCADE_RUNS");
    qputenv("HOME", "/somewhere");
    qputenv("XDG_DATA_HOME", "/xdg");
    qunsetenv("XDG_CACHE_HOME");
    QCOMPARE(data_folder(), fs::path("/xdg/saccade"));
    QCOMPARE(cache_folder(), fs::path("/somewhere/.cache/saccade"));
    QCOMPARE(runs_folder(), fs::path("/xdg/saccade/runs"));
    qputenv("XDG_DATA_HOME", "relative");
    qputenv("SACCADE_RUNS", "/runs");
    QCOMPARE(data_folder(), fs::path("/somewhere/.local/share/saccade"));
    QCOMPARE(runs_folder(), fs::path("/runs"));
    qunsetenv("HOME");
    qunsetenv("XDG_DATA_HOME");
    QVERIFY_THROWS_EXCEPTION(UsageError, data_folder());
  }

 private:
  static std::shared_ptr<const TokenStore> open() {
    return TokenStore::open(Corpus::open("small"), "a", Split::train, *make_byte_tokenizer());
  }

  static std::vector<int32_t> read_all(const TokenStore& store) {
    std::vector<int32_t> tokens(static_cast<size_t>(store.size()));
    store.read(0, tokens);
    return tokens;
  }

  fs::path store_file() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_->path().toStdString() + "/cache"))
      if (entry.path().extension() == ".tokens") return entry.path();
    return folder_->path().toStdString() + "/cache/tokens";
  }

  static void overwrite(const fs::path& path, int offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.put('\x5a');
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TokenStoreTest)
#include "token_store_test.moc"
