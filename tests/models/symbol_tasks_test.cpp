#include <QRegularExpression>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/tasks/symbol_task.h"

namespace saccade::test {

/// Every generator against its rule, written out once more: what is asked for is worked out here from the tokens alone.
class SymbolTasksTest : public QObject {
  Q_OBJECT

  using Check = std::function<std::map<size_t, int32_t>(const SymbolExample&)>;

  static SymbolDomain domain(const char* task, const char* name) { return {symbol_task(task), name, "/data/train"}; }

  /// The answers of 200 examples of every split are those that `answers` finds, and nothing else is asked for.
  static void check(const char* task, const char* name, const Check& answers) {
    const SymbolDomain d = domain(task, name);
    for (const Split split : {Split::train, Split::validation, Split::test})
      for (uint64_t i = 0; i < 200; ++i) {
        const SymbolExample e = d.example(split, i);
        QVERIFY(!e.tokens.empty() && e.tokens.size() == e.targets.size() && e.tokens.size() == e.sources.size());
        QVERIFY(static_cast<int64_t>(e.tokens.size()) <= d.length());
        const std::map<size_t, int32_t> expected = answers(e);
        QVERIFY(!expected.empty() && static_cast<int64_t>(expected.size()) <= d.most_targets());
        for (size_t t = 0; t < e.tokens.size(); ++t) {
          QVERIFY(e.tokens[t] >= 0 && e.tokens[t] < d.vocabulary() && e.targets[t] < d.vocabulary());
          QCOMPARE(e.targets[t], expected.contains(t) ? expected.at(t) : kNoTarget);
          if (e.sources[t] < 0) continue;
          QVERIFY(e.sources[t] <= static_cast<int32_t>(t));
          QCOMPARE(e.tokens[static_cast<size_t>(e.sources[t])], e.targets[t]);
        }
      }
  }

 private Q_SLOTS:
  void every_generator_is_tested() {
    std::vector<std::string> ids;
    for (const SymbolTask* task : symbol_tasks()) ids.push_back(task->id);
    QCOMPARE(ids, (std::vector<std::string>{"a5", "copying", "induction", "mad-compression", "mad-fuzzy-recall", "mad-in-context-recall",
                                            "mad-memorization", "mad-noisy-recall", "mad-selective-copying", "modular-arithmetic", "mqar",
                                            "parity", "passkey-bytes", "s-niah-1-bytes", "s5"}));
  }

  void mqar() {
    for (const char* name : {"length-64-pairs-4", "length-64-pairs-16-vocabulary-66-random_others-1", "length-512-pairs-64"}) {
      const SymbolDomain d = domain("mqar", name);
      const auto pairs = static_cast<size_t>(std::stoi(std::string(name).substr(std::string(name).find("pairs-") + 6)));
      check("mqar", name, [&](const SymbolExample& e) {
        std::map<int32_t, int32_t> values;
        for (size_t i = 0; i < pairs; ++i) values[e.tokens[2 * i]] = e.tokens[2 * i + 1];
        std::map<size_t, int32_t> answers;
        for (size_t t = 2 * pairs; t < e.tokens.size(); ++t)
          if (e.targets[t] != kNoTarget) answers[t] = values.at(e.tokens[t]);
        std::set<int32_t> keys, asked, all_values;
        for (const auto& [key, value] : values) keys.insert(key), all_values.insert(value);
        for (const auto& [t, value] : answers) asked.insert(e.tokens[t]);
        const bool good = e.tokens.size() == static_cast<size_t>(d.length()) && keys.size() == pairs && asked == keys &&
                          all_values.size() == pairs && *keys.begin() >= 1 && *keys.rbegin() < d.vocabulary() / 2 &&
                          *all_values.begin() >= d.vocabulary() / 2 &&
                          std::all_of(answers.begin(), answers.end(), [](const auto& a) { return a.first % 2 == 0; });
        return good ? answers : std::map<size_t, int32_t>();
      });
    }
  }

