#include <QtTest>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kernels/engine/error.h"
#include "kernels/engine/random.h"
#include "models/corpus/disk.h"
#include "models/corpus/piece_tokenizer.h"
#include "models/corpus/unigram_scores.h"
#include "models/corpus/vocabulary.h"
#include "models/json.h"

namespace saccade::test {
namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Files of Hugging Face's tokenizers and tiktoken. What they expect was made by those (tests/agreement/tokenizer_agreement.py --write).
class TokenizerFilesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tokens_are_those_of_the_reference_data() {
    QTest::addColumn<QString>("file");
    for (const auto& [file, tokens] : expected().at("tokens").items()) QTest::newRow(file.c_str()) << QString::fromStdString(file);
    QVERIFY(expected().at("tokens").size() >= 10);
  }
  void tokens_are_those_of_the_reference() {
    QFETCH(QString, file);
    const auto tokenizer = open_tokenizer_file((fixtures() / file.toStdString()).string());
    const auto again = parse_tokenizer(tokenizer->serialized(), tokenizer->name());  // as a run keeps it
    QCOMPARE(again->hash(), tokenizer->hash());
    const Json& lists = expected().at("tokens").at(file.toStdString());
    for (size_t i = 0; i < lists.size(); ++i) {
      const std::string text = expected().at("texts").at(i);
      for (const int32_t token : tokenizer->encode(text)) QVERIFY(token != tokenizer->end_of_text() && token < tokenizer->vocabulary());
      if (lists.at(i).is_null()) continue;  // a special token as text, which that program takes for the token
      const auto wanted = lists.at(i).get<std::vector<int32_t>>();
      QVERIFY2(tokenizer->encode(text) == wanted, text.c_str());
      QVERIFY(again->encode(text) == wanted);
    }
  }

  void any_bytes_are_decoded_as_they_were_data() {
    QTest::addColumn<QString>("file");
    for (const char* file : {"gpt2.json", "llama3.json", "cl100k_base.tiktoken", "p50k_base.tiktoken", "pair/vocab.json"})
      QTest::newRow(file) << file;
  }
  void any_bytes_are_decoded_as_they_were() {
    QFETCH(QString, file);
    const auto tokenizer = open_tokenizer_file((fixtures() / file.toStdString()).string());
    for (uint64_t seed = 0; seed < 200; ++seed) {
      std::string text;
      const Random random(seed, "bytes");
      for (uint64_t i = 0; i < seed; ++i) text += static_cast<char>(random.below(seed % 3 == 0 ? 256 : 128, i));
      const auto tokens = tokenizer->encode(text);
      QCOMPARE(tokenizer->decode(tokens), text);
      std::string pieces;
      for (const int32_t token : tokens) pieces += tokenizer->piece(token);
      QCOMPARE(pieces, text);
    }
    QCOMPARE(tokenizer->piece(tokenizer->end_of_text()), std::string("⏹"));
  }

  void llama_s_space_is_taken_away_again() {
    const auto tokenizer = open_tokenizer_file((fixtures() / "llama2.json").string());
    for (const char* text : {"the river", " the", "größer 你好", "\n\ta"})
      QCOMPARE(tokenizer->decode(tokenizer->encode(text)), std::string(text));
  }

