#include <QDirIterator>
#include <QtTest>
#include <random>

#include "tests/fuzz/targets.h"

namespace saccade::test {

/// Every seed of the fuzz targets and what fuzzing found, as they are and with a few thousand changes: without clang, and always the same.
class SeedsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void bearsWhatIsChanged_data() {
    QTest::addColumn<int>("index");
    for (size_t i = 0; i < fuzz_targets().size(); ++i) QTest::newRow(fuzz_targets()[i].name.c_str()) << static_cast<int>(i);
  }
  void bearsWhatIsChanged() {
    QFETCH(int, index);
    const FuzzTarget& target = fuzz_targets()[static_cast<size_t>(index)];
    const std::vector<std::string> seeds = seeds_of(target.name);
    QVERIFY2(!seeds.empty(), "no seeds");
    std::mt19937 random(1);
    for (const std::string& seed : seeds) run_target(target, seed);
    for (int i = 0; i < target.tries; ++i)
      run_target(target, changed(seeds[random() % seeds.size()], seeds[random() % seeds.size()], random));
  }

 private:
  static QString source(const QString& path) { return qEnvironmentVariable("SACCADE_SOURCE_DIR") + QLatin1Char('/') + path; }

  static std::vector<std::string> seeds_of(const std::string& target) {
    static const std::map<std::string, QString> elsewhere{{"config", QStringLiteral("resources/presets")},
                                                          {"study", QStringLiteral("resources/studies")},
                                                          {"recipe", QStringLiteral("resources/figures")},
                                                          {"published", QStringLiteral("resources/published")}};
    QStringList folders{source(QStringLiteral("tests/fuzz/seeds/") + QString::fromStdString(target))};
    if (const auto at = elsewhere.find(target); at != elsewhere.end()) folders << source(at->second);
    std::vector<std::string> seeds;
    for (const QString& folder : folders)
      for (QDirIterator files(folder, QDir::Files); files.hasNext();) {
        QFile file(files.next());
        if (file.open(QIODevice::ReadOnly)) seeds.push_back(file.readAll().toStdString());
      }
    if (target == "run_json") seeds.push_back(fixture("run.json"));
    if (target == "journal" || target == "run_journal") seeds.push_back(fixture("journal.jsonl"));
    return seeds;
  }

  static std::string fixture(const char* name) {
    QFile file(source(QStringLiteral("tests/fixtures/before-renaming/run/") + QLatin1String(name)));
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
  }

  /// Bits, bytes and pieces moved, taken out, repeated, or taken from another seed.
  static std::string changed(std::string text, const std::string& other, std::mt19937& random) {
    for (int times = 1 + static_cast<int>(random() % 4); times > 0; --times) {
      if (text.empty()) return text;
      const size_t at = random() % text.size(), length = std::min<size_t>(1 + random() % 32, text.size() - at);
      switch (random() % 6) {
        case 0: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
        case 1: text[at] = static_cast<char>(random()); break;
        case 2: text.erase(at, length); break;
        case 3: text.insert(at, text.substr(random() % text.size(), length)); break;
        case 4: text.insert(at, std::array{"9999999999", "-1", "null", "[", "{\"a\":", "1e999", "\xff"}[random() % 7]); break;
        default: text.replace(at, length, other.substr(random() % (other.size() + 1), length)); break;
      }
    }
    return text;
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SeedsTest)
#include "seeds_test.moc"