  /// Guessing says one of the answers that there are, each of which is the right one of some example.
  void chance_is_of_the_answers_data() {
    QTest::addColumn<QString>("task");
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("answers");
    const auto row = [](const char* task, const char* name, int answers) {
      QTest::addRow("%s, %s", task, name) << task << name << answers;
    };
    row("a5", "length-8", 60);
    row("s5", "length-8-moved-2", 120);
    row("copying", "length-64-vocabulary-32", 31);
    row("induction", "length-256", 15);
    row("mad-compression", "length-64-vocabulary-16", 15);
    row("mad-fuzzy-recall", "length-128-vocabulary-16", 7);
    row("mad-in-context-recall", "length-128-vocabulary-16", 8);
    row("mad-memorization", "length-32-vocabulary-256", 127);
    row("mad-noisy-recall", "length-128-vocabulary-32-noise_vocabulary-16-noise-0.2", 8);
    row("mad-selective-copying", "length-256-vocabulary-16-copied-16", 14);
    row("modular-arithmetic", "length-40-least-4", 5);
    row("mqar", "length-64-pairs-4-vocabulary-128", 64);
    row("parity", "length-40-least-3", 2);
  }
  void chance_is_of_the_answers() {
    QFETCH(QString, task);
    QFETCH(QString, name);
    QFETCH(int, answers);
    const SymbolDomain d(symbol_task(task.toStdString()), name.toStdString(), "/data/train");
    QCOMPARE(d.chance(), 1.0 / answers);
    std::set<int32_t> asked;
    for (uint64_t i = 0; i < 1500; ++i)
      for (const int32_t target : d.example(Split::test, i).targets)
        if (target != kNoTarget) asked.insert(target);
    QCOMPARE(asked.size(), static_cast<size_t>(answers));
  }

  /// Of bytes: the blank and the end are certain, digits are not.
  void chance_of_numbers_in_text() {
    QVERIFY(std::abs(domain("s-niah-1-bytes", "length-1024").chance() - (2 + 1.0 / 9 + 0.6) / 9) < 1e-12);
    QVERIFY(std::abs(domain("passkey-bytes", "length-1024").chance() - (2 + 1.0 / 9 + 4.0 / 11) / 7) < 1e-12);
  }

  /// As many targets as an example can have are told, and no more than some example has.
  void most_targets_data() {
    QTest::addColumn<QString>("task");
    QTest::addColumn<QString>("name");
    QTest::addColumn<qint64>("most");
    const auto row = [](const char* task, const char* name, qint64 most) { QTest::addRow("%s, %s", task, name) << task << name << most; };
    row("a5", "length-24", 24);
    row("s5", "length-24", 24);
    row("copying", "length-20-least-4", 10);
    row("induction", "length-64", 1);
    row("mad-compression", "length-32-vocabulary-16", 15);
    row("mad-fuzzy-recall", "length-128-vocabulary-16", 3);
    row("mad-in-context-recall", "length-8-vocabulary-4", 3);
    row("mad-noisy-recall", "length-8-vocabulary-6-noise_vocabulary-2-noise-0.1", 3);
    row("mad-memorization", "length-32-vocabulary-64", 16);
    row("mad-selective-copying", "length-64-vocabulary-16-copied-8", 8);
    row("modular-arithmetic", "length-40-least-4", 1);
    row("mqar", "length-512-pairs-64", 64);
    row("parity", "length-40-least-3", 40);
    row("parity", "length-40-least-3-last_only-1", 1);
    row("passkey-bytes", "length-128", 7);
    row("s-niah-1-bytes", "length-600", 9);
  }
  void most_targets() {
    QFETCH(QString, task);
    QFETCH(QString, name);
    QFETCH(qint64, most);
    const SymbolDomain d = domain(task.toUtf8(), name.toUtf8());
    QCOMPARE(d.most_targets(), int64_t{most});
    int64_t found = 0;
    for (uint64_t i = 0; i < 300; ++i) {
      const SymbolExample e = d.example(Split::train, i);
      found = std::max(found, static_cast<int64_t>(e.targets.size()) - std::count(e.targets.begin(), e.targets.end(), kNoTarget));
    }
    QCOMPARE(found, int64_t{most});
  }

