#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QtTest>
#include <filesystem>
#include <fstream>
#include <set>

#include "models/config/config.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/document_reader.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/message.h"
#include "tests/support/packed.h"

namespace saccade::test {
namespace fs = std::filesystem;

namespace {

std::string line(const std::string& text, const std::string& set) {
  return "{\"text\": \"" + text + "\", \"meta\": {\"redpajama_set_name\": \"" + set + "\"}}\n";
}

std::string numbered(int from, int count, const std::string& set) {
  std::string lines;
  for (int i = from; i < from + count; ++i) lines += line("document number " + std::to_string(i), set);
  return lines;
}

}  // namespace

class CorpusImportTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    qputenv("SACCADE_DATA", (folder_->path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_->path() + "/cache").toUtf8());
  }

  void slimpajama_form_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QByteArray>("content");
    const std::string a = numbered(0, 300, "RedPajamaC4"), b = numbered(300, 100, "RedPajamaGithub");
    QTest::newRow("plain") << "part-0.jsonl" << QByteArray::fromStdString(a + b);
    QTest::newRow("gzip members") << "part-0.jsonl.gz" << QByteArray::fromStdString(gzip(a) + gzip(b));
    QTest::newRow("zstd frames") << "part-0.jsonl.zst" << QByteArray::fromStdString(zstd(a) + zstd(b));
    QTest::newRow("no last line end") << "part-0.jsonl" << QByteArray::fromStdString((a + b).substr(0, (a + b).size() - 1));
    QTest::newRow("carriage returns") << "part-0.jsonl" << QByteArray::fromStdString(a + b).replace("\n", "\r\n\r\n");
  }
  void slimpajama_form() {
    QFETCH(QString, name);
    QFETCH(QByteArray, content);
    const fs::path file = write(name.toStdString(), content.toStdString());
    const ImportReport report = import({file});
    QCOMPARE(report.documents, 400);
    QCOMPARE(report.malformed + report.invalid_utf8 + report.duplicates, 0);
    const Corpus corpus = Corpus::open("mine");
    QCOMPARE(documents(corpus, "c4").size(), size_t(300));
    QCOMPARE(documents(corpus, "github").size(), size_t(100));
    QCOMPARE(documents(corpus, "github").count("document number 399"), size_t(1));
    static std::string hash = corpus.hash();  // the same for every form
    QCOMPARE(corpus.hash(), hash);
  }

  void splits_follow_the_hash_and_their_shares() {
    const fs::path file = write("a.jsonl", numbered(0, 5000, "x"));
    const auto shares = [](double validation, double test) {
      return [=](ImportOptions& o) { o.validation_share = validation, o.test_share = test, o.replace = true; };
    };
    import({file}, shares(0.1, 0.2));
    const DomainInfo info = Corpus::open("mine").domains().at(0);
    QVERIFY(std::abs(info.documents.at("validation") - 500) < 100);
    QVERIFY(std::abs(info.documents.at("test") - 1000) < 130);
    const std::string hash = Corpus::open("mine").hash();
    import({file}, shares(0.1, 0.2));
    QCOMPARE(Corpus::open("mine").hash(), hash);
    import({file}, shares(0.2, 0.2));
    QVERIFY(Corpus::open("mine").hash() != hash);
  }

  void splits_in_names_decide() {
    write("set/web.train.jsonl", numbered(0, 10, "RedPajamaCommonCrawl"));
    write("set/web.validation.jsonl", numbered(10, 5, "RedPajamaCommonCrawl"));
    write("set/test/part.jsonl", numbered(15, 3, "RedPajamaCommonCrawl"));
    write("set/README.md", "not a document");
    import({folder() / "set"});
    const DomainInfo info = Corpus::open("mine").domains().at(0);
    QCOMPARE(info.name, std::string("web"));
    QCOMPARE(info.documents, (std::map<std::string, int64_t>{{"train", 10}, {"validation", 5}, {"test", 3}}));
  }

  void domains_come_from_fields_names_and_folders() {
    const auto fields = [](ImportOptions& o) { o.domain_field = "source", o.text_field = "content.body"; };
    const auto replace = [](ImportOptions& o) { o.replace = true; };
    const auto rename = [](ImportOptions& o) {
      o.replace = true;
      o.rename["prose"] = "text";
      o.rename["b"] = "text";
    };
    write("a/code-0001.jsonl", "{\"content\": {\"body\": \"one\"}, \"source\": \"Rust Code\"}\n{\"content\": {\"body\": \"two\"}}\n");
    import({folder() / "a"}, fields);
    QCOMPARE(names(), (std::vector<std::string>{"code", "rust-code"}));
    write("b/prose/1.txt", "one");
    write("b/prose/deep/2.txt", "two");
    write("b/3.txt", "three");
    import({folder() / "b"}, replace);
    QCOMPARE(names(), (std::vector<std::string>{"b", "prose"}));
    import({folder() / "b"}, rename);
    QCOMPARE(names(), (std::vector<std::string>{"text"}));
    QCOMPARE(documents(Corpus::open("mine"), "text").size(), size_t(3));
  }

  void duplicates_are_dropped_over_all_domains() {
    const fs::path file = write("a.jsonl", line("same", "A") + line("same", "B") + line("other", "B") + line("same", "A"));
    const ImportReport report = import({file});
    QCOMPARE(report.documents, 2);
    QCOMPARE(report.duplicates, 2);
    QCOMPARE(documents(Corpus::open("mine"), "a").count("same"), size_t(1));
  }

  void bad_lines_are_counted_named_and_skipped() {
    const fs::path file = write("a.jsonl", line("good", "x") + "{\"text\": \"cut\n" + "[1]\n" + "{\"txt\": \"a\"}\n" + "{\"text\": 5}\n" +
                                               "{\"text\": \"\xff\"}\n\n" + line("", "x") +
                                               "{\"text\": \"b\", \"meta\": {\"redpajama_set_name\": 3}}\n" + line("also good", "x"));
    const ImportReport report = import({file});
    QCOMPARE(report.documents, 2);
    QCOMPARE(report.invalid_utf8, 1);
    QCOMPARE(report.malformed, 6);
    QCOMPARE(report.problems.at(0), file.string() + ":2: no JSON");
    QVERIFY(report.problems.at(3).starts_with(file.string() + ":5: \"text\" is a number"));
    QVERIFY(report.problems.at(4).starts_with(file.string() + ":6: invalid UTF-8 at byte 11"));
    QCOMPARE(report.problems.at(5), file.string() + ":8: an empty document");
  }

  /// A zero byte is no text, wherever it stands.
  void zero_bytes_are_refused_in_json_lines_too() {
    const fs::path file = write("a.jsonl", line("good", "x") + line(std::string("bad \\") + "u0000 byte", "x") + line("also good", "x"));
    const ImportReport report = import({file});
    QCOMPARE(report.documents, 2);
    QCOMPARE(report.malformed, 1);
    QCOMPARE(report.problems.at(0), file.string() + ":2: a zero byte: this is no text");
  }

  void tables_in_binary_forms_are_refused_by_name() {
    for (const char* name : {"part.arrow", "part.feather"}) {
      const fs::path file = write(name, "ARROW1 and more");
      try {
        import({file});
        QFAIL(name);
      } catch (const DataError& error) {
        QVERIFY2(QString(error.what()).contains("files are not read; expected text, or JSON lines"), error.what());
        QVERIFY2(QString(error.what()).contains("python3 -c \"import pandas; pandas.read_"), error.what());
      }
    }
    nothing_left();
  }

  void tables_with_named_columns() {
    const std::string csv = "id,text,kind\r\n1,plain,web\r\n2,\"with, comma and \"\"quotes\"\"\nand a line\",web\r\n\r\n3,ends,web\r\n";
    for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{{"t.csv", csv}, {"t.csv.gz", gzip(csv)}}) {
      const ImportReport report = import({write(name, content)}, [](ImportOptions& options) { options.replace = true; });
      QCOMPARE(report.documents, 3);
      QVERIFY(documents(Corpus::open("mine"), "t") ==
              (std::multiset<std::string>{"plain", "with, comma and \"quotes\"\nand a line", "ends"}));
    }
    const ImportReport report =
        import({write("t.tsv", "body\tkind\na, b\tx\nshort\nc\ty\nopen \"q\" \tx\n\"never closed\tx\n")}, [](ImportOptions& options) {
          options.replace = true;
          options.text_field = "body";
          options.domain_field = "kind";
        });
    QCOMPARE(report.documents, 3);
    QCOMPARE(report.malformed, 2);
    QVERIFY2(QString::fromStdString(report.problems.at(0)).endsWith("t.tsv:3: 1 values, the first row has 2"),
             report.problems.at(0).c_str());
    QVERIFY2(QString::fromStdString(report.problems.at(1)).endsWith("t.tsv:6: a quote that is not closed"), report.problems.at(1).c_str());
    QVERIFY(documents(Corpus::open("mine"), "x") == (std::multiset<std::string>{"a, b", "open \"q\" "}));
  }

  /// A row of a table decides over no memory: values beyond its columns are counted only.
  void rows_of_separators_are_counted() {
    const ImportReport report = import({write("a.csv", "text,kind\n" + std::string(30'000'000, ',') + "\nplain,x\n")});
    QCOMPARE(report.documents, 1);
    QVERIFY2(QString::fromStdString(report.problems.at(0)).endsWith("a.csv:2: 30000001 values, the first row has 2"),
             report.problems.at(0).c_str());
    const auto replace = [](ImportOptions& options) { options.replace = true; };
    QString message = message_of<DataError>([&] { import({write("b.csv", std::string(70'000, ',') + "\n1\n")}, replace); });
    QVERIFY2(message.endsWith("more than 65536 columns"), qPrintable(message));
    QCOMPARE(::mkfifo((folder() / "pipe.txt").c_str(), 0600), 0);
    message = message_of<DataError>([&] { import({folder() / "pipe.txt"}, replace); });
    QVERIFY2(message.endsWith("is no regular file"), qPrintable(message));
  }

  void tables_among_text_are_text() {
    write("mixed/a.txt", "some text");
    write("mixed/b.csv", "x,y\n1,2\n");
    QCOMPARE(import({folder() / "mixed"}).documents, 2);
    QVERIFY(documents(Corpus::open("mine"), "mixed").contains("x,y\n1,2\n"));
    write("tables/b.csv", "text,y\nhello,2\n");
    import({folder() / "tables"}, [](ImportOptions& options) { options.replace = true;
  });
  QVERIFY(documents(Corpus::open("mine"), "b").contains("hello"));
}

  void lengths_and_sizes_filter() {
  std::string lines;
  for (int i = 1; i <= 50; ++i) lines += line(std::string(static_cast<size_t>(i), 'a'), "x");
  const fs::path file = write("a.jsonl", lines);
  const auto with = [&](const std::function<void(ImportOptions&)>& change) {
    return import({file}, [&](ImportOptions& options) {
      options.replace = true;
      change(options);
    });
  };
  const ImportReport bytes = with([](ImportOptions& options) { options.min_bytes = 11; });
  QCOMPARE(bytes.documents, 40);
  QCOMPARE(bytes.too_short, 10);
  QCOMPARE(with([](ImportOptions& options) { options.min_tokens = 21; }).documents, 30);
  QCOMPARE(with([](ImportOptions& options) { options.max_documents = 7; }).documents, 7);
  const ImportReport most = with([](ImportOptions& options) { options.max_bytes = 10; });
  QCOMPARE(most.bytes, 10);  // 1 + 2 + 3 + 4
  QVERIFY_THROWS_EXCEPTION(UsageError, with([](ImportOptions& options) { options.min_bytes = -1; }));
}

/// By domain how many documents were too short, and by what measure, stands in the corpus; a corpus without a least length says nothing.
void what_is_too_short_is_counted_by_domain() {
  std::string lines;
  for (int i = 1; i <= 30; ++i) lines += line(std::string(static_cast<size_t>(i), 'a'), i % 3 ? "RedPajamaC4" : "RedPajamaGithub");
  lines += line("no", "only short");
  const fs::path file = write("a.jsonl", lines);
  import({file}, [](ImportOptions& options) { options.min_tokens = 11, options.min_bytes = 2, options.rename["c4"] = "web";
});
const nlohmann::json origin = read_origin(corpora_folder() / "mine");
QCOMPARE(origin.at("too_short").get<int>(), 11);
QVERIFY2(origin.at("too_short_by_domain") == nlohmann::json({{"web", 7}, {"github", 3}, {"only-short", 1}}), origin.dump().c_str());
QVERIFY(origin.at("min_tokens") == 11 && origin.at("min_bytes") == 2 && origin.at("tokenizer") == "bytes");
QCOMPARE(origin.at("tokenizer_hash").get<std::string>(), make_byte_tokenizer()->hash());
QVERIFY(!Corpus::open("mine").has_domain("only-short"));
  import({file}, [](ImportOptions& options) { options.replace = true;
  }  // namespace saccade::test
);
for (const char* key : {"too_short", "too_short_by_domain", "min_tokens", "min_bytes", "tokenizer"})
  QVERIFY(!read_origin(corpora_folder() / "mine").contains(key));
}

/// Every preset of resources/presets finds its domains in what the import makes of the published files: SlimPajama's chunks with
/// RedPajama's set names, FineWeb's files as JSON lines. The others train on this machine's own text.
void presets_find_their_domains() {
  std::string pajama;
  for (const char* set : {"RedPajamaCommonCrawl", "RedPajamaC4", "RedPajamaGithub", "RedPajamaBook", "RedPajamaArXiv", "RedPajamaWikipedia",
                          "RedPajamaStackExchange"})
    for (int i = 0; i < 200; ++i) pajama += line(std::string(set) + " document " + std::to_string(i), set);
  write("slimpajama/train/chunk1/example_train_0.jsonl.zst", zstd(pajama));
  ImportOptions options;
  options.name = "slimpajama";
  options.sources = {fs::path(folder_->path().toStdString()) / "slimpajama"};
  options.use_file_splits = false;
  import_corpus(options);
  std::string web;
  for (int i = 0; i < 200; ++i)
    web += nlohmann::json{{"text", "page " + std::to_string(i) + " of the web"}, {"id", "urn"}, {"dump", "CC-MAIN-2013-20"}, {"url", "u"}}
               .dump() +
           "\n";
  write("fineweb/000_00000.jsonl", web);
  options.name = "fineweb";
  options.sources = {fs::path(folder_->path().toStdString()) / "fineweb"};
  import_corpus(options);
  const auto bytes = make_byte_tokenizer();
  int slimpajama = 0, fineweb = 0;
  const QDir presets(qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/resources/presets");
  for (const QString& file : presets.entryList({"*.json"}, QDir::Files, QDir::Name)) {
    const RunConfig config = load_config(presets.filePath(file).toStdString());
    if (config.data.corpus == "local-text" || !config.data.task.empty()) continue;
    const Corpus corpus = Corpus::open(config.data.corpus);
    ++(corpus.name() == "fineweb" ? fineweb : slimpajama);
    for (const auto* domains : {&config.data.train, &config.data.ood})
      for (const std::string& domain : *domains) {
        QVERIFY2(corpus.has_domain(domain), qPrintable(file + " names " + QString::fromStdString(domain)));
        for (const Split split : {Split::train, Split::validation}) QVERIFY(TokenStore::open(corpus, domain, split, *bytes)->size() > 0);
      }
  }
  QVERIFY(slimpajama >= 28 && fineweb >= 12);
}

void long_texts_are_cut_at_paragraphs() {
  std::string text;
  for (int i = 0; text.size() < 2 * kLongestText; ++i) text += "paragraph " + std::to_string(i) + "\n\n";
  import({write("long.txt", text)});
  const auto parts = documents(Corpus::open("mine"), "long");
  QCOMPARE(parts.size(), size_t(3));
  size_t bytes = 0;
  for (const auto& part : parts) {
    QVERIFY(part.starts_with("paragraph ") && part.ends_with("\n\n") && part.size() <= kLongestText + 4);
    bytes += part.size();
  }
  QCOMPARE(bytes, text.size());
}

void damaged_and_missing_sources_are_data_errors_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<QByteArray>("content");
  const std::string lines = numbered(0, 5000, "x");
  const auto row = [](const char* title, const char* name, const std::string& content) {
    QTest::newRow(title) << name << QByteArray::fromStdString(content);
  };
  row("gzip cut short", "a.jsonl.gz", gzip(lines).substr(0, 5000));
  row("zstd cut short", "a.jsonl.zst", zstd(lines).substr(0, 5000));
  row("zstd header only", "a.jsonl.zst", zstd(lines).substr(0, 4));
  row("no gzip", "a.jsonl.gz", lines);
  row("no zstd", "a.jsonl.zst", lines);
  std::string damaged = gzip(lines);
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
  row("damaged gzip", "a.jsonl.gz", damaged);
  damaged = zstd(lines);
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
  row("damaged zstd", "a.jsonl.zst", damaged + damaged);
  row("empty", "a.jsonl", "");
  row("nothing but errors", "a.jsonl", "no json\n{}\n");
  row("binary", "a.txt", std::string("\0\1\2", 3));
  row("empty text", "a.txt", "");
}
void damaged_and_missing_sources_are_data_errors() {
  QFETCH(QString, name);
  QFETCH(QByteArray, content);
  const fs::path file = write(name.toStdString(), content.toStdString());
  QVERIFY_THROWS_EXCEPTION(DataError, import({file}));
  nothing_left();
}

void wrong_options() {
  const fs::path file = write("a.jsonl", line("x", "x"));
  const auto usage = [&](const std::function<void(ImportOptions&)>& change) {
    QVERIFY_THROWS_EXCEPTION(UsageError, import({file}, change));
  };
  usage([](ImportOptions& o) { o.name = "../up"; });
  usage([](ImportOptions& o) { o.name = ""; });
  usage([](ImportOptions& o) { o.name = "local-text"; });
  usage([](ImportOptions& o) { o.name = "task-copy.seed-2"; });
  usage([](ImportOptions& o) { o.validation_share = 0.6, o.test_share = 0.6; });
  usage([](ImportOptions& o) { o.test_share = -0.1; });
  usage([](ImportOptions& o) { o.rename["x"] = "//"; });
  usage([](ImportOptions& o) { o.sources.clear(); });
  QVERIFY_THROWS_EXCEPTION(DataError, import({folder() / "missing"}));
  fs::create_directory(folder() / "empty");
  QVERIFY_THROWS_EXCEPTION(DataError, import({folder() / "empty"}));
  const auto no_such_field = [](ImportOptions& o) { o.domain_field = "meta.source"; };
  QVERIFY_THROWS_EXCEPTION(DataError, import({file}, no_such_field));
  nothing_left();
  import({file});
  usage([](ImportOptions&) {});  // it exists now
  QCOMPARE(documents(Corpus::open("mine"), "x").size(), size_t(1));
}

void too_many_domains_are_a_data_error() {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += line("document " + std::to_string(i), "d" + std::to_string(i));
  QVERIFY_THROWS_EXCEPTION(DataError, import({write("a.jsonl", lines)}));
  nothing_left();
}

void an_interrupted_import_leaves_the_old_corpus() {
  const fs::path file = write("a.jsonl", numbered(0, 20000, "x"));
  struct Stop {};
  ImportOptions options;
  options.name = "mine";
  options.sources = {file};
  QVERIFY_THROWS_EXCEPTION(Stop, import_corpus(options, [](double, const std::string&) { throw Stop(); }));
  nothing_left();
  import({write("b.jsonl", line("old", "x"))});
  options.replace = true;
  QVERIFY_THROWS_EXCEPTION(Stop, import_corpus(options, [](double, const std::string&) { throw Stop(); }));
  QCOMPARE(documents(Corpus::open("mine"), "x"), (std::multiset<std::string>{"old"}));
}

void what_a_killed_import_left_is_removed() {
  fs::create_directories(folder() / "data/corpora/.other.aside-99999");
  write("data/corpora/.other.aside-99999/x.train.text", "half");
  import({write("a.jsonl", line("x", "x"))});
  QVERIFY(!fs::exists(folder() / "data/corpora/.other.aside-99999"));
}

void a_full_disk_is_a_data_error() {
  const fs::path file = write("a.jsonl", numbered(0, 20000, "x"));
  const QString message = message_of<DataError>([&] {
    const FileSizeLimit limit(100'000);
    import({file});
  });
  QVERIFY2(message.contains("x.train.text: cannot write: File too large"), qPrintable(message));
  nothing_left();
}

void memory_does_not_grow_with_the_file() {
  std::string lines;
  const std::string text(100'000, 'a');
  for (int i = 0; i < 2000; ++i) lines += line(text + std::to_string(i), "x");  // 200 MB
  const fs::path file = write("a.jsonl.zst", zstd(lines));
  lines = std::string();
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak from here on
  const int64_t before = memory("VmRSS:");
  import({file});
  const int64_t peak = memory("VmHWM:");
  QVERIFY2(peak - before < 50'000, qPrintable(QString("%1 kB before, peak %2 kB").arg(before).arg(peak)));
}

/// Only links to files of the same folder are followed; the others are named.
void links_out_of_a_folder_are_left_out() {
  const fs::path outside = write("outside/secret.txt", "a secret that is nobody's text");
  const fs::path inside = write("set/web/page.txt", "a page of the web, imported once");
  fs::create_symlink(outside, folder() / "set" / "web" / "stolen.txt");
  fs::create_symlink("/nowhere/at/all", folder() / "set" / "web" / "dangling.txt");
  fs::create_directory_symlink(outside.parent_path(), folder() / "set" / "books");
  fs::create_symlink("page.txt", folder() / "set" / "web" / "same.txt");
  const ImportReport report = import({folder() / "set"});
  QCOMPARE(report.documents, int64_t{1});
  QCOMPARE(report.duplicates, int64_t{1});  // the link inside was followed
  for (const char* name : {"stolen.txt: left out, a link out of the folder", "dangling.txt: left out, a link that leads nowhere",
                           "books: left out, a link out of the folder"})
    QVERIFY2(std::any_of(report.problems.begin(), report.problems.end(), [&](const std::string& p) { return p.ends_with(name); }), name);
  fs::remove_all(folder() / "data" / "corpora");
  QCOMPARE(import({folder() / "set" / "books"}).documents, int64_t{1});  // a link that somebody names is meant
}

void a_key_that_stands_twice_is_malformed() {
  const ImportReport report = import(
      {write("a.jsonl", "{\"text\": \"one\", \"text\": \"two\"}\n" + std::string("{\"text\": \"x\", \"meta\": {\"a\": 1, \"a\": 2}}\n") +
                            "{\"text\": \"good\", \"meta\": {\"text\": 1}}\n")});
  QCOMPARE(report.documents, int64_t{1});
  QCOMPARE(report.malformed, int64_t{2});
  QVERIFY(report.problems.front().find("the key \"text\" twice") != std::string::npos);
}

/// What killed processes left aside goes when the next one works in that folder; what a live one holds stays.
void files_left_aside_are_removed() {
  import({write("a.jsonl", numbered(0, 40, "web"))});
  const Corpus corpus = Corpus::open("mine");
  const auto tokenizer = make_byte_tokenizer();
  TokenStore::open(corpus, "web", Split::train, *tokenizer);
  fs::path store;
  for (const auto& entry : fs::recursive_directory_iterator(folder() / "cache" / "tokens"))
    if (entry.is_regular_file()) store = entry.path();
  const fs::path left = store.string() + ".aside-999999999-1", held = store.string() + ".aside-999999998-1",
                 foreign = store.parent_path() / "notes.aside-mine";
  for (const fs::path& path : {left, held, foreign}) std::ofstream(path) << "half";
  const int lock = ::open(held.c_str(), O_RDWR);
  QCOMPARE(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const fs::path corpora = folder() / "data" / "corpora";
  fs::create_directory(corpora / ".mine.aside-999999999-1");
  TokenStore::open(Corpus::open("mine"), "web", Split::train, *tokenizer);
  QVERIFY(!fs::exists(left) && fs::exists(held) && fs::exists(foreign) && fs::exists(store));
  QVERIFY(!fs::exists(corpora / ".mine.aside-999999999-1"));
  ::close(lock);
}

private:
fs::path folder() const { return folder_->path().toStdString(); }

fs::path write(const std::string& name, const std::string& content) const {
  fs::create_directories((folder() / name).parent_path());
  std::ofstream(folder() / name, std::ios::binary) << content;
  return folder() / name;
}

static ImportReport import(std::vector<fs::path> sources, const std::function<void(ImportOptions&)>& change = {}) {
  ImportOptions options;
  options.name = "mine";
  options.sources = std::move(sources);
  if (change) change(options);
  return import_corpus(options);
}

static std::multiset<std::string> documents(const Corpus& corpus, const std::string& domain) {
  std::multiset<std::string> all;
  for (Split split : {Split::train, Split::validation, Split::test})
    corpus.each_document(domain, split, [&](std::string_view document) {
      all.emplace(document);
      return true;
    });
  return all;
}

/// In kB.
static int64_t memory(const std::string& entry) {
  std::ifstream status("/proc/self/status");
  int64_t size = 0;
  for (std::string word; status >> word;)
    if (word == entry) status >> size;
  return size;
}

static std::vector<std::string> names() {
  std::vector<std::string> list;
  const Corpus corpus = Corpus::open("mine");
  for (const auto& info : corpus.domains()) list.push_back(info.name);
  return list;
}

void nothing_left() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder() / "data/corpora", error)) QFAIL(entry.path().c_str());
}

std::unique_ptr<QTemporaryDir> folder_;
}
;  // namespace saccade::test

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::CorpusImportTest)
#include "corpus_import_test.moc"
