#include "analysis/tasks/unicode_text.h"

#include <QtTest>

namespace saccade::test {

/// What Python's str says of the same text.
class UnicodeTextTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void letters_become_small() {
    QCOMPARE(lower("École ŻÓŁĆ ΑΒΓ ПРИВЕТ Ǆ ẞ Ⅷ 𐐀"), std::string("école żółć αβγ привет ǆ ß ⅷ 𐐨"));
    QCOMPARE(lower("İ"), std::string("i\u0307"));
    QCOMPARE(lower("ßıſ中1_"), std::string("ßıſ中1_"));
    QCOMPARE(lower("A\xff"
                   "B"),
             std::string("a\xff"
                         "b"));
    for (char c = 0; c < 127; ++c) QCOMPARE(lower(std::string(1, c)), std::string(1, c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c));
  }

  void the_first_letter_becomes_large() {
    QCOMPARE(capital("éa É"), std::string("Éa É"));
    QCOMPARE(capital("ångström"), std::string("Ångström"));
    QCOMPARE(capital("θω"), std::string("Θω"));
    QCOMPARE(capital(""), std::string());
    QCOMPARE(capital("1a"), std::string("1a"));
  }

  void blanks_go() {
    QCOMPARE(trimmed("\u00a0\u2003 \t\x1f a\u00a0b \u3000\r\n\u0085"), std::string("a\u00a0b"));
    QCOMPARE(trimmed("\u200ba\u200b"), std::string("\u200ba\u200b"));  // of no width, but no white space
    QCOMPARE(trimmed(" \u2028 "), std::string());
    QCOMPARE(trimmed("a\xa0"), std::string("a\xa0"));  // no character
    QVERIFY(without_blanks_before(" a ") == "a " && without_blanks_behind(" a ") == " a");
  }

  void places_of_characters() {
    QCOMPARE(place_of("aé€𐐀b", 0), size_t{0});
    QCOMPARE(place_of("aé€𐐀b", 3), size_t{6});
    QCOMPARE(place_of("aé€𐐀b", 4), size_t{10});
    QCOMPARE(place_of("aé€𐐀b", 9), size_t{11});
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::UnicodeTextTest)
#include "unicode_text_test.moc"
