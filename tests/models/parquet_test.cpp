#include <QtTest>
#include <filesystem>
#include <fstream>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/corpus/parquet_rows.h"
#include "models/json.h"

namespace saccade::test {
namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Files that tests/fixtures/parquet/make.py made. Without Apache Arrow's library only the refusal is looked at.
class ParquetTest : public QObject {
  Q_OBJECT

  struct Rows : DocumentVisitor {
    std::vector<Json> rows;
    std::vector<int64_t> bad;
    std::vector<std::string> asked;
    int64_t last_progress = 0;
    void piece(std::string_view bytes, int64_t line) override {
      QCOMPARE(line, static_cast<int64_t>(rows.size() + bad.size()) + 1);
      rows.push_back(Json::parse(bytes));
    }
    void too_long(int64_t) override { QFAIL("no row is long"); }
    void malformed(int64_t line, const std::string&) override { bad.push_back(line); }
    void progress(int64_t bytes) override {
      QVERIFY(bytes >= last_progress);
      last_progress = bytes;
    }
  };
  static fs::path fixture(const char* name) {
    return fs::path(qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString()) / "tests/fixtures/parquet" / name;
  }
  static std::string text(int i) {
    std::string once = "Document " + std::to_string(i) + ": größer, 你好, “quoted” \\ and a line\nend. ", all;
    for (int k = 0; k <= i % 3; ++k) all += once;
    return all;
  }
  static ImportReport import(const std::string& name, const fs::path& source) {
    ImportOptions options;
    options.name = name, options.sources = {source}, options.validation_share = 0.2;
    return import_corpus(options);
  }
  static QString refusal(const fs::path& file, const std::vector<std::string>& columns = {}) {
    try {
      Rows rows;
      read_parquet_rows(file, columns, rows);
      return {};
    } catch (const DataError& error) {
      return QString::fromUtf8(error.what());
    }
  }

  QTemporaryDir folder_;

 private Q_SLOTS:
  void init() {
    qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_.path() + "/cache").toUtf8());
  }

  void without_arrow_the_message_says_how_to_read_it() {
    if (reads_parquet()) QSKIP("this program reads Parquet");
    try {
      import("none", fixture("snappy.parquet"));
      QFAIL("no error");
    } catch (const DataError& error) {
      const QString what = QString::fromUtf8(error.what());
      for (const char* part : {"snappy.parquet: ", "Parquet files are not read", "arrow.apache.org/install",
                               "python3 -c \"import pandas; pandas.read_parquet('snappy.parquet').to_json('snappy.jsonl'"})
        QVERIFY2(what.contains(part), error.what());
    }
    QVERIFY(refusal(fixture("snappy.parquet")).contains("built without a reader of Parquet"));
    QVERIFY(!fs::exists(fs::path(folder_.path().toStdString()) / "data/corpora/none"));
  }

  void rows_of_all_codings_and_compressions() {
    if (!reads_parquet()) QSKIP("built without Apache Arrow");
    for (const char* name : {"snappy.parquet", "zstd.parquet", "gzip.parquet", "plain.parquet"}) {
      Rows read;
      read_parquet_rows(fixture(name), {}, read);
      QCOMPARE(read.rows.size(), size_t{60});
      for (int i = 0; i < 60; ++i) {
        const Json& row = read.rows[static_cast<size_t>(i)];
        QCOMPARE(row.at("text").get<std::string>(), text(i));
        if (row.size() == 1) continue;  // plain: the texts alone
        const Json expected{{"text", text(i)},
                            {"meta", {{"redpajama_set_name", i % 2 ? "prose" : "code"}, {"scores", {0.5, i}}}},
                            {"language", i % 7 ? Json("en") : Json()},
                            {"token_count", i},
                            {"kept", i % 5 == 0},
                            {"made", row.at("made")}};
        QVERIFY2(row == expected, row.dump().c_str());
        QVERIFY(row.at("made").get<std::string>().starts_with("1970-01-01 00:00:" + std::string(i < 10 ? "0" : "") + std::to_string(i)));
      }
      QCOMPARE(read.last_progress, static_cast<int64_t>(fs::file_size(fixture(name))));
    }
  }

  void columns_that_are_asked_for() {
    if (!reads_parquet()) QSKIP("built without Apache Arrow");
    Rows read;
    read_parquet_rows(fixture("zstd.parquet"), {"text", "meta", "no such"}, read);
    QCOMPARE(read.rows.at(3).size(), size_t{2});
    QCOMPARE(read.rows.at(3).at("meta").at("redpajama_set_name").get<std::string>(), std::string("prose"));
    QVERIFY(refusal(fixture("zstd.parquet"), {"body", "meta"})
                .endsWith("zstd.parquet: it has no column \"body\", but text, meta, language, token_count, kept, made"));
  }

  void a_corpus_of_parquet() {
    if (!reads_parquet()) QSKIP("built without Apache Arrow");
    const fs::path from = fs::path(folder_.path().toStdString()) / "set";
    fs::create_directories(from / "train");
    fs::copy_file(fixture("snappy.parquet"), from / "train/000_00000.parquet");
    fs::copy_file(fixture("plain.parquet"), from / "train/000_00001.parquet");  // the same texts
    std::ofstream(from / "README.md") << "no document";
    const ImportReport report = import("pq", from);
    QCOMPARE(report.documents, 60);
    QCOMPARE(report.duplicates, 60);
    QCOMPARE(report.malformed, 0);
    const std::vector<DomainInfo> domains = Corpus::open("pq").domains();
    QCOMPARE(domains.size(), size_t{2});
    QCOMPARE(domains.at(0).name + " " + domains.at(1).name, std::string("code prose"));
    for (const DomainInfo& domain : domains) QCOMPARE(domain.documents.at("train"), 30);  // the folder says so
    const ImportReport bytes = import("bytes", fixture("bytes.parquet"));
    QCOMPARE(bytes.documents, 2);
    QCOMPARE(bytes.malformed, 1);
    QVERIFY(bytes.problems.at(0).ends_with("bytes.parquet:2: a text that is no valid UTF-8"));
  }

  /// A bit turned over anywhere is refused or changes nothing that is read; a file cut short is refused. Nothing crashes.
  void damaged_files() {
    if (!reads_parquet()) QSKIP("built without Apache Arrow");
    const std::string good = read_file(fixture("snappy.parquet"));
    const fs::path file = fs::path(folder_.path().toStdString()) / "damaged.parquet";
    int refused = 0;
    for (size_t at = 0; at < good.size(); at += 37) {
      for (const bool cut : {true, false}) {
        std::string bad = cut ? good.substr(0, at) : good;
        if (!cut) bad[at] = static_cast<char>(bad[at] ^ 0x10);
        std::ofstream(file, std::ios::binary) << bad;
        const QString why = refusal(file);
        QVERIFY2(why.isEmpty() || (why.contains("damaged.parquet: ") && !why.contains('\n')), qPrintable(why));
        QVERIFY2(!cut || !why.isEmpty(), "a file that ends early was read");
        refused += !why.isEmpty();
      }
    }
    QVERIFY2(refused > 200, qPrintable(QString::number(refused)));
    std::ofstream(file, std::ios::binary) << "PAR1 and more";
    QVERIFY(refusal(file).contains("no usable Parquet file"));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ParquetTest)
#include "parquet_test.moc"
