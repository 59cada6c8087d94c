#include "models/corpus/token_shards.h"

#include <QtTest>
#include <cstring>
#include <fstream>

#include "kernels/engine/error.h"

namespace saccade::test {
namespace fs = std::filesystem;

class TokenShardsTest : public QObject {
  Q_OBJECT

  static constexpr int32_t kEnd = 256;  // of bytes

  fs::path put(const std::string& name, std::vector<int32_t> header, const std::vector<int32_t>& tokens, int bytes = 2) {
    header.resize(256);
    std::ofstream file(folder() / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(header.data()), 1024);
    for (const int32_t token : tokens) file.write(reinterpret_cast<const char*>(&token), bytes);
    return folder() / name;
  }
  fs::path shard(const std::string& name, const std::vector<int32_t>& tokens) {
    return put(name, {20240520, 1, static_cast<int32_t>(tokens.size())}, tokens);
  }
  fs::path folder() const { return folder_->path().toStdString(); }
  std::string refusal() const try {
    Corpus::open(folder().string());
    return "opened";
  } catch (const DataError& error) {
    return error.what();
  }
  static std::vector<int32_t> all(const TokenStore& store) {
    std::vector<int32_t> tokens(static_cast<size_t>(store.size()));
    store.read(0, tokens);
    return tokens;
  }

 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void files_are_one_stream() {
    shard("some_web_train_000002.bin", {5, 6, kEnd, 7});
    shard("some_web_train_000001.bin", {kEnd, 1, 2, kEnd, 3});
    shard("some_web_val_000000.bin", {kEnd, 9, kEnd});
    const Corpus corpus = Corpus::open(folder().string());
    QCOMPARE(corpus.domains().size(), size_t{1});
    QVERIFY(corpus.has_domain("some_web"));
    const auto tokenizer = make_byte_tokenizer();
    const auto store = TokenStore::open(corpus, "some_web", Split::train, *tokenizer);
    // The first document's mark is left out, the last one is closed.
    QCOMPARE(all(*store), (std::vector<int32_t>{1, 2, kEnd, 3, 5, 6, kEnd, 7, kEnd}));
    QCOMPARE(store->document_ends(), (std::vector<int64_t>{3, 7, 9}));
    std::vector<int32_t> part(3);
    store->read(2, part);
    QCOMPARE(part, (std::vector<int32_t>{kEnd, 3, 5}));
    store->read(6, part);
    QCOMPARE(part, (std::vector<int32_t>{kEnd, 7, kEnd}));
    QVERIFY_THROWS_EXCEPTION(DataError, store->read(7, part));
    QCOMPARE(all(*TokenStore::open(corpus, "some_web", Split::validation, *tokenizer)), (std::vector<int32_t>{9, kEnd}));
    QCOMPARE(TokenStore::open(corpus, "some_web", Split::test, *tokenizer)->size(), int64_t{0});
    QVERIFY_THROWS_EXCEPTION(DataError, TokenStore::open(corpus, "other", Split::train, *tokenizer));
    QVERIFY_THROWS_EXCEPTION(UsageError, TokenStore::open(corpus, "some_web", Split::train, *tokenizer, {}, {2, 0}));
    QVERIFY_THROWS_EXCEPTION(DataError, corpus.each_document("some_web", Split::train, [](std::string_view) { return true; }));
    BatchSource source({store}, 4, 1, false);
    QCOMPARE(source.sequences_per_epoch(), int64_t{2});
  }

  void four_bytes_a_token() {
    put("llama_train.bin", {20240801, 7, 3}, {128000, 70000, 5}, 4);
    const Corpus corpus = Corpus::open(folder().string());
    const auto tokenizer = make_symbol_tokenizer(128256);
    QCOMPARE(all(*TokenStore::open(corpus, "llama", Split::train, *tokenizer)), (std::vector<int32_t>{128000, 70000, 5, 0}));
    const auto store = [&] { return TokenStore::open(corpus, "llama", Split::train, *make_byte_tokenizer()); };
    QVERIFY_THROWS_EXCEPTION(DataError, store());  // tokens of another tokenizer
  }

  void the_hash_tells_other_tokens() {
    shard("a_train.bin", {1, 2, 3});
    const std::string first = Corpus::open(folder().string()).hash();
    QCOMPARE(first.size(), size_t{64});
    QCOMPARE(Corpus::open(folder().string()).hash(), first);
    shard("a_train.bin", {1, 2, 4});
    QVERIFY(Corpus::open(folder().string()).hash() != first);
  }

  void what_is_no_shard_is_refused_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("message");
    const auto file = [](std::vector<int32_t> header, int tokens) {
      header.resize(256);
      return QByteArray(reinterpret_cast<const char*>(header.data()), 1024) + QByteArray(tokens, 'a');
    };
    const auto row = [&](const char* what, const char* name, const QByteArray& bytes, const char* message) {
      QTest::newRow(what) << name << bytes << message;
    };
    row("empty", "a_train.bin", {}, "0 bytes");
    row("cut in the header", "a_train.bin", file({20240520, 1, 3}, 6).left(1000), "1000 bytes");
    row("magic", "a_train.bin", file({20240521, 1, 3}, 6), "magic number is 20240521");
    row("evaluation data of llm.c", "a_val.bin", file({20240522, 1, 3}, 6), "magic number is 20240522");
    row("version", "a_train.bin", file({20240520, 2, 3}, 6), "version 2, expected 1");
    row("version of the other", "a_train.bin", file({20240801, 1, 3}, 12), "version 1, expected 7");
    row("cut", "a_train.bin", file({20240520, 1, 4}, 6), "says 4 tokens");
    row("too long", "a_train.bin", file({20240520, 1, 2}, 6), "says 2 tokens");
    row("half a token", "a_train.bin", file({20240520, 1, 3}, 7), "are 7 bytes");
    row("none", "a_train.bin", file({20240520, 1, 0}, 0), "says 0 tokens");
    row("negative", "a_train.bin", file({20240520, 1, -3}, 6), "says -3 tokens");
    row("more than there could be", "a_train.bin", file({20240801, 7, 0x7fffffff}, 12), "says 2147483647 tokens");
    row("a name without a split", "tokens.bin", file({20240520, 1, 3}, 6), "expected a name such as");
    row("no file", "other.txt", "text", "has no token shard");
  }
  void what_is_no_shard_is_refused() {
    QFETCH(QString, name);
    QFETCH(QByteArray, bytes);
    QFETCH(QString, message);
    std::ofstream(folder() / name.toStdString(), std::ios::binary).write(bytes.data(), bytes.size());
    const QString said = QString::fromStdString(refusal());
    QVERIFY2(said.contains(message) && !said.contains('\n'), qPrintable(said));
  }

  void what_is_no_folder_is_refused() {
    const auto open = [](const fs::path& path) { Corpus::open(path.string()); };
    QVERIFY_THROWS_EXCEPTION(DataError, open(folder() / "missing"));
    QVERIFY_THROWS_EXCEPTION(UsageError, open("./shards"));
    fs::create_directory(folder() / "a_train.bin");
    QVERIFY(refusal().find("it is no file") != std::string::npos);
  }

 private:
  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TokenShardsTest)
#include "token_shards_test.moc"
