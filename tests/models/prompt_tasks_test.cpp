#include "models/tasks/prompt_task.h"

#include <QRegularExpression>
#include <QtTest>
#include <set>

#include "kernels/engine/error.h"

namespace saccade::test {

/// RULER's needles and the passkey map, by their rules.
class PromptTasksTest : public QObject {
  Q_OBJECT

  std::unique_ptr<Tokenizer> bytes_ = make_byte_tokenizer();

  std::string essay() const {
    std::string text;
    for (int i = 0; i < 300; ++i)
      text += "Sentence number " + std::to_string(i) + " was written by Mr. Smith, e.g. on a day. \"Why?\" Asked he!\n";
    return text;
  }
  MakePrompt maker(const char* task, int64_t length, uint64_t seed = 42) const {
    return prompt_task(task).maker({length, seed, *bytes_, essay(), {}, {}});
  }
  static int count(const std::string& text, const std::string& word) {
    int n = 0;
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
    return n;
  }

 private Q_SLOTS:
  void sentences() {
    QCOMPARE(
        split_sentences("One. Two? \"Three!\" Mr. Four met J. Five, e.g. here. 6 is. and goes on. (Then) end"),
        (std::vector<std::string>{"One.", "Two?", "\"Three!\"", "Mr. Four met J. Five, e.g. here.", "6 is. and goes on.", "(Then) end"}));
    QCOMPARE(split_sentences("none"), std::vector<std::string>{"none"});
    QVERIFY(split_sentences("").empty());
  }

  void needles() {
    for (const char* task : {"s-niah-1", "s-niah-2", "s-niah-3"})
      for (const int64_t length : {1024, 2048}) {
        const bool is_uuid = std::string(task) == "s-niah-3", is_filler = std::string(task) == "s-niah-1";
        const std::string what = is_uuid ? "uuid" : "number";
        const MakePrompt make = maker(task, length);
        std::set<std::string> keys, answers;
        for (int64_t i = 0; i < 40; ++i) {
          const PromptSample s = make(i);
          const auto tokens = static_cast<int64_t>(bytes_->encode(s.prompt).size());
          QVERIFY2(tokens + 128 <= length, qPrintable(QString::number(tokens)));
          const int64_t unit = is_filler ? static_cast<int64_t>(kFiller.size()) + 1 : 20;  // a line, or the longest word with its blank
          QVERIFY2(tokens + 128 + unit > length, qPrintable(QString::number(tokens)));
          QCOMPARE(count(s.prompt, s.answer), 1);
          const QRegularExpression needle(QStringLiteral("One of the special magic %1s for ([a-z]+-[a-z]+) is: %2\\.")
                                              .arg(QString::fromStdString(what), QString::fromStdString(s.answer)));
          const auto match = needle.match(QString::fromStdString(s.prompt));
          QVERIFY(match.hasMatch());
          QCOMPARE(static_cast<size_t>(match.capturedStart()), s.needle);
          const std::string key = match.captured(1).toStdString();
          QVERIFY(s.prompt.starts_with("A special magic " + what +
                                       " is hidden within the following text. Make sure to memorize it. I will quiz you about the " + what +
                                       " afterwards.\n"));
          QVERIFY(s.prompt.ends_with("\nWhat is the special magic " + what + " for " + key +
                                     " mentioned in the provided text? The special magic " + what + " for " + key +
                                     " mentioned in the provided text is"));
          const QRegularExpression form(is_uuid ? "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
                                                : "^[1-9][0-9]{6}$");
          QVERIFY2(form.match(QString::fromStdString(s.answer)).hasMatch(), s.answer.c_str());
          QCOMPARE(make(i).prompt, s.prompt);
          if (i < 2) QVERIFY(maker(task, length, 43)(i).prompt != s.prompt);
          keys.insert(key), answers.insert(s.answer);
          QCOMPARE(s.max_tokens, int64_t{128});
        }
        QVERIFY(keys.size() > 35 && answers.size() == 40);
      }
  }

  /// In RULER every place is as likely as another: ten bins of depth, chi-square.
  void depths_are_flat() {
    const MakePrompt make = maker("s-niah-1", 6000);
    constexpr int kSamples = 600;
    double bins[10] = {}, chi_square = 0;
    for (int64_t i = 0; i < kSamples; ++i) {
      const PromptSample s = make(i);
      bins[std::min<size_t>(9, s.needle * 10 / (s.prompt.size() - 200))] += 1;
    }
    for (const double n : bins) chi_square += (n - kSamples / 10) * (n - kSamples / 10) / (kSamples / 10);
    QVERIFY2(chi_square < 35, qPrintable(QString::number(chi_square)));  // 9 degrees of freedom; lines make bins uneven
  }

  void haystacks_without_room() {
    QVERIFY_THROWS_EXCEPTION(UsageError, maker("s-niah-1", 300)(0));
    QVERIFY_THROWS_EXCEPTION(UsageError, prompt_task("s-niah-2").maker({2048, 42, *bytes_, " \n", {}, {}}));
    QVERIFY_THROWS_EXCEPTION(UsageError, prompt_task("s-niah-4"));
    QVERIFY_THROWS_EXCEPTION(UsageError, maker("passkey", 200));
    const MakePrompt own = prompt_task("s-niah-1").maker({1024, 42, *bytes_, "", {"odd"}, {"thing"}});
    QVERIFY(own(3).prompt.find(" for odd-thing is: ") != std::string::npos);
  }

  /// Characters of the filler, and where the needle stands among them.
  void passkeys() {
    for (const auto& [length, characters] : {std::pair<int64_t, size_t>{1000, 3000}, {64000, 240000}}) {
      const MakePrompt make = maker("passkey", length);
      std::set<std::string> answers;
      for (int64_t i = 0; i < 45; ++i) {
        const PromptSample s = make(i);
        const std::string told = "\nThe pass key is " + s.answer + "\n", asked = "\nThe pass key is";
        const size_t at = s.prompt.find(told);
        QVERIFY(s.prompt.starts_with("\nThe grass is green. ") && s.prompt.ends_with(asked) && at != std::string::npos);
        const size_t before = at - 1, behind = s.prompt.size() - at - told.size() - asked.size();
        QCOMPARE(before + behind, characters);
        QCOMPARE(before, static_cast<size_t>(i / 5 + 1) * (characters / 10));
        QVERIFY(s.prompt.substr(at + told.size()).starts_with("The grass is green. "));
        QCOMPARE(s.needle, at + 1);
        const int key = std::stoi(s.answer);
        QVERIFY(key >= 1 && key < 50000);
        QCOMPARE(s.max_tokens, static_cast<int64_t>(s.answer.size()) + 1);  // a byte for the blank before it
        QCOMPARE(s.depth, std::to_string(10 * (i / 5 + 1)) + " %");
        answers.insert(s.answer);
      }
      QVERIFY(answers.size() > 40);
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::PromptTasksTest)
#include "prompt_tasks_test.moc"
