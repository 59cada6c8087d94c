#include "analysis/runs/capture_file.h"

#include <QTemporaryDir>
#include <QtTest>

#include "analysis/figures/reads.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/hdf5.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

class CaptureFileTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void mapsKeepTheirNamesOnDisk_data() {
    QTest::addColumn<QStringList>("names");
    QTest::newRow("attention") << QStringList{"weights"};
    QTest::newRow("top1_element") << QStringList{"weights", "selected"};
    QTest::newRow("top1_chunk") << QStringList{"weights", "score", "selected", "margin", "captured_mass", "candidate_size"};
    QTest::newRow("avey") << QStringList{"weights", "maxsim", "chosen", "candidate_size"};
  }
  void mapsKeepTheirNamesOnDisk() {
    QFETCH(QStringList, names);
    const Capture capture = fixture_capture({.mixer = QTest::currentDataTag(), .layers = 1}, 200, 0, "prose");
    write_captures(path(), {capture});
    QStringList found;
    const h5::Reader file(path());
    const h5::Group sample = file.root().open("sample0");
    for (int64_t i = 0; i < sample.integer_attribute("map_count"); ++i) {
      const h5::Group map = sample.open("maps/" + std::to_string(i));
      found << QString::fromStdString(map.text_attribute("name"));
      if (found.last() != "candidate_size") continue;
      QCOMPARE(map.integer_attribute("layer"), int64_t{-1});
      QCOMPARE(map.read<float>("values"), std::vector<float>{16});
    }
    QCOMPARE(found, names);
    const Capture back = read_captures(path()).at(0);
    QVERIFY(back.selections == capture.selections && back.layer_mixers.empty());
    QCOMPARE(back.maps.size(), capture.maps.size());
    for (size_t i = 0; i < back.maps.size(); ++i) QCOMPARE(back.maps[i].kind, capture.maps[i].kind);
  }

  void whatATaskAsksForIsKept() {
    Capture capture = fixture_capture({.layers = 1}, 200, 0, "prose");
    capture.asked = {{{0, 3}, {7, 0}, {static_cast<int64_t>(capture.tokens.size()) - 1, 5}}};
    write_captures(path(), {capture});
    QCOMPARE(read_captures(path()).at(0).asked, capture.asked);
    capture.asked->clear();  // of a task, though nothing is asked in this part
    write_captures(path(), {capture});
    QCOMPARE(read_captures(path()).at(0).asked, capture.asked);
    capture.asked.reset();
    write_captures(path(), {capture});
    QVERIFY(!read_captures(path()).at(0).asked);
    write_old(capture, {}, {3, -1});
    try {
      (void)read_captures(path());
      QFAIL("was read");
    } catch (const DataError& error) {
      QVERIFY2(QString(error.what()).contains("tokens and targets differ in number"), error.what());
    }
  }

  /// Files of earlier versions hold the number of tokens in a candidate as one map among the others, the first ones not at all.
  void oldFilesSayWhatWasChosen_data() {
    QTest::addColumn<QString>("mixer");
    QTest::addColumn<bool>("with_size");
    for (const char* mixer : {"top1_element", "top1_chunk", "avey"})
      for (const bool with_size : {true, false}) QTest::addRow("%s %s", mixer, with_size ? "with" : "without") << mixer << with_size;
  }
  void oldFilesSayWhatWasChosen() {
    QFETCH(QString, mixer);
    QFETCH(bool, with_size);
    const Capture capture = fixture_capture({.mixer = mixer.toStdString(), .layers = 2}, 200, 0, "prose");
    std::vector<Stored> maps;
    if (with_size && mixer != "top1_element") maps.push_back({"candidate_size", {-1, {1}, {16}}});
    for (const CapturedMap& map : capture.maps) maps.push_back({to_string(map.kind), {map.layer, map.shape, map.values}});
    write_old(capture, maps);
    const Capture back = read_captures(path()).at(0);
    QVERIFY(!back.selections.empty() && back.selections == capture.selections);
    QCOMPARE(back.maps.size(), capture.maps.size());
    const Reads expected = reads_of(capture, 1, 0, 70), read = reads_of(back, 1, 0, 70);
    QCOMPARE(read.candidate_size, expected.candidate_size);
    QCOMPARE(read.chosen_positions, expected.chosen_positions);
    QVERIFY(!read.chosen_positions.empty());
  }

  void whatIsNoMapIsRefused_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<float>("value");
    QTest::addColumn<QString>("says");
    QTest::newRow("unknown kind") << "phases" << 1.0F << "phases";
    QTest::newRow("no size") << "candidate_size" << std::numeric_limits<float>::quiet_NaN() << "no number of tokens";
    QTest::newRow("scores without dimensions") << "score" << 1.0F << "odd shape";
    QTest::newRow("weights of no square") << "weights" << 1.0F << "odd shape";
  }
  void whatIsNoMapIsRefused() {
    QFETCH(QString, name);
    QFETCH(float, value);
    QFETCH(QString, says);
    write_old(fixture_capture({.layers = 1}, 200, 0, "prose"), {{name.toStdString(), {0, {1}, {value}}}});
    try {
      (void)read_captures(path());
      QFAIL("was read");
    } catch (const DataError& error) {
      QVERIFY2(QString(error.what()).contains(says), error.what());
    }
  }

 private:
  struct Values {
    int64_t layer;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  using Stored = std::pair<std::string, Values>;

  std::filesystem::path path() const { return std::filesystem::path(folder_.path().toStdString()) / "capture.h5"; }

  /// One sample as format 1 has always had it, with maps of any name.
  void write_old(const Capture& capture, const std::vector<Stored>& maps, const std::vector<int32_t>& targets = {}) const {
    std::filesystem::remove(path());
    h5::Writer file(path());
    file.root().set_attribute("format_version", int64_t{1});
    file.root().set_attribute("sample_count", int64_t{1});
    const h5::Group sample = file.root().create("sample0");
    sample.set_attribute("domain", capture.domain);
    for (const char* number : {"sample", "step", "tokens"}) sample.set_attribute(number, int64_t{200});
    for (const char* number : {"flops", "seconds"}) sample.set_attribute(number, 1.0);
    sample.set_attribute("map_count", static_cast<int64_t>(maps.size()));
    sample.write("text_tokens", capture.tokens);
    std::vector<uint8_t> bytes(capture.tokens.size(), 'x');
    std::vector<int64_t> ends;
    for (size_t i = 0; i < bytes.size(); ++i) ends.push_back(static_cast<int64_t>(i + 1));
    sample.write("piece_bytes", bytes);
    sample.write("piece_ends", ends);
    sample.write("token_losses", capture.token_losses);
    if (!targets.empty()) sample.write("targets", targets);
    for (size_t i = 0; i < maps.size(); ++i) {
      const h5::Group map = sample.create("maps/" + std::to_string(i));
      map.set_attribute("name", maps[i].first);
      map.set_attribute("layer", maps[i].second.layer);
      map.write<float>("values", maps[i].second.values, maps[i].second.shape);
    }
    file.close();
  }

  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::CaptureFileTest)
#include "capture_file_test.moc"
