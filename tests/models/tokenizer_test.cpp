#include <QtTest>
#include <filesystem>
#include <fstream>

#include "kernels/engine/error.h"
#include "kernels/engine/random.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/utf8.h"
#include "models/json.h"

namespace saccade::test {
namespace fs = std::filesystem;

class TokenizerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_.path() + "/cache").toUtf8());
    CorpusWriter writer("words");
    for (int i = 0; i < 400; ++i) {
      writer.add("a", Split::train, sentence(i));
      writer.add("b", Split::train, sentence(i + 7777));
    }
    writer.finish({}, Existing::refuse);
  }

  void round_trip_data() {
    QTest::addColumn<QString>("spec");
    for (const char* spec : {"bytes", "bpe:400", "unigram:400"}) QTest::newRow(spec) << spec;
  }
  void round_trip() {
    QFETCH(QString, spec);
    const auto tokenizer = open(spec.toStdString());
    QCOMPARE(tokenizer->name(), spec.toStdString());
    const std::vector<std::string> texts{"",
                                         "a",
                                         " ",
                                         "  two  spaces  ",
                                         "\n\n\tindented\r\n",
                                         "the chunk keeps the words",
                                         "größer, 你好, \U0001F600, \u2581 and \uFFFD",
                                         "▁▁ ▁",
                                         std::string("nul\0nul", 7),
                                         "broken \xff\xfe\xe2\x96 bytes \xed\xa0\x80",
                                         "</s><unk><0x41><s>",
                                         "int main() {\n    return 42;\n}\n",
                                         "Å ﬁ ｆｕｌｌ ①"};
    for (const std::string& text : texts) {
      const auto tokens = tokenizer->encode(text);
      QCOMPARE(tokenizer->decode(tokens), text);
      for (int32_t token : tokens) QVERIFY(token >= 0 && token < tokenizer->vocabulary() && token != tokenizer->end_of_text());
      std::string pieces;
      for (int32_t token : tokens) pieces += tokenizer->piece(token);
      QCOMPARE(pieces, text);
    }
    QCOMPARE(tokenizer->piece(tokenizer->end_of_text()), std::string("⏹"));
    QCOMPARE(tokenizer->piece(-1), std::string());
    QCOMPARE(tokenizer->decode(std::vector<int32_t>{tokenizer->end_of_text()}), std::string());
  }

  void trained_pieces_are_shorter_than_bytes() {
    const std::string text = sentence(12345);
    QVERIFY(open("bpe:400")->encode(text).size() * 2 < text.size());
    QVERIFY(open("unigram:400")->encode(text).size() * 2 < text.size());
    QCOMPARE(open("bpe:400")->vocabulary(), 400);
  }

  void training_is_deterministic_and_cached() {
    for (const char* spec : {"bpe:400", "unigram:400"}) {
      const std::string hash = open(spec)->hash();
      int messages = 0;
      const auto again = open_tokenizer(spec, Corpus::open("words"), {"a"}, [&](const std::string&) { ++messages; });
      QCOMPARE(messages, 0);  // from the cache
      fs::remove_all(cache_folder() / "tokenizers");
      QCOMPARE(open(spec)->hash(), hash);
      QCOMPARE(open(spec)->serialized(), again->serialized());
    }
    QVERIFY(open("bpe:400")->hash() != open("unigram:400")->hash());
    QVERIFY(open_tokenizer("bpe:400", Corpus::open("words"), {"b"})->hash() != open("bpe:400")->hash());
  }

  void model_files_load_as_elsewhere() {
    const std::string path = folder_.path().toStdString() + "/mine.model";
    std::ofstream(path, std::ios::binary) << open("bpe:400")->serialized();
    const auto loaded = open_tokenizer(path, Corpus::open("words"), {});
    QCOMPARE(loaded->name(), std::string("mine.model"));
    QCOMPARE(loaded->hash(), open("bpe:400")->hash());
    QCOMPARE(loaded->encode("the words"), open("bpe:400")->encode("the words"));
  }

  void damaged_models_are_data_errors_data() {
    QTest::addColumn<QByteArray>("content");
    const std::string model = open("bpe:400")->serialized();
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("text") << QByteArray("this is no model\n");
    QTest::newRow("json") << QByteArray("{\"model\": {\"type\": \"BPE\"}}");
    for (size_t size : {size_t{10}, model.size() / 2, model.size() - 1})
      QTest::addRow("cut at %zu", size) << QByteArray(model.data(), static_cast<int>(size));
    std::string type = model;
    type[type.find("\x18") + 1] = '\x09';
    QTest::newRow("unknown type") << QByteArray::fromStdString(type);
    std::string without = model;
    without.replace(without.find("</s>"), 4, "<x/>");
    QTest::newRow("no end of text") << QByteArray::fromStdString(without);
  }
  void damaged_models_are_data_errors() {
    QFETCH(QByteArray, content);
    const std::string path = folder_.path().toStdString() + "/damaged.model";
    std::ofstream(path, std::ios::binary) << content.toStdString();
    try {
      load_sentencepiece(path);
      QFAIL("no error");
    } catch (const DataError& error) {
      QVERIFY2(QString(error.what()).startsWith("damaged.model: "), error.what());
      QVERIFY(!QString(error.what()).contains('\n'));
    }
  }

  void a_damaged_cache_is_a_data_error() {
    open("bpe:400");
    for (const auto& entry : fs::directory_iterator(cache_folder() / "tokenizers")) {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(2000);
      file.put('\x01');
    }
    QVERIFY_THROWS_EXCEPTION(DataError, open("bpe:400"));
    fs::remove_all(cache_folder() / "tokenizers");
  }

  void wrong_names() {
    for (const char* spec : {"byte", "bpe", "bpe:", "bpe:many", "bpe:12x", "bpe:-4", "bpe:10", "unigram:99999999", "word:400"})
      QVERIFY_THROWS_EXCEPTION(UsageError, open(spec));
    QVERIFY_THROWS_EXCEPTION(DataError, open("/nowhere/tokenizer.model"));
    QVERIFY_THROWS_EXCEPTION(DataError, open("unigram:50000"));  // more pieces than this text can give
    QVERIFY_THROWS_EXCEPTION(DataError, open_tokenizer("bpe:400", Corpus::open("words"), {"c"}));
    QVERIFY_THROWS_EXCEPTION(DataError, train_sentencepiece("bpe", 400, [](std::string&) { return false; }));
  }

  void utf8_follows_rfc_3629() {
    QCOMPARE(valid_utf8("plain ascii of some length"), size_t(26));
    QCOMPARE(valid_utf8("ö€\U0001F600"), size_t(9));
    for (std::string_view bad : {"12345678\x80", "12345678\xc0\x80", "12345678\xe0\x80\x80", "12345678\xed\xa0\x80",
                                 "12345678\xf4\x90\x80\x80", "12345678\xf8", "12345678\xe2\x82"})
      QCOMPARE(valid_utf8(bad), size_t(8));
    QCOMPARE(utf8_floor("aö", 2), size_t(1));
    QCOMPARE(utf8_floor("aö", 9), size_t(3));
  }

 private:
  static std::unique_ptr<Tokenizer> open(const std::string& spec) { return open_tokenizer(spec, Corpus::open("words"), {"a"}); }

  static std::string sentence(int seed) {
    static const std::vector<std::string> syllables{"at",  "ten", "tion", "se",  "lect", "chunk", "to",
                                                    "ken", "re",  "turn", "lay", "er",   "mo",    "del"};
    const Random random(static_cast<uint64_t>(seed), "sentence");
    std::string text;
    for (uint64_t i = 0; i < 40; ++i) {
      const auto word = static_cast<uint64_t>(200 * random.uniform(2 * i) * random.uniform(2 * i + 1));  // frequent and rare ones
      for (uint64_t part = 0; part < 2 + word % 3; ++part) text += syllables[Random(word, "word").below(syllables.size(), part)];
      text += i % 10 == 9 ? ".\n" : " ";
    }
    return text;
  }

  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TokenizerTest)
#include "tokenizer_test.moc"
