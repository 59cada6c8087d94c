#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "analysis/runs/journal.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// What another machine has written and this one sees late: lines, sizes, files that are replaced, files of a copy one by one.
class LateBytesTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void aBadLineIsJudgedWhenItsTimeIsUp() {
    JournalPatience patience;
    patience.set(60);
    QVERIFY(patience.not_yet(1000, 1000, true, at(0)));
    QVERIFY(patience.not_yet(1000, 1000, true, at(59)));
    QVERIFY(!patience.not_yet(1000, 1000, true, at(60)));
    QVERIFY(!patience.waits());
    QVERIFY(!patience.not_yet(900, 5000, true, at(60)));  // of the bytes for which it has waited
    QVERIFY(patience.not_yet(5000, 5000, true, at(60)));
  }
  /// Records keep arriving behind a page of zeros, so that the line that begins there ends later and later.
  void aLineThatGrowsIsWaitedForAnew() {
    JournalPatience patience;
    patience.set(60);
    QVERIFY(patience.not_yet(1000, 1000, true, at(0)));
    QVERIFY(patience.not_yet(2000, 2000, true, at(50)));
    QVERIFY(patience.not_yet(2000, 3000, true, at(109)));
    QVERIFY(!patience.not_yet(2000, 3000, true, at(110)));
  }
  void farFromTheEndNothingIsLate() {
    JournalPatience patience;
    patience.set(60);
    QVERIFY(!patience.not_yet(1000, 1000 + (1 << 16), false, at(0)));
    QVERIFY(patience.not_yet(1000, 1000 + (1 << 16), true, at(0)));  // zeros
    JournalPatience none;
    QVERIFY(!none.not_yet(1000, 1000, true, at(0)));
  }

  void zerosThatBecomeRecords() {
    JournalReader reader(path());
    reader.wait_for_late_bytes(3600);
    const std::string whole = lines(0, 6);
    const size_t from = lines(0, 2).size() + 20;
    std::string late = whole;
    std::fill(late.begin() + static_cast<std::ptrdiff_t>(from), late.begin() + static_cast<std::ptrdiff_t>(from + 90), '\0');
    write(late);
    QCOMPARE(read(reader), 2);
    QVERIFY(reader.waits() && reader.holes().empty());
    write(whole + lines(6, 8));
    QCOMPARE(read(reader), 6);
    QVERIFY(!reader.waits() && reader.holes().empty());
  }
  void zerosThatStay() {
    JournalReader reader(path());
    reader.wait_for_late_bytes(1e-9);
    std::string text = lines(0, 4);
    text[lines(0, 1).size() + 5] = '\0';
    write(text);
    QCOMPARE(read(reader), 1);
    QVERIFY(reader.waits());
    QCOMPARE(read(reader), 2);
    QCOMPARE(reader.holes().size(), size_t{1});
  }

  void aSizeThatIsOld() {
    JournalReader reader(path());
    reader.wait_for_late_bytes(3600);
    write(lines(0, 5));
    QCOMPARE(read(reader), 5);
    write(lines(0, 3));
    QCOMPARE(read(reader), 0);
    QVERIFY(!reader.shrunk() && reader.waits());
    write(lines(0, 7));
    QCOMPARE(read(reader), 2);
    write(lines(3, 5));  // shorter, and another journal
    QVERIFY(reader.poll([](const Record&) {}) && reader.shrunk());
  }
  void withoutPatienceAShorterFileIsAnotherOne() {
    JournalReader reader(path());
    write(lines(0, 5));
    QCOMPARE(read(reader), 5);
    write(lines(0, 3));
    QVERIFY(reader.poll([](const Record&) {}) && reader.shrunk());
  }

  void aFileInItsPlaceIsReadOnOrAnew() {
    JournalReader reader(path());
    write(lines(0, 5));
    QCOMPARE(read(reader), 5);
    replace(lines(0, 9));
    QCOMPARE(read(reader), 4);
    QVERIFY(!reader.shrunk());
    std::string other = lines(0, 9);
    other[other.size() / 2] ^= 1;
    replace(other);
    QVERIFY(reader.poll([](const Record&) {}) && reader.shrunk());
  }
  /// One that a reader began in the middle of, too.
  void aFileInItsPlaceIsReadOnFromTheMiddle() {
    write(lines(0, 100));
    JournalReader reader(path());
    QVERIFY(reader.skip_to_end(500));
    QVERIFY(read(reader) < 20);
    replace(lines(0, 103));
    QCOMPARE(read(reader), 3);
    replace("x" + lines(0, 110));
    QVERIFY(reader.poll([](const Record&) {}) && reader.shrunk());
  }

  /// A copy has no lock that says anything here, and its writer lives as long as copies come.
  void aCopyHasNotCrashedTooEarly() {
    FixtureOptions options;
    options.end = RunState::running;
    write_fixture(folder("run"), options);
    QCOMPARE(Run(folder("run")).info().state, RunState::crashed);
    fs::copy(folder("run"), folder("copy"), fs::copy_options::recursive);
    Run copy(folder("copy"));
    QCOMPARE(copy.info().state, RunState::running);
    QVERIFY(!copy.outdated());
    const auto long_ago = fs::file_time_type::clock::now() - seconds(200);
    for (const char* name : {"run.json", "journal.jsonl"}) fs::last_write_time(folder("copy") / name, long_ago);
    QCOMPARE(Run(folder("copy")).info().state, RunState::crashed);
  }

  void runJsonBeforeItsJournal() {
    write_fixture(folder("run"));
    const std::string journal = read_text(folder("run") / "journal.jsonl");
    fs::remove(folder("run") / "journal.jsonl");
    QVERIFY(Run(folder("run")).damage().ends_with("is missing"));
    Run follower(folder("run"), {.patience = 3600});  // here 5 s, which have not passed since run.json was written
    QVERIFY(follower.damage().empty() == follower.waits());
    const bool was_quick = follower.waits();
    std::ofstream(folder("run") / "journal.jsonl") << journal.substr(0, journal.rfind('\n', journal.size() / 2) + 1);
    QVERIFY(follower.outdated() && follower.poll());
    QVERIFY(!was_quick || follower.damage().empty());
    std::ofstream(folder("run") / "journal.jsonl") << journal;
    QVERIFY(follower.outdated() && follower.poll());
    QVERIFY(follower.damage().empty() && follower.lost().empty() && !follower.waits());
    QCOMPARE(follower.find("train/loss")->value.size(), size_t{200});
  }
  /// Of a copy the wait is that for another machine, and it ends.
  void recordsThatRunJsonKnowsOf() {
    write_fixture(folder("source"));
    fs::copy(folder("source"), folder("run"), fs::copy_options::recursive);
    const std::string journal = read_text(folder("run") / "journal.jsonl");
    std::ofstream(folder("run") / "journal.jsonl") << journal.substr(0, journal.rfind('\n', journal.size() / 2) + 1);
    const Run patient(folder("run"), {.patience = 3600});
    QVERIFY(patient.waits() && patient.damage().empty() && patient.outdated());
    const Run impatient(folder("run"), {.patience = 1e-9});
    QVERIFY(!impatient.waits() && impatient.damage().find("run.json knows of") != std::string::npos);
  }

 private:
  static JournalPatience::Clock::time_point at(int second) { return JournalPatience::Clock::time_point(seconds(1000 + second)); }
  static std::string lines(int64_t from, int64_t to) {
    std::string text;
    for (int64_t i = from; i < to; ++i) text += journal_line(i, {{"type", "test"}, {"step", i}});
    return text;
  }
  static int read(JournalReader& reader) {
    int records = 0;
    reader.poll([&](const Record&) { ++records; });
    return records;
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  void replace(const std::string& text) const {
    const fs::path aside = folder("aside");
    std::ofstream(aside, std::ios::binary) << text;
    fs::rename(aside, path());
  }
  fs::path path() const { return folder("journal.jsonl"); }
  fs::path folder(const char* name) const { return folder_->filePath(name).toStdString(); }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LateBytesTest)
#include "late_bytes_test.moc"