  /// A long piece takes n log n, and threads share a tokenizer.
  void long_pieces_and_threads() {
    const auto tokenizer = open_tokenizer_file((fixtures() / "llama2.json").string());
    std::string text;
    for (int i = 0; i < 40000; ++i) text += "the river ";
    const auto alone = tokenizer->encode(text);
    QCOMPARE(tokenizer->decode(alone), text);
    std::vector<std::vector<int32_t>> found(4);
    std::vector<std::thread> threads;
    for (auto& tokens : found) threads.emplace_back([&] { tokens = tokenizer->encode(text); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& tokens : found) QVERIFY(tokens == alone);
  }

  void what_is_not_read_is_named_data() {
    QTest::addColumn<QString>("patch");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* patch, const char* named) { QTest::newRow(named) << patch << named; };
    row("{'pre_tokenizer': {'type': 'BertPreTokenizer'}}", "the pre-tokenizer \"BertPreTokenizer\" is not read here");
    row("{'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Digits'}]}}", "the pre-tokenizer \"Digits\" is not read here");
    row("{'normalizer': {'type': 'NFKC'}}", "the normalizer \"NFKC\" is not read here");
    row("{'normalizer': {'type': 'Replace', 'pattern': {'Regex': ' +'}, 'content': ' '}}", "the normalizer Replace with the pattern");
    row("{'model': {'type': 'WordPiece'}}", "the model of type \"WordPiece\" is not read here");
    row("{'model': {'dropout': 0.1}}", "the model's dropout 0.1 is not read here");
    row("{'model': {'end_of_word_suffix': '</w>'}}", "the model's end_of_word_suffix \"</w>\" is not read here");
    row("{'model': {'speed': 3}}", "the model has the field \"speed\", whose value 3 is not read here");
    row("{'pre_tokenizer': {'type': 'Split', 'behavior': 'Removed', 'pattern': {'Regex': 'a'}}}", "the behavior \"Removed\"");
    for (const char* pattern : {"\\\\w+", "^a", "a$", "[a[b]]", "[a&&b]", "a{1,3}+", "(?<n>a)", "\\\\bq"})
      QTest::newRow(pattern)
          << QStringLiteral("{'pre_tokenizer': {'type': 'Split', 'behavior': 'Isolated', 'pattern': {'Regex': '%1'}}}").arg(pattern)
          << "read in different ways";
    row("{'pre_tokenizer': {'type': 'Split', 'behavior': 'Isolated', 'pattern': {'Regex': 'a*'}}}", "may match nothing");
    row("{'pre_tokenizer': {'type': 'Split', 'behavior': 'Isolated', 'pattern': {'Regex': '(a'}}}", "its pattern is none at byte");
    row("{'added_tokens': []}", "it has no token that ends a text");
    row("{'model': {'merges': ['x y z']}}", "is not in the vocab");
    row("{'model': {'vocab': {'a': 4000000000}}}", "has the number 4000000000");
    row("{'model': {'vocab': {'a': 1, 'b': 1}}}", "two tokens have the number 1");
  }
  void what_is_not_read_is_named() {
    QFETCH(QString, patch);
    QFETCH(QString, named);
    Json file = Json::parse(read_file(fixtures() / "gpt2.json"));
    const Json change = Json::parse(patch.replace('\'', '"').toStdString());
    for (const auto& [key, value] : change.items())
      if (key == "model")
        for (const auto& [inner, set] : value.items()) file[key][inner] = set;
      else
        file[key] = value;
    if (patch.contains("added_tokens")) file["model"]["vocab"].erase("<|endoftext|>");
    refused(file.dump(), named);
  }

