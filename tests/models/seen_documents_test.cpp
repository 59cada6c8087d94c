#include <sys/resource.h>

#include <QtTest>
#include <filesystem>
#include <fstream>
#include <set>

#include "kernels/engine/error.h"
#include "kernels/engine/random.h"
#include "models/corpus/corpus.h"
#include "models/corpus/seen_documents.h"
#include "tests/support/file_size_limit.h"

namespace saccade::test {
namespace fs = std::filesystem;

class SeenDocumentsTest : public QObject {
  Q_OBJECT

  static DocumentKey key(uint64_t number) {
    const Random high(number, "high"), low(number, "low");
    return {high.bits(0), low.bits(0)};
  }
  fs::path folder() const { return folder_.path().toStdString(); }
  QTemporaryDir folder_;

 private Q_SLOTS:
  /// Every answer is that of a set, whatever the memory, and the memory is kept.
  void answers_are_exact_data() {
    QTest::addColumn<int>("memory");
    QTest::addColumn<bool>("on_disk");
    QTest::newRow("16 KiB") << (16 << 10) << true;
    QTest::newRow("100 KiB") << (100 << 10) << true;
    QTest::newRow("1 MiB") << (1 << 20) << true;
    QTest::newRow("64 MiB") << (64 << 20) << false;
  }
  void answers_are_exact() {
    QFETCH(int, memory);
    QFETCH(bool, on_disk);
    SeenDocuments seen(folder(), memory);
    std::set<DocumentKey> expected;
    const Random random(7, "documents");
    constexpr uint64_t kDocuments = 150000;
    for (uint64_t i = 0; i < kDocuments; ++i) {
      const DocumentKey document = i % 1000 == 0 ? DocumentKey{} : key(random.below(kDocuments, i));
      const bool is_new = !expected.contains(document);
      if (i % 7 == 0) QCOMPARE(seen.contains(document), !is_new);
      QCOMPARE(seen.insert(document), is_new);
      expected.insert(document);
    }
    const SeenDocuments::Use use = seen.use();
    QCOMPARE(use.documents, static_cast<int64_t>(expected.size()));
    QCOMPARE(use.disk_bytes > 0, on_disk);
    QVERIFY2(use.memory_bytes <= memory + use.disk_bytes / 128, qPrintable(QString::number(use.memory_bytes)));
    QVERIFY(use.files < 8);
    QVERIFY(fs::is_empty(folder()));  // the files have no names
    if (memory == 1 << 20) {          // 1 MiB: 35 bits for each of those on disk
      const auto repeated = static_cast<int64_t>(kDocuments - expected.size());
      QVERIFY2(use.lookups < repeated * 8 / 7 + repeated / 20, qPrintable(QString::number(use.lookups)));
    }
  }

  /// Keys that share their first half, a page's end and the place in the table.
  void keys_that_are_nearly_the_same() {
    SeenDocuments seen(folder(), 16 << 10);
    for (int round = 0; round < 2; ++round)
      for (uint64_t i = 0; i < 5000; ++i) QCOMPARE(seen.insert({i / 1000, (i % 1000) << 40 | 5}), round == 0);
    QVERIFY(seen.use().disk_bytes > 0);
  }

  void an_import_beyond_its_memory() {
    qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8());
    const fs::path file = folder() / "many.jsonl";
    {
      std::ofstream lines(file);
      for (int i = 0; i < 8000; ++i) lines << "{\"text\": \"document " << i * 7919 % 4000 << "\"}\n";
    }
    ImportOptions options;
    options.name = "many", options.sources = {file}, options.duplicates_memory = 16 << 10;
    const ImportReport report = import_corpus(options);
    QCOMPARE(report.documents, 4000);
    QCOMPARE(report.duplicates, 4000);
    options.name = "some", options.max_documents = 3000;
    const ImportReport some = import_corpus(options);
    QCOMPARE(some.documents, 3000);
    QCOMPARE(some.duplicates, 0);
    for (const auto& entry : fs::directory_iterator(folder() / "data/corpora")) QVERIFY(entry.path().filename().string().front() != '.');
    options.duplicates_memory = 100;
    QVERIFY_THROWS_EXCEPTION(UsageError, import_corpus(options));
    fs::remove_all(folder() / "data"), fs::remove(file);
  }

  /// Nothing is taken for new, or for known, because its file could not be written.
  void a_disk_that_is_full() {
    SeenDocuments seen(folder(), 16 << 10);
    const FileSizeLimit limit(1000);
    bool told = false;
    for (uint64_t i = 0; i < 5000 && !told; ++i) try {
        QVERIFY(seen.insert(key(i)));
      } catch (const DataError& error) {
        told = std::string(error.what()).find("cannot write the table of documents seen: ") != std::string::npos;
        QVERIFY2(told, error.what());
      }
    QVERIFY(told);
  }

  void too_little_memory() { QVERIFY_THROWS_EXCEPTION(UsageError, SeenDocuments(folder(), SeenDocuments::kLeastMemory - 1)); }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SeenDocumentsTest)
#include "seen_documents_test.moc"
