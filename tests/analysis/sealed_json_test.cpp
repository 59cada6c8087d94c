#include "analysis/runs/sealed_json.h"

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "analysis/runs/files.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Files whose numbers stand nowhere else: a bit that turned over is told, or changes nothing.
class SealedJsonTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void no_bit_gives_another_value() {
    const nlohmann::json object{{"scores", {0.75, 1e-9, nullptr}}, {"name", "t\xc3\xb6"}, {"items", 1234567}};
    write_sealed_json(file(), object);
    QVERIFY(read_sealed_json(file()) == object);
    const std::string text = read_text(file());
    int refused = 0;
    for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
      std::string changed = text;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      write(changed);
      try {
        nlohmann::json read = read_sealed_json(file());
        for (auto key = read.begin(); key != read.end();)  // a bit of the seal's own name makes it a key that nobody reads
          key = object.contains(key.key()) ? std::next(key) : read.erase(key);
        QVERIFY2(read == object, changed.c_str());
      } catch (const DataError&) {
        ++refused;
      }
    }
    QVERIFY(refused > static_cast<int>(7 * text.size()));
  }

  /// As earlier versions wrote them.
  void without_a_seal() {
    write("{\"a\": 1}\n");
    QVERIFY(read_sealed_json(file()) == (nlohmann::json{{"a", 1}}));
  }

  void what_is_none_is_refused_in_a_line() {
    const std::string deep = "{\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}";
    for (const std::string& text : {std::string(), std::string("[1]"), std::string("{\"a\":"), std::string("{\"crc32c\":\"00000000\"}"),
                                    std::string("{\"a\": 1, \"a\": 2}"), deep}) {
      write(text);
      const QString message = message_of<DataError>([&] { read_sealed_json(file()); });
      QVERIFY2(message.contains("damaged") && !message.contains('\n'), qPrintable(message));
    }
  }

 private:
  fs::path file() const { return folder_.filePath("sealed.json").toStdString(); }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SealedJsonTest)
#include "sealed_json_test.moc"
