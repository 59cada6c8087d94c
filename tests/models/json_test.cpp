#include "models/json.h"

#include <QtTest>
#include <array>
#include <map>

namespace saccade::test {

using Json = nlohmann::json;

/// What files say of integers: taken as it is, or refused.
class JsonTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void numbers_that_fit_are_taken() {
    const Json object =
        Json::parse(R"({"a": 5000000000, "b": -3, "c": 2.0, "d": 2e3, "e": 18446744073709551615, "f": [1, 2, 3], "g": -0.0})");
    QCOMPARE(object.at("a").get<int64_t>(), 5'000'000'000);
    QCOMPARE(object.value("b", 0), -3);
    QCOMPARE(object.at("c").get<int8_t>(), int8_t{2});
    QCOMPARE(object.at("d").get<size_t>(), size_t{2000});
    QCOMPARE(object.at("e").get<uint64_t>(), std::numeric_limits<uint64_t>::max());
    const int64_t converted = object.at("g");
    QCOMPARE(converted, 0);
    QCOMPARE((object.at("f").get<std::vector<int32_t>>()), (std::vector<int32_t>{1, 2, 3}));
    QCOMPARE((object.at("f").get<std::array<int64_t, 3>>()), (std::array<int64_t, 3>{1, 2, 3}));
    QCOMPARE(object.value("missing", int64_t{7}), 7);
    QCOMPARE((Json{{"x", 1}}.get<std::map<std::string, int64_t>>().at("x")), 1);
    QCOMPARE(Json(-0x1p63).get<int64_t>(), std::numeric_limits<int64_t>::min());
  }

  void others_are_refused() {
    for (const char* text : {"1.5", "-0.5", "1e62", "-1e300", "9223372036854775808", "9.3e18", "null", "true", "\"1\"", "[1]", "{}"}) {
      const Json value = Json::parse(text);
      QVERIFY2(!whole_number<int64_t>(value), text);
      QVERIFY_THROWS_EXCEPTION(Json::type_error, value.get<int64_t>());
      QVERIFY_THROWS_EXCEPTION(Json::type_error, (Json{{"step", value}}.value("step", int64_t{0})));
      QVERIFY_THROWS_EXCEPTION(Json::type_error, (Json::array({1, value}).get<std::vector<int64_t>>()));
    }
    QVERIFY_THROWS_EXCEPTION(Json::type_error, Json(4294967296).get<int>());
    QVERIFY_THROWS_EXCEPTION(Json::type_error, Json(-1).get<uint64_t>());
    QVERIFY_THROWS_EXCEPTION(Json::type_error, Json(-1.0).get<size_t>());
    QVERIFY_THROWS_EXCEPTION(Json::type_error, Json(128).get<int8_t>());
    QVERIFY_THROWS_EXCEPTION(Json::type_error, Json(NAN).get<int64_t>());
    QVERIFY_THROWS_EXCEPTION(Json::type_error, Json(INFINITY).get<int64_t>());
  }

  /// Into JSON everything goes as before, as do numbers with a fraction and truth values.
  void the_rest_is_nlohmanns() {
    QCOMPARE(Json(int8_t{-3}).dump(), "-3");
    QCOMPARE(Json(std::vector<uint64_t>{1, std::numeric_limits<uint64_t>::max()}).dump(), "[1,18446744073709551615]");
    QCOMPARE((Json{{"a", true}}.at("a").get<bool>()), true);
    QCOMPARE(Json(1.5).get<double>(), 1.5);
    QCOMPARE(Json(3).get<float>(), 3.0F);
  }
};

}  // namespace saccade::test

QTEST_APPLESS_MAIN(saccade::test::JsonTest)
#include "json_test.moc"
