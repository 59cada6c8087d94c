#include "analysis/runs/journal.h"

#include <QTemporaryDir>
#include <QtTest>
#include <bit>
#include <cmath>
#include <fstream>

#include "analysis/runs/history.h"
#include "kernels/error.h"
#include "tests/support/file_size_limit.h"
#include "models/corpus/crc32c.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// The journal keeps every number exactly, gives back the longest valid prefix of whatever is left of it, and a write that
/// fails harms nothing.
class JournalTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void crcIsCastagnolis() {
    QCOMPARE(crc32c("123456789"), 0xE3069283U);
    QCOMPARE(crc32c("6789", crc32c("12345")), 0xE3069283U);
    QCOMPARE(crc32c(""), 0U);
  }

  void lineHasTheDocumentedForm() {
    const std::string line = journal_line(7, Record{{"type", "resume"}, {"step", 3}});
    QCOMPARE(line.substr(0, 32), std::string("{\"n\":7,\"type\":\"resume\",\"step\":3,"));
    QCOMPARE(line.size(), std::string("{\"n\":7,\"type\":\"resume\",\"step\":3,\"crc32c\":\"00000000\"}\n").size());
    QVERIFY(Record::parse(line).contains("crc32c"));
  }

  void numbersComeBackExactly() {
    const std::vector<double> values = {0.1, 1.0 / 3, -0.0, 1e-310, 1.7976931348623157e308, std::nan(""), INFINITY, -INFINITY};
    for (const double value : values) {
      StepRecord step;
      step.step = 9007199254740993;
      step.loss = value;
      const StepRecord back = step_from(Record::parse(to_record(step).dump()));
      QCOMPARE(back.step, step.step);
      QVERIFY(std::isnan(value) ? std::isnan(back.loss) : std::bit_cast<uint64_t>(back.loss) == std::bit_cast<uint64_t>(value));
    }
  }

  void everyRecordComesBack() {
    const EvaluationRecord evaluation{{5, 640, 1.5e9, 0.25}, {{"prose \"x\"\n", false, 2.5, 1.0 / 3}, {"c", true, std::nan("")}}};
    const EvaluationRecord e = evaluation_from(Record::parse(to_record(evaluation).dump()));
    QCOMPARE(e.losses.size(), size_t{2});
    QCOMPARE(e.losses[0].domain, evaluation.losses[0].domain);
    QVERIFY(e.losses[1].ood && std::isnan(e.losses[1].loss) && e.at.flops == 1.5e9 && e.at.tokens == 640);
    QVERIFY(e.losses[0].standard_error == 1.0 / 3 && std::isnan(e.losses[1].standard_error));
    const StatisticsRecord statistics{{5, 640, 1, 1}, {{"entropy", "nats", 2, {1.25, std::nan("")}}}};
    const StatisticsRecord s = statistics_from(Record::parse(to_record(statistics).dump()));
    QCOMPARE(s.statistics[0].layer, int64_t{2});
    QVERIFY(s.statistics[0].heads[0] == 1.25 && std::isnan(s.statistics[0].heads[1]));
  }

  /// Journals written before standard errors were known; a run may go on from there.
  void evaluationsWithoutStandardErrors() {
    const auto evaluation = [](int64_t step, double error) {
      return to_record(
          EvaluationRecord{{step, step, 1, 1}, {{"prose", false, 2, error}, {"c", true, 3, error}, {"d", true, 5, 2 * error}}});
    };
    Record old = evaluation(1, 0.5);
    for (Record& loss : old["losses"]) loss.erase("standard_error");
    QVERIFY(std::isnan(evaluation_from(old).losses[2].standard_error) && evaluation_from(old).losses[2].loss == 5);
    RunHistory history;
    history.apply(old);
    QVERIFY(history.find("ood/loss/c")->error.empty() && history.find("ood/loss")->error.empty());
    history.apply(evaluation(2, 0.5));
    const std::vector<double>& c = history.find("ood/loss/c")->error;
    QVERIFY(c.size() == 2 && std::isnan(c[0]) && c[1] == 0.5);
    const std::vector<double>& mean = history.find("ood/loss")->error;  // of two domains
    QVERIFY(mean.size() == 2 && std::isnan(mean[0]) && mean[1] == std::sqrt(0.5 * 0.5 + 1 * 1) / 2);
    QVERIFY(history.find("validation/loss")->error[1] == 0.5);
    history.apply(resume_record(1));
    for (const Series& series : history.series()) QVERIFY(series.value.size() == 1 && series.error.size() == 1);
  }

  void followsWhatIsAppended() {
    JournalWriter writer(path(), ignore);
    JournalReader reader(path());
    for (int i = 0; i < 5; ++i) {
      QVERIFY(!reader.poll([](const Record&) {}));
      writer.append(record(i));
      std::vector<int64_t> steps;
      QVERIFY(reader.poll([&](const Record& r) { steps.push_back(r.at("step")); }));
      QCOMPARE(steps, std::vector<int64_t>{i});
    }
  }

  void halfALineWaits() {
    write(lines(2) + journal_line(2, record(2)).substr(0, 20));
    JournalReader reader(path());
    QCOMPARE(read(reader), 2);
    QVERIFY(!reader.damaged());
    write(lines(3));
    QCOMPARE(read(reader), 1);
  }

  void everyCutGivesAPrefix() {
    const std::string whole = lines(6);
    for (size_t size = 0; size <= whole.size(); ++size) {
      write(whole.substr(0, size));
      JournalReader reader(path());
      QCOMPARE(read(reader), static_cast<int>(std::count(whole.begin(), whole.begin() + static_cast<int64_t>(size), '\n')));
    }
  }

  void everyChangedByteIsNoticed() {
    const std::string whole = lines(4);
    for (size_t at = 0; at < whole.size(); ++at)
      for (const char flip : {'\x01', '\x20', '\x40'}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ flip);
        write(damaged);
        JournalReader reader(path());
        std::vector<int64_t> steps;
        reader.poll([&](const Record& r) { steps.push_back(r.at("step")); });
        QVERIFY(steps.size() < 4);
        for (size_t i = 0; i < steps.size(); ++i) QCOMPARE(steps[i], static_cast<int64_t>(i));
      }
  }

  void missingAndRepeatedLinesAreNoticed() {
    write(journal_line(0, record(0)) + journal_line(2, record(2)));
    JournalReader missing(path());
    QCOMPARE(read(missing), 1);
    QVERIFY(missing.damaged());
    write(journal_line(0, record(0)) + journal_line(0, record(0)));
    JournalReader repeated(path());
    QCOMPARE(read(repeated), 1);
  }

  void writerContinuesBehindTheValidPrefix() {
    write(lines(3) + "{\"n\":3,");
    QStringList reports;
    {
      JournalWriter(path(), [&](const std::string& r) { reports << QString::fromStdString(r); }).append(record(3));
    }
    QCOMPARE(reports.size(), 1);
    QVERIFY(reports[0].contains("7 bytes"));
    JournalReader reader(path());
    QCOMPARE(read(reader), 4);
    QVERIFY(!reader.damaged());
  }

  void aFailedWriteHarmsNothing() {
    JournalWriter writer(path(), ignore);
    for (int i = 0; i < 3; ++i) writer.append(record(i));
    const auto size = fs::file_size(path());
    {
      const FileSizeLimit limit(size + 10);  // the next record fits in part
      QVERIFY_THROWS_EXCEPTION(DataError, writer.append(record(3)));
    }
    QCOMPARE(fs::file_size(path()), size);
    QVERIFY_THROWS_EXCEPTION(DataError, writer.append(record(3)));
    JournalReader reader(path());
    QCOMPARE(read(reader), 3);
    JournalWriter(path(), ignore).append(record(3));
    QCOMPARE(read(reader), 1);
  }

  void saysWhichFileCannotBeOpened() {
    try {
      JournalWriter writer(fs::path(folder_->path().toStdString()) / "none" / "journal.jsonl", ignore);
      QFAIL("it was opened");
    } catch (const DataError& error) {
      QVERIFY(QString(error.what()).contains("none/journal.jsonl: No such file"));
    }
  }

 private:
  static void ignore(const std::string&) {}
  static Record record(int64_t step) { return {{"type", "test"}, {"step", step}}; }
  static std::string lines(int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += journal_line(i, record(i));
    return text;
  }
  fs::path path() const { return folder_->filePath("journal.jsonl").toStdString(); }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  static int read(JournalReader& reader) {
    int count = 0;
    reader.poll([&](const Record&) { ++count; });
    return count;
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::JournalTest)
#include "journal_test.moc"