  /// Where the first key is asked for, over 10 000 examples: chi-square against the weights, one of two pairs in eight slots.
  void mqar_asks_soon() {
    constexpr int64_t kSlots = 8, kPairs = 2, kExamples = 10000;
    const SymbolDomain d = domain("mqar", "length-20-pairs-2-vocabulary-1024-power-0.5");
    std::vector<double> weights, expected(kSlots), found(kSlots);
    double all = 0;
    for (int64_t g = 1; g <= kSlots; ++g) weights.push_back(std::pow(g, -0.5)), all += weights.back();
    for (size_t g = 0; g < kSlots; ++g) {
      expected[g] = weights[g] / all / kPairs;  // drawn first, or second after another
      for (size_t other = 0; other < kSlots; ++other)
        if (other != g) expected[g] += weights[other] / all * weights[g] / (all - weights[other]) / kPairs;
    }
    for (uint64_t i = 0; i < kExamples; ++i) {
      const SymbolExample e = d.example(Split::train, i);
      for (size_t t = 2 * kPairs; t < e.tokens.size(); ++t)
        if (e.targets[t] != kNoTarget) found[(t - 2 * kPairs) / 2] += 1.0 / kPairs;
    }
    double chi_square = 0;
    for (size_t g = 0; g < kSlots; ++g)
      chi_square += (found[g] - kExamples * expected[g]) * (found[g] - kExamples * expected[g]) / (kExamples * expected[g]);
    QVERIFY2(chi_square < 24.3, qPrintable(QString::number(chi_square)));  // 7 degrees of freedom, p = 0.001
  }

  void parity() {
    const auto sums = [](const SymbolExample& e) {
      std::map<size_t, int32_t> answers;
      int32_t ones = 0;
      for (size_t t = 0; t < e.tokens.size(); ++t) answers[t] = (ones += e.tokens[t]) % 2;
      return answers;
    };
    check("parity", "length-40-least-12", sums);
    check("parity", "length-64", sums);
    check("parity", "length-64-last_only-1", [&](const SymbolExample& e) { return std::map<size_t, int32_t>{*sums(e).rbegin()}; });
  }

  /// Permutations as lists, multiplied out from the front.
  void permutations() {
    for (const auto& [task, even] : {std::pair{"s5", false}, {"a5", true}}) {
      std::vector<std::vector<int>> elements;
      std::vector<int> p{0, 1, 2, 3, 4};
      do {
        int swaps = 0;
        std::vector<int> sorted = p;
        for (int i = 0; i < 5; ++i)
          while (sorted[static_cast<size_t>(i)] != i)
            std::swap(sorted[static_cast<size_t>(i)], sorted[static_cast<size_t>(sorted[static_cast<size_t>(i)])]), ++swaps;
        if (!even || swaps % 2 == 0) elements.push_back(p);
      } while (std::next_permutation(p.begin(), p.end()));
      check(task, "length-24", [&](const SymbolExample& e) {
        std::vector<int> things{0, 1, 2, 3, 4};  // where each thing has come
        std::map<size_t, int32_t> answers;
        for (size_t t = 0; t < e.tokens.size(); ++t) {
          for (int& place : things) place = elements[static_cast<size_t>(e.tokens[t])][static_cast<size_t>(place)];
          answers[t] = static_cast<int32_t>(std::find(elements.begin(), elements.end(), things) - elements.begin());
        }
        return answers;
      });
    }
    const SymbolDomain swaps = domain("s5", "length-24-moved-2");
    std::set<int32_t> read;
    for (uint64_t i = 0; i < 100; ++i)
      for (const int32_t token : swaps.example(Split::train, i).tokens) read.insert(token);
    QCOMPARE(read.size(), size_t(11));  // ten swaps, and the one that moves nothing
  }

  /// Left to right with a stack of summands.
  void modular_arithmetic() {
    check("modular-arithmetic", "length-40-least-10", [](const SymbolExample& e) {
      std::vector<int> summands{e.tokens[0]};
      for (size_t t = 1; t + 1 < e.tokens.size(); t += 2) {
        const int sign = e.tokens[t] - 5, number = e.tokens[t + 1];
        if (sign == 0) summands.push_back(number);
        if (sign == 1) summands.push_back(-number);
        if (sign == 2) summands.back() = summands.back() * number % 5;
        if (sign < 0 || sign > 2 || number > 4) return std::map<size_t, int32_t>();
      }
      int sum = 0;
      for (const int summand : summands) sum += summand;
      if (e.tokens.back() != 8) return std::map<size_t, int32_t>();
      return std::map<size_t, int32_t>{{e.tokens.size() - 1, ((sum % 5) + 5) % 5}};
    });
  }