  /// Expected: what Hugging Face's program (tokenizers 0.23.3) writes when it has read these as scores, and how it cuts "aa".
  void scores_are_read_as_hugging_face_reads_them() {
    const std::vector<std::pair<const char*, double>> read{{"-7", -0x1.cp+2},
                                                           {"-1e1", -0x1.4p+3},
                                                           {"-2.5E-3", -0x1.47ae147ae147bp-9},
                                                           {"-8.715837574834853", -0x1.16e82433a53c9p+3},
                                                           {"-9.343525423345529", -0x1.2afe290753a29p+3},
                                                           {"-12.345678901234567890123", -0x1.8b0fcd32f707ap+3},
                                                           {"-123456789012345678901234.5", -0x1.a249b1f10a06cp+76},
                                                           {"-0.000000000000000000000000000012345678901234567", -0x1.f4ccdc0b84174p-97},
                                                           {"-1.7976931348623157e308", -0x1.fffffffffffffp+1023},
                                                           {"-4.9406564584124654e-324", -0x0.0000000000001p-1022},
                                                           {"-0.009909236861807003", -0x1.44b4b41ff8c01p-7}};
    for (const auto& [text, value] : read) QVERIFY2(serde_number(text) == value, text);
    Json file{
        {"added_tokens", {{{"id", 1}, {"content", "</s>"}, {"special", true}}}},
        {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", Json::array({{"<unk>", 0}, {"</s>", 0}, {"a", "X"}, {"aa", "Y"}})}}}};
    for (const auto& [one, two] : std::vector<std::pair<QString, QString>>{{"-5.8475533254276995", "-11.695106650855399"},
                                                                           {"-6.649646450940837", "-13.299292901881675"}}) {
      const QString text = QString::fromStdString(file.dump()).replace("\"X\"", one).replace("\"Y\"", two);
      QVERIFY(one.toDouble() * 2 == two.toDouble());  // of equals the longer token would be taken
      const auto tokenizer = parse_tokenizer_json(text.toStdString(), "tokenizer.json");
      QVERIFY(tokenizer->encode("aa") == std::vector<int32_t>({2, 2}));
    }
  }

  void damaged_and_hostile_files() {
    const std::string good = read_file(fixtures() / "unigram-bytes.json");
    for (size_t size = 0; size < good.size(); size += good.size() / 40)
      refused(good.substr(0, size), QStringLiteral("no usable tokenizer.json"));
    refused(std::string(100000, '['), QStringLiteral("values"), false);
    refused("{\"model\": " + std::string(200, '[') + std::string(200, ']') + "}", QStringLiteral("nested deeper"));
    refused("{" + std::string(7'000'000, ','), QStringLiteral("it has more than 6000000 values"));
    refused("{\"added_tokens\": [], \"added_tokens\": []}", QStringLiteral("is given twice"));
  }

  /// "<s>" of Llama 2; GPT-2's files know an end alone.
  void texts_begin() {
    QCOMPARE(open_tokenizer_file((fixtures() / "llama2.json").string())->begin_of_text(), 1);
    for (const char* file : {"gpt2.json", "unigram.json", "cl100k_base.tiktoken"}) {
      const auto tokenizer = open_tokenizer_file((fixtures() / file).string());
      QCOMPARE(tokenizer->begin_of_text(), tokenizer->end_of_text());
    }
  }

  void rank_files() {
    const std::string good = read_file(fixtures() / "cl100k_base.tiktoken");
    const auto tokenizer = parse_rank_file(good, "cl100k_base");
    QCOMPARE(tokenizer->vocabulary(), 100277);
    QCOMPARE(tokenizer->end_of_text(), 100257);
    QVERIFY(parse_rank_file(good, "o200k_base")->hash() != tokenizer->hash());
    for (const auto& [content, name, why] :
         std::vector<std::array<std::string, 3>>{{good, "mine.tiktoken", "expected one of gpt2, r50k_base"},
                                                 {good + "!!!! 5\n", "gpt2", "is not a token in base64"},
                                                 {good + "YWFh 50256\n", "gpt2", "rank 50256, which gpt2 does not have"},
                                                 {good + "YWFh 3\n", "gpt2", "stands there twice"},
                                                 {"YQ== 0\n", "gpt2", "byte 0 has no rank"}}) {
      try {
        parse_rank_file(content, name);
        QFAIL(why.c_str());
      } catch (const DataError& error) {
        QVERIFY2(std::string(error.what()).find(why) != std::string::npos, error.what());
      }
    }
  }

  /// The published rank file, where tiktoken has put it (its cache, by the SHA-1 of the address): it may not be shipped here.
  void numbers_of_p50k_base() {
    const fs::path file = cached_rank_file("ec7223a39ce59f226a68acc30dc1af2788490e15");
    if (file.empty()) QSKIP("no rank file of p50k_base in TIKTOKEN_CACHE_DIR, DATA_GYM_CACHE_DIR or the cache of tiktoken");
    const auto tokenizer = parse_rank_file(read_file(file), "p50k_base");
    QCOMPARE(tokenizer->vocabulary(), 50281);
    QVERIFY(tokenizer->encode("hello world") == std::vector<int32_t>({31373, 995}));
    QVERIFY(tokenizer->encode("        x") == std::vector<int32_t>({50262, 2124}));  // seven blanks, and the eighth with the letter
  }

  /// A rank file made here, with the published numbers of the two words, numbers behind the end of text for runs of blanks, and words that
  /// are joined in the order of their ranks. Any bytes come back.
  void numbers_of_a_small_rank_file() {
    const std::vector<std::pair<std::string, int>> words{{"hello", 31373}, {" world", 995}, {"ll", 260},   {"he", 261},   {"hell", 262},
                                                         {"os", 263},      {"lo", 264},     {"  ", 50257}, {"   ", 50258}};
    std::string ranks;
    const auto add = [&](const std::string& token, int rank) {
      ranks += QByteArray::fromStdString(token).toBase64().toStdString() + " " + std::to_string(rank) + "\n";
    };
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)), 255 - byte);  // numbers are ranks, not bytes
    for (const auto& [token, rank] : words) add(token, rank);
    const auto tokenizer = parse_rank_file(ranks, "p50k_base.tiktoken");
    const auto encoded = [&](const char* text) { return tokenizer->encode(text); };
    using Tokens = std::vector<int32_t>;
    QVERIFY(encoded("hello world") == (Tokens{31373, 995}));
    QVERIFY(encoded("hellos") == (Tokens{262, 263}));                   // ll, he, hell, os: the lowest rank first
    QVERIFY(encoded("llo") == (Tokens{260, 255 - 'o'}));                // not l and lo
    QVERIFY(encoded("   hello") == (Tokens{50257, 255 - ' ', 31373}));  // the last blank belongs to the next piece
    QVERIFY(encoded("<|endoftext|>").size() == 13);                     // as plain text
    QVERIFY(tokenizer->end_of_text() == 50256 && tokenizer->vocabulary() == 50281);
    for (uint64_t seed = 1; seed < 60; ++seed) {
      std::string text;
      const Random random(seed, "any bytes");
      for (uint64_t i = 0; i < 3 * seed; ++i)
        text += i % 5 == 0 ? words[random.below(words.size(), i)].first : std::string(1, static_cast<char>(random.below(256, i)));
      QCOMPARE(tokenizer->decode(tokenizer->encode(text)), text);
    }
  }

  /// Of one tokenizer, as a tokenizer.json, as a pair of files and as a rank file: the same pieces of a megabyte of text and code, whatever
  /// their numbers.
  void forms_of_one_tokenizer_agree() {
    const fs::path source = qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString();
    std::string text;
    for (const char* folder : {"docs", "models", "kernels"})
      for (const auto& entry : fs::recursive_directory_iterator(source / folder))
        if (const auto kind = entry.path().extension(); kind == ".md" || kind == ".cpp" || kind == ".h") text += read_file(entry.path());
    for (const Json& other : expected().at("texts")) text += other.get<std::string>();
    QVERIFY2(text.size() > 1'000'000, qPrintable(QString::number(text.size())));
    const auto pieces = [&](const char* file) {
      const auto tokenizer = open_tokenizer_file((fixtures() / file).string());
      std::vector<std::string> list;
      for (const int32_t token : tokenizer->encode(text)) list.push_back(tokenizer->piece(token));
      return list;
    };
    const std::vector<std::string> of_json = pieces("gpt2.json");
    QVERIFY(of_json.size() > 100'000 && of_json.size() < text.size());
    QVERIFY(pieces("r50k_base.tiktoken") == of_json && pieces("pair/vocab.json") == of_json);
    QVERIFY(pieces("llama3.json") == pieces("cl100k_base.tiktoken"));
  }

  void padded_vocabularies() {
    QCOMPARE(padded_vocabulary(50281, 128), 50304);
    QCOMPARE(padded_vocabulary(50304, 128), 50304);
    QCOMPARE(padded_vocabulary(257, 1), 257);
  }

 private:
  static fs::path fixtures() { return fs::path(qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString()) / "tests/fixtures/tokenizers"; }
  /// Empty where there is none.
  static fs::path cached_rank_file(const std::string& name) {
    for (const QString& folder :
         {qEnvironmentVariable("TIKTOKEN_CACHE_DIR"), qEnvironmentVariable("DATA_GYM_CACHE_DIR"), QDir::tempPath() + "/data-gym-cache"})
      if (const fs::path file = fs::path(folder.toStdString()) / name; !folder.isEmpty() && fs::is_regular_file(file)) return file;
    return {};
  }
  static const Json& expected() {
    static const Json all = Json::parse(read_file(fixtures() / "expected.json"));
    return all;
  }

  static void refused(const std::string& content, const QString& why, bool reason = true) {
    try {
      parse_tokenizer_json(content, "tokenizer.json");
      QFAIL("no error");
    } catch (const DataError& error) {
      const QString what = QString::fromUtf8(error.what());
      QVERIFY2(what.startsWith("tokenizer.json: ") && !what.contains('\n'), error.what());
      QVERIFY2(!reason || what.contains(why), error.what());
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TokenizerFilesTest)
#include "tokenizer_files_test.moc"
