#include "analysis/runs/journal.h"

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "analysis/runs/history.h"
#include "analysis/runs/step_line.h"
#include "kernels/engine/error.h"
#include "models/corpus/crc32c.h"
#include "tests/support/file_size_limit.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// The journal keeps every number exactly, gives back every line of it that is whole and says where lines are lost, and a write that
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

  /// A line longer than any record is a damaged one; it takes neither the memory of its length nor more time than reading it.
  void aLineMayHaveAnyLength() {
    const fs::path path = folder_->filePath("journal.jsonl").toStdString();
    std::ofstream file(path, std::ios::binary);
    const auto step = [](int64_t n) { return journal_line(n, Record{{"type", "resume"}, {"step", n}}); };
    file << step(0) << std::string(size_t{100} << 20, 'x') << '\n' << step(2) << std::string(size_t{70} << 20, 'y');
    file.close();
    JournalReader reader(path);
    std::vector<int64_t> steps;
    reader.poll([&](const Record& record) { steps.push_back(record.at("step")); });
    QCOMPARE(steps, (std::vector<int64_t>{0, 2}));
    QCOMPARE(reader.holes().size(), size_t{1});
    QCOMPARE(reader.holes()[0].count, int64_t{1});
    QCOMPARE(reader.line_bytes(), static_cast<int64_t>(step(0).size() + (size_t{100} << 20) + 1 + step(2).size()));
    std::ofstream(path, std::ios::binary | std::ios::app) << '\n' << step(4);
    reader.poll([&](const Record& record) { steps.push_back(record.at("step")); });
    QCOMPARE(steps, (std::vector<int64_t>{0, 2, 4}));
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

  /// Lines of steps are read without JSON where they are written as ever: to the same numbers.
  void stepLinesAreReadAsJsonIs() {
    for (const double value : std::initializer_list<double>{0.1, -1e-310, 3.0, 12345678.9, std::nan(""), INFINITY, -INFINITY}) {
      const StepRecord step{9007199254740993, 1 << 30, value, 2 * value, value, 1e-3, value, 20000};
      const std::string line = journal_line(41, to_record(step));
      const std::string_view body = std::string_view(line).substr(0, line.find(",\"crc32c\""));
      const auto fast = read_step_line(body, 41);
      QVERIFY(fast);
      QVERIFY(to_record(*fast) == to_record(step_from(Record::parse(line))));
      QVERIFY(!read_step_line(body, 42));
      QVERIFY(!read_step_line(std::string(body) + "x", 41) && !read_step_line(body.substr(1), 41));
    }
    Record with_more = to_record(StepRecord{});
    with_more["more"] = 1;
    QVERIFY(!read_step_line(journal_line(0, with_more), 0));
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
    QVERIFY(reader.holes().empty());
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
        const auto line = std::count(whole.begin(), whole.begin() + static_cast<int64_t>(at), '\n');
        QVERIFY(std::is_sorted(steps.begin(), steps.end()) && std::find(steps.begin(), steps.end(), line) == steps.end());
        QVERIFY(steps.size() == 3 || (steps.size() == 2 && whole[at] == '\n'));     // which took the next line along
        QCOMPARE(reader.holes().size(), size_t{at + 1 == whole.size() ? 0U : 1U});  // the last line may still be being written
      }
  }

  /// Who takes steps apart, without JSON, hears of the same records and the same holes.
  void stepsApartAreTheSameRecords() {
    std::string whole;
    for (int64_t n = 0; n < 6; ++n)
      whole += journal_line(n, n == 3 ? resume_record(1) : to_record(StepRecord{n, 10 * n, 1, 1, 2, 1, 1, 1}));
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      write(damaged);
      JournalReader plain(path()), apart(path());
      std::vector<int64_t> together, both;
      plain.poll([&](const Record& r) { together.push_back(r.at("step")); });
      apart.poll([&](const Record& r) { both.push_back(r.at("step")); }, [&](const StepRecord& step) { both.push_back(step.step); });
      QCOMPARE(both, together);
      QCOMPARE(described(apart), described(plain));
      QVERIFY(apart.next_number() == plain.next_number() && apart.line_bytes() == plain.line_bytes() && apart.step() == plain.step() &&
              apart.largest_step() == plain.largest_step());
    }
  }

  void missingAndRepeatedLinesAreNoticed() {
    write(journal_line(0, record(0)) + journal_line(2, record(2)));
    JournalReader missing(path());
    QCOMPARE(read(missing), 2);
    QCOMPARE(described(missing), QStringList{"1 record behind step 0 and before step 2 is damaged or missing"});
    write(journal_line(0, record(0)) + journal_line(1, resume_record(0, -1)) + journal_line(1, resume_record(0, -1)));
    JournalReader resumed_twice(path());
    QCOMPARE(read(resumed_twice), 2);
    QCOMPARE(described(resumed_twice), QStringList{"1 record behind step 0 is damaged or missing"});
    write(journal_line(0, record(0)) + "what is this\n" + journal_line(1, record(1)));
    JournalReader foreign(path());
    QCOMPARE(read(foreign), 2);
    QCOMPARE(described(foreign), QStringList{"a line behind step 0 and before step 1 is damaged"});
  }

  /// Who was stopped between looking whether the run is its own and writing a line, for so long that another process went on with the run.
  void aLineOfWhoLostTheRunIsPassedOver() {
    write(lines(4) + journal_line(4, resume_record(2, -1)) + journal_line(4, record(4)) + journal_line(5, record(3)));
    JournalReader reader(path());
    QCOMPARE(read(reader), 6);
    QVERIFY(reader.holes().empty());
    QVERIFY(reader.next_number() == 6 && reader.step() == 3 && reader.largest_step() == 3);
  }

  void writerContinuesBehindTheLastWholeLine() {
    write(lines(3) + "{\"n\":3,");
    QStringList reports;
    {
      JournalWriter(path(), [&](const std::string& r) { reports << QString::fromStdString(r); }).append(record(3));
    }
    QCOMPARE(reports.size(), 1);
    QVERIFY(reports[0].contains("7 bytes"));
    JournalReader reader(path());
    QCOMPARE(read(reader), 4);
    QVERIFY(reader.holes().empty());
  }

  /// The good lines behind a bad one count, the bad one stays where it is, and the hole is there for every later reader.
  void aHoleStaysForEver() {
    std::string text = lines(6);
    text[text.find("\"n\":2") + 8] ^= 1;
    write(text);
    for (int64_t next = 6; next < 8; ++next) {
      QStringList reports;
      {
        JournalWriter(path(), [&](const std::string& r) { reports << QString::fromStdString(r); }).append(record(next));
      }
      QCOMPARE(reports.size(), 1);
      QVERIFY(reports[0].endsWith("1 record behind step 1 and before step 3 is damaged or missing"));
    }
    JournalReader reader(path());
    QCOMPARE(read(reader), 7);
    QCOMPARE(reader.holes().size(), size_t{1});
    QVERIFY(reader.next_number() == 8 && reader.holes()[0].first == 2);
  }

  /// Bad lines at the end, and records that the journal is known to have had, leave their numbers out.
  void aLostEndIsAHole_data() {
    QTest::addColumn<QByteArray>("end");
    QTest::addColumn<qint64>("known");
    QTest::addColumn<qint64>("lost");
    QTest::newRow("bad lines") << QByteArray("bad\nbad\n") << qint64{0} << qint64{2};
    QTest::newRow("cut") << QByteArray() << qint64{7} << qint64{4};
    QTest::newRow("bad lines and cut") << QByteArray("bad\n") << qint64{7} << qint64{4};
    QTest::newRow("a record without its newline") << QByteArray("{\"n\":3,\"type\"") << qint64{4} << qint64{1};
  }
  void aLostEndIsAHole() {
    QFETCH(QByteArray, end);
    QFETCH(qint64, known);
    QFETCH(qint64, lost);
    write(lines(3) + end.toStdString());
    JournalWriter(path(), ignore, known).append(record(9));
    JournalReader reader(path());
    QCOMPARE(read(reader), 4);
    const std::vector<JournalHole> holes = reader.holes();
    QCOMPARE(holes.size(), size_t{1});
    QVERIFY(holes[0].first == 3 && holes[0].count == lost && holes[0].after_step == 2 && holes[0].before_step == 9);
  }

  /// What was lost and recorded again is no hole any more.
  void aResumeBeforeAHoleClosesIt() {
    const auto after = [&](const Record& resume) {
      write(lines(3) + journal_line(5, record(5)) + journal_line(6, resume));
      JournalReader reader(path());
      read(reader);
      return reader.holes().size();
    };
    QCOMPARE(after(resume_record(1)), size_t{0});
    QCOMPARE(after(resume_record(2)), size_t{1});  // something of step 2 itself may be lost
    QCOMPARE(after(resume_record(2, 3)), size_t{0});
    QCOMPARE(after(resume_record(4)), size_t{1});
    QCOMPARE(after(resume_record(2, 4)), size_t{1});
  }

  void aLostResumeRecordTakesBackItsSteps() {
    RunHistory history;
    const auto add = [&](int64_t step, double loss) {
      StepRecord r;
      r.step = step, r.loss = loss;
      history.apply(to_record(r));
    };
    for (int64_t step = 1; step <= 5; ++step) add(step, 1);
    for (int64_t step = 4; step <= 6; ++step) add(step, 2);
    QCOMPARE(history.find("train/loss")->value, (std::vector<double>{1, 1, 1, 2, 2, 2}));
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
  static QStringList described(const JournalReader& reader) {
    QStringList list;
    for (const JournalHole& hole : reader.holes()) list << QString::fromStdString(describe(hole));
    return list;
  }
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