  void copying() {
    check("copying", "length-64-least-16-vocabulary-32", [](const SymbolExample& e) {
      const auto mark = static_cast<size_t>(std::find(e.tokens.begin(), e.tokens.end(), 31) - e.tokens.begin());
      std::map<size_t, int32_t> answers;
      for (size_t i = 0; i < mark; ++i) {
        answers[mark + i] = e.tokens[i];
        if (i > 0 && e.tokens[mark + i] != e.tokens[i - 1]) return std::map<size_t, int32_t>();
      }
      return e.tokens.size() == 2 * mark ? answers : std::map<size_t, int32_t>();
    });
  }

  void induction() {
    check("induction", "length-32", [](const SymbolExample& e) {
      const auto mark = std::find(e.tokens.begin(), e.tokens.end(), 15);
      const bool twice = std::count(e.tokens.begin(), e.tokens.end(), 15) == 2 && e.tokens.back() == 15;
      return twice ? std::map<size_t, int32_t>{{e.tokens.size() - 1, *(mark + 1)}} : std::map<size_t, int32_t>();
    });
  }

  /// The text of an example; nothing where a token is no byte.
  static QString text_of(const SymbolExample& e) {
    QByteArray text;
    for (const int32_t token : e.tokens) text += token >= 32 || token == '\n' ? static_cast<char>(token) : '\0';
    return QString::fromLatin1(text);
  }
  /// Bytes that stand behind `question` at the end, each asked for by the one before it.
  static std::map<size_t, int32_t> said(const SymbolExample& e, const QString& question, const QString& answer) {
    const QString text = text_of(e);
    std::map<size_t, int32_t> answers;
    if (!text.endsWith(question + answer.chopped(1))) return answers;
    const qsizetype first = text.size() - answer.size();
    for (qsizetype i = 0; i < answer.size(); ++i) answers[static_cast<size_t>(first + i)] = answer[i].unicode();
    return answers;
  }

  /// Every key and every place of the number comes up, and an example is as long as its lines of filler allow.
  void needles() {
    std::set<QString> keys;
    std::set<qsizetype> places;
    for (const char* name : {"length-600", "length-1024"})
      check("s-niah-1-bytes", name, [&](const SymbolExample& e) {
        static const QRegularExpression needle("One of the special magic numbers for ([a-z]+-[a-z]+) is: ([1-9][0-9]{6})\\.\n");
        const auto found = needle.match(text_of(e));
        if (!found.hasMatch() || static_cast<int64_t>(e.tokens.size()) + 90 < domain("s-niah-1-bytes", name).length())
          return std::map<size_t, int32_t>();
        keys.insert(found.captured(1)), places.insert(found.capturedStart());
        return said(e,
                    "\nWhat is the special magic number for " + found.captured(1) +
                        " mentioned in the provided text? The special magic number for " + found.captured(1) +
                        " mentioned in the provided text is",
                    " " + found.captured(2) + ".");
      });
    QVERIFY2(keys.size() > 1000 && places.size() >= 6, qPrintable(QString("%1 %2").arg(keys.size()).arg(places.size())));
  }

  void passkeys() {
    std::set<qsizetype> places;
    check("passkey-bytes", "length-500", [&](const SymbolExample& e) {
      static const QRegularExpression needle("\nThe pass key is ([1-9][0-9]{0,4})\nThe grass");
      const QString text = text_of(e);
      const auto found = needle.match(text);
      if (!found.hasMatch() || !text.startsWith("\nThe grass is green. ")) return std::map<size_t, int32_t>();
      places.insert(found.capturedStart());
      return said(e, "\nThe pass key is", " " + found.captured(1) + "\n");
    });
    QCOMPARE(places.size(), size_t{9});
  }

