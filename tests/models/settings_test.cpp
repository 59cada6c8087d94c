#include <QtTest>

#include "models/settings.h"
#include "models/suggest.h"
#include "tests/support/message.h"

namespace saccade::test {

class SettingsTest : public QObject {
  Q_OBJECT

  struct Sample {
    int64_t count = 3;
    double rate = 0.5;
    bool on = true;
    std::string kind = "exact", word = "x";
    std::vector<std::string> list = {"a"};
  };
  static const Schema<Sample>& schema() {
    static const Schema<Sample> s{field("count", &Sample::count, {1, 10}, "", ""),
                                  field("rate", &Sample::rate, {0, 1}, ""),
                                  field("on", &Sample::on, ""),
                                  choice_field("kind", &Sample::kind, {"exact", "approx"}, ""),
                                  text_field("word", &Sample::word, ""),
                                  list_field("list", &Sample::list, "")};
    return s;
  }
  static QString error_of(const nlohmann::json& object) {
    return message_of<UsageError>([&] { schema().read(object, "/sample"); });
  }

 private Q_SLOTS:
  void values_are_read_over_defaults() {
    const Sample s = schema().read({{"count", 10}, {"rate", 1}, {"on", false}, {"kind", "approx"}, {"list", {"b", "c"}}}, "");
    QCOMPARE(s.count, 10);
    QCOMPARE(s.rate, 1.0);
    QCOMPARE(s.on, false);
    QCOMPARE(s.kind, std::string("approx"));
    QCOMPARE(s.word, std::string("x"));
    QCOMPARE(s.list.size(), size_t(2));
    QCOMPARE(schema().read({{"count", 1e1}}, "").count, 10);
    QVERIFY(schema().write(schema().read(schema().write(s), "")) == schema().write(s));
    QVERIFY(schema().settings()[0].default_value == 3);
  }

  void wrong_values_say_what_where_and_what_was_expected_data() {
    QTest::addColumn<QString>("object");
    QTest::addColumn<QString>("message");
    QTest::newRow("too small") << R"({"count": 0})"
                               << "/sample/count is 0; expected an integer from 1 to 10";
    QTest::newRow("too large") << R"({"count": 11})"
                               << "/sample/count is 11; expected an integer from 1 to 10";
    QTest::newRow("fraction") << R"({"count": 1.5})"
                              << "/sample/count is 1.5; expected an integer from 1 to 10";
    QTest::newRow("huge") << R"({"count": 1e300})"
                          << "/sample/count is 1e+300; expected an integer from 1 to 10";
    QTest::newRow("text") << R"({"count": "3"})"
                          << "/sample/count is \"3\"; expected an integer from 1 to 10";
    QTest::newRow("null") << R"({"count": null})"
                          << "/sample/count is null; expected an integer from 1 to 10";
    QTest::newRow("real") << R"({"rate": -0.1})"
                          << "/sample/rate is -0.1; expected a number from 0 to 1";
    QTest::newRow("real type") << R"({"rate": true})"
                               << "/sample/rate is true; expected a number from 0 to 1";
    QTest::newRow("boolean") << R"({"on": 1})"
                             << "/sample/on is 1; expected true or false";
    QTest::newRow("choice") << R"({"kind": "aprox"})"
                            << "/sample/kind is \"aprox\"; expected exact or approx; did you mean \"approx\"?";
    QTest::newRow("choice type") << R"({"kind": 1})"
                                 << "/sample/kind is 1; expected exact or approx";
    QTest::newRow("word") << R"({"word": []})"
                          << "/sample/word is []; expected text";
    QTest::newRow("list") << R"({"list": ["a", 1]})"
                          << R"(/sample/list is ["a",1]; expected a list of texts, like ["a", "b"])";
  }
  void wrong_values_say_what_where_and_what_was_expected() {
    QFETCH(QString, object);
    QFETCH(QString, message);
    QCOMPARE(error_of(nlohmann::json::parse(object.toStdString())), message);
  }

  void long_or_broken_values_stay_one_short_line() {
    const QString message = error_of({{"count", std::string(5000, 'x') + "\n\xff"}});
    QVERIFY(message.size() < 150);
    QVERIFY(!message.contains('\n'));
    QVERIFY(error_of({{"count", "\xff\n"}}).contains("expected an integer"));
  }

  void unknown_keys_get_a_suggestion() {
    const auto message = [](const nlohmann::json& object) {
      return message_of<UsageError>([&] { check_known_keys(object, {"steps", "seed", "warmup_steps"}, "/training"); });
    };
    QCOMPARE(message({{"steps", 1}, {"seed", 2}}), "");
    QCOMPARE(message({{"step", 1}}), "/training has no setting \"step\"; did you mean \"steps\"?");
    QCOMPARE(message({{"Seed", 1}}), "/training has no setting \"Seed\"; did you mean \"seed\"?");
    QCOMPARE(message({{"quantum", 1}}), "/training has no setting \"quantum\"; expected steps, seed or warmup_steps");
    QCOMPARE(message(nlohmann::json::array()), "/training is []; expected an object { … }");
  }

  void nearest_names() {
    QCOMPARE(nearest_name("lenght", {"width", "length"}), std::string("length"));
    QCOMPARE(nearest_name("top1chunk", {"attention", "top1_chunk", "top1_element"}), std::string("top1_chunk"));
    QCOMPARE(nearest_name("zzz", {"width", "length"}), std::string());
    QCOMPARE(nearest_name("", {"width"}), std::string());
    QCOMPARE(nearest_name("a", {}), std::string());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SettingsTest)
#include "settings_test.moc"