  void mad_recall() {
    const auto recall = [](const SymbolExample& e) {
      std::map<int32_t, int32_t> known;
      std::map<size_t, int32_t> answers;
      for (size_t t = 0; t < e.tokens.size(); t += 2) {
        if (e.tokens[t] >= 16) continue;  // noise
        if (e.tokens[t] >= 8 || e.tokens[t + 1] < 8 || e.tokens[t + 1] >= 16) return std::map<size_t, int32_t>();
        if (known.contains(e.tokens[t])) answers[t] = known.at(e.tokens[t]);
        if (known.contains(e.tokens[t]) && known.at(e.tokens[t]) != e.tokens[t + 1]) return std::map<size_t, int32_t>();
        known[e.tokens[t]] = e.tokens[t + 1];
      }
      if (!answers.contains(e.tokens.size() - 2)) return std::map<size_t, int32_t>();
      return answers;
    };
    check("mad-in-context-recall", "length-64-vocabulary-16", recall);
    const char* noisy = "length-64-vocabulary-32-noise_vocabulary-16-noise-0.4";
    check("mad-noisy-recall", noisy, recall);
    int64_t noise = 0, all = 0;
    for (uint64_t i = 0; i < 500; ++i)
      for (const int32_t token : domain("mad-noisy-recall", noisy).example(Split::train, i).tokens) noise += token >= 16, ++all;
    QVERIFY(std::abs(static_cast<double>(noise) / static_cast<double>(all) - 0.4 * 30 / 32) < 0.02);
  }

  /// Runs of the lower half are keys, of the upper half values; the last key stood before.
  void mad_fuzzy_recall() {
    std::set<size_t> key_lengths[2];
    check("mad-fuzzy-recall", "length-64-vocabulary-16", [&](const SymbolExample& e) {
      std::map<std::vector<int32_t>, std::vector<int32_t>> known;
      std::map<size_t, int32_t> answers;
      size_t t = 0;
      while (e.tokens[t] == 14) ++t;
      const auto run = [&](int32_t low, int32_t high) {
        std::vector<int32_t> word;
        while (t < e.tokens.size() && e.tokens[t] >= low && e.tokens[t] < high) word.push_back(e.tokens[t++]);
        return word;
      };
      while (e.tokens[t] != 15) {
        const std::vector<int32_t> key = run(0, 7), value = run(7, 14);
        if (key.empty() || value.empty() || (known.contains(key) && known.at(key) != value)) return answers;
        known[key] = value;
      }
      ++t;
      const std::vector<int32_t> key = run(0, 7), value = known.at(key);
      for (size_t i = 0; i < value.size(); ++i) answers[t - 1 + i] = value[i];
      return t - 1 + value.size() == e.tokens.size() && e.tokens.size() == 64 ? answers : std::map<size_t, int32_t>();
    });
    const SymbolDomain d = domain("mad-fuzzy-recall", "length-64-vocabulary-16");
    for (uint64_t i = 0; i < 100; ++i)
      for (const Split split : {Split::train, Split::test}) {
        size_t length = 0;
        for (const int32_t token : d.example(split, i).tokens) {
          if (token >= 7 && length > 0) key_lengths[split == Split::test].insert(length);
          length = token < 7 ? length + 1 : 0;
        }
      }
    QCOMPARE(key_lengths[0], (std::set<size_t>{1, 2, 3}));
    QCOMPARE(key_lengths[1], std::set<size_t>{3});
  }

  void mad_selective_copying() {
    check("mad-selective-copying", "length-64-vocabulary-16-copied-8", [](const SymbolExample& e) {
      std::map<size_t, int32_t> answers;
      std::vector<int32_t> symbols;
      for (size_t t = 0; t < 55; ++t)
        if (e.tokens[t] < 14) symbols.push_back(e.tokens[t]);
      if (e.tokens[55] != 15 || symbols.size() != 8) return answers;
      for (size_t i = 0; i < 8; ++i) answers[56 + i] = symbols[i];
      return answers;
    });
  }

  void mad_compression() {
    check("mad-compression", "length-32-vocabulary-16", [](const SymbolExample& e) {
      std::map<size_t, int32_t> answers;
      for (size_t i = 0; i < 15; ++i)
        if (e.tokens[15] == 15 && e.tokens[16 + i] == static_cast<int32_t>(16 + i)) answers[16 + i] = e.tokens[i];
      return answers;
    });
  }

  /// Facts are the same in all splits, and every key has another value.
  void mad_memorization() {
    std::map<int32_t, int32_t> facts;
    check("mad-memorization", "length-32-vocabulary-64", [&](const SymbolExample& e) {
      std::map<size_t, int32_t> answers;
      for (size_t t = 0; t < e.tokens.size(); t += 2) {
        const int32_t value = facts.try_emplace(e.tokens[t], e.targets[t + 1]).first->second;
        if (e.tokens[t] < 31 && e.tokens[t + 1] == 63 && value >= 31 && value < 63) answers[t + 1] = value;
      }
      return answers;
    });
    QCOMPARE(facts.size(), size_t(31));
    std::set<int32_t> values;
    for (const auto& [key, value] : facts) values.insert(value);
    QCOMPARE(values.size(), facts.size());
    const SymbolExample other = domain("mad-memorization", "length-32-vocabulary-64-seed-2").example(Split::train, 0);
    bool same = true;
    for (size_t t = 0; t < other.tokens.size(); t += 2) same = same && facts.at(other.tokens[t]) == other.targets[t + 1];
    QVERIFY(!same);
  }

  void seeds_and_splits() {
    for (const SymbolTask* task : symbol_tasks()) {
      const SymbolDomain d(*task, task->train.front(), "/data/train"), again(*task, task->train.front(), "/data/train"),
          other(*task, task->train.front() + "-seed-2", "/data/train");
      std::set<std::vector<int32_t>> seen[3];
      int differ = 0;
      for (uint64_t i = 0; i < 300; ++i)
        for (const Split split : {Split::train, Split::validation, Split::test}) {
          const SymbolExample e = d.example(split, i);
          QCOMPARE(e.tokens, again.example(split, i).tokens);
          QCOMPARE(e.targets, again.example(split, i).targets);
          differ += e.tokens != other.example(split, i).tokens;
          seen[static_cast<int>(split)].insert(e.tokens);
        }
      QVERIFY(differ > 850);
      QVERIFY(d.hash() == again.hash() && d.hash() != other.hash());
      if (!task->disjoint) continue;
      for (const auto& tokens : seen[0]) QVERIFY(!seen[1].contains(tokens) && !seen[2].contains(tokens));
      for (const auto& tokens : seen[1]) QVERIFY(!seen[2].contains(tokens));
      for (const std::string& name : task->test) QVERIFY(SymbolDomain(*task, name, "/data/ood").length() > 0);
    }
  }

  void rows_are_padded_without_targets() {
    const auto rows = symbol_sequences(domain("parity", "length-20-least-12-examples-50"), Split::train, 24);
    QCOMPARE(rows->size(), int64_t(50));
    std::vector<int32_t> tokens(24), targets(24);
    for (int64_t i = 0; i < 50; ++i) {
      rows->read(i, tokens, targets);
      const auto end = std::find(targets.begin(), targets.end(), kNoTarget);
      QVERIFY(end - targets.begin() >= 12 && end - targets.begin() <= 20);
      QVERIFY(std::all_of(end, targets.end(), [](int32_t t) { return t == kNoTarget; }));
      QCOMPARE(rows->targets(i), end - targets.begin());
    }
    QVERIFY_THROWS_EXCEPTION(UsageError, symbol_sequences(domain("parity", "length-20"), Split::train, 19));
    QVERIFY(symbol_sequences(domain("parity", "length-20"), Split::train, 20)->size() > 1'000'000'000);
  }

  void mistakes_are_told() {
    for (const char* name : {"", "length", "length-", "length-x", "64", "length-64-length-64", "lenth-64", "length-64-", "length--64",
                             "length-63-pairs-4", "length-64-pairs-17", "length-64-pairs-4-vocabulary-8", "length-64-pairs-4-vocabulary-62",
                             "length-512-pairs-4-vocabulary-64", "pairs-0", "power-100"})
      QVERIFY_THROWS_EXCEPTION(UsageError, domain("mqar", name));
    domain("mqar", "length-64-pairs-8-vocabulary-64");  // of runs that there are
    QVERIFY_THROWS_EXCEPTION(UsageError, symbol_task("mqra"));
    QVERIFY_THROWS_EXCEPTION(UsageError, domain("a5", "length-8-moved-2"));
    QVERIFY_THROWS_EXCEPTION(UsageError, domain("parity", "length-1").example(Split::test, 0));  // two examples, three splits
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SymbolTasksTest)
#include "symbol_tasks_test.moc"
