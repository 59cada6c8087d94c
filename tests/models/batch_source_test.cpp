#include <QtTest>
#include <algorithm>
#include <map>
#include <set>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/permutation.h"
#include "models/json.h"

namespace saccade::test {

class BatchSourceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_.path() + "/cache").toUtf8());
    CorpusWriter writer("numbers");
    writer.add("long", Split::train, text(0, 600));
    writer.add("long", Split::train, text(600, 399));   // 1001 tokens with two ends of text
    writer.add("short", Split::train, text(100, 100));  // 101 tokens
    writer.finish({}, Existing::refuse);
  }

  void permutation_visits_each_number_once() {
    for (uint64_t n : {1u, 2u, 3u, 5u, 16u, 17u, 1000u}) {
      std::set<uint64_t> seen;
      const Permutation permutation(n, 3, "test", 0);
      for (uint64_t i = 0; i < n; ++i) seen.insert(permutation(i));
      QCOMPARE(seen.size(), size_t(n));
      QVERIFY(*seen.rbegin() < n);
    }
  }

  void permutation_depends_on_seed_and_epoch() {
    const auto order = [](uint64_t seed, uint64_t epoch) {
      const Permutation permutation(100, seed, "test", epoch);
      std::vector<uint64_t> values;
      for (uint64_t i = 0; i < 100; ++i) values.push_back(permutation(i));
      return values;
    };
    QCOMPARE(order(1, 0), order(1, 0));
    QVERIFY(order(1, 0) != order(2, 0));
    QVERIFY(order(1, 0) != order(1, 1));
    QVERIFY(!std::ranges::is_sorted(order(1, 0)));
  }

  void sequences_overlap_by_one_token() {
    BatchSource source({store("long")}, 10, 1, false);
    QCOMPARE(source.sequences_per_epoch(), 100);
    std::vector<int32_t> tokens(20), targets(20), all(21);
    source.next(2, tokens, targets);
    store("long")->read(0, all);
    QVERIFY(std::equal(tokens.begin(), tokens.end(), all.begin()));
    QVERIFY(std::equal(targets.begin(), targets.end(), all.begin() + 1));
  }

  /// Exact shares in every block, whatever the sizes, and each domain's own sequences before any of them again.
  void weights_give_shares() {
    const int64_t block = BatchSource::kWeightedBlock;
    BatchSource source({store("long"), store("short")}, 10, 1, true, {1, 3});
    QCOMPARE(source.taken(static_cast<uint64_t>(2 * block)), (std::vector<int64_t>{block / 2, 3 * block / 2}));
    std::vector<int32_t> tokens(10), targets(10);
    std::map<std::vector<int32_t>, int> from_short;
    for (int64_t i = 0; i < block; ++i) {
      const std::vector<int64_t> before = source.taken(source.position());
      source.next(1, tokens, targets);
      const std::vector<int64_t> after = source.taken(source.position());
      QCOMPARE(after[0] + after[1], i + 1);
      if (after[1] > before[1]) ++from_short[tokens];
    }
    QCOMPARE(from_short.size(), size_t{10});
    for (const auto& [sequence, count] : from_short) QVERIFY(count == 76 || count == 77);  // 768 of 10
  }

  void weighted_positions_resume() {
    BatchSource whole({store("long"), store("short")}, 10, 7, true, {0.7, 0.3}),
        parts({store("long"), store("short")}, 10, 7, true, {7, 3});
    std::vector<int32_t> a(20), b(20), targets(20);
    for (int i = 0; i < 300; ++i) whole.next(2, a, targets);
    parts.seek(598);
    parts.next(2, b, targets);
    QCOMPARE(a, b);
    QVERIFY_THROWS_EXCEPTION(UsageError, BatchSource({store("long")}, 10, 1, true, {1, 2}));
  }

  void documents_are_filtered_by_length() {
    const Corpus corpus = Corpus::open("numbers");
    const auto tokenizer = make_byte_tokenizer();
    const auto size = [&](DocumentFilter filter) { return TokenStore::open(corpus, "long", Split::train, *tokenizer, {}, filter)->size(); };
    QCOMPARE(size({}), int64_t{1001});
    QCOMPARE(size({600, 0}), int64_t{601});
    QCOMPARE(size({0, 599}), int64_t{400});
    QCOMPARE(size({399, 600}), int64_t{1001});
    QCOMPARE(size({601, 0}), int64_t{0});
    QCOMPARE(size({}), int64_t{1001});  // each filter has a file of its own
  }

  /// Each from its beginning, the longer ones cut, the shorter ones padded without targets.
  void one_document_a_sequence() {
    const auto tokens_of = [](int64_t from, int64_t count) {
      std::vector<int32_t> tokens;
      for (int64_t i = from; i < from + count; ++i) tokens.push_back(static_cast<int32_t>('0' + i % 64));
      return tokens;
    };
    QCOMPARE(store("long")->document_ends(), (std::vector<int64_t>{601, 1001}));
    BatchSource source({store("short"), store("long")}, 400, 1, false, {}, Packing::document);
    QCOMPARE(source.sequences_per_epoch(), 3);
    QCOMPARE(source.targets(0, 3), 101 + 400 + 400);
    QCOMPARE(source.targets(3, 2), 101 + 400);  // the next epoch
    std::vector<int32_t> tokens(3 * 400), targets(3 * 400);
    source.next(3, tokens, targets);
    const auto row = [](const std::vector<int32_t>& all, int64_t r) {
      return std::vector<int32_t>(all.begin() + r * 400, all.begin() + (r + 1) * 400);
    };
    std::vector<int32_t> text = tokens_of(100, 100), shown{256}, wanted = text;
    shown.insert(shown.end(), text.begin(), text.end());
    shown.resize(400, 256);
    wanted.push_back(256);
    wanted.resize(400, kNoTarget);
    QCOMPARE(row(tokens, 0), shown);
    QCOMPARE(row(targets, 0), wanted);
    QCOMPARE(row(targets, 1), tokens_of(0, 400));  // cut
    text = tokens_of(600, 399);
    wanted = text;
    wanted.push_back(256);  // fits to the token
    QCOMPARE(row(targets, 2), wanted);
    shown = {256};
    shown.insert(shown.end(), text.begin(), text.end());
    QCOMPARE(row(tokens, 2), shown);
    BatchSource shuffled({store("short"), store("long")}, 400, 1, true, {1, 1}, Packing::document);
    QCOMPARE(shuffled.sizes(), (std::vector<int64_t>{1, 2}));
    shuffled.seek(5);
    const int64_t counted = shuffled.targets(5, 3);
    shuffled.next(3, tokens, targets);
    QCOMPARE(counted, 1200 - std::count(targets.begin(), targets.end(), kNoTarget));
  }

  void documents_are_packed_with_end_of_text_between() {
    std::vector<int32_t> tokens(3);
    store("long")->read(599, tokens);
    QCOMPARE(tokens, (std::vector<int32_t>{'0' + 599 % 64, 256, '0' + 600 % 64}));
  }

  void an_epoch_visits_each_sequence_once_in_proportion() {
    BatchSource source({store("long"), store("short")}, 10, 7);
    QCOMPARE(source.sequences_per_epoch(), 110);
    const auto first = epoch(source), second = epoch(source);
    QVERIFY(first != second);
    BatchSource in_order({store("long"), store("short")}, 10, 7, false);
    auto sorted = [](auto rows) {
      std::ranges::sort(rows);
      return rows;
    };
    const auto expected = sorted(epoch(in_order));
    QCOMPARE(sorted(first), expected);
    QCOMPARE(sorted(second), expected);
  }

  void resumes_from_a_position() {
    BatchSource source({store("long"), store("short")}, 10, 7), resumed({store("long"), store("short")}, 10, 7);
    std::vector<int32_t> a(70 * 10), b(70 * 10), expected(70 * 10), got(70 * 10);
    source.next(70, a, b);
    const uint64_t position = source.position();
    QCOMPARE(position, uint64_t(70));
    source.next(70, expected, b);  // crosses into the second epoch
    resumed.seek(position);
    resumed.next(70, got, b);
    QCOMPARE(got, expected);
  }

  void too_few_tokens_are_named_with_numbers() {
    try {
      BatchSource source({store("long"), store("short")}, 200, 1);
      QFAIL("no error");
    } catch (const DataError& error) {
      QVERIFY2(QString(error.what()).contains("short.train has 101 tokens") && QString(error.what()).contains("needs 201"), error.what());
    }
    QVERIFY_THROWS_EXCEPTION(UsageError, BatchSource({store("long")}, 0, 1));
    QVERIFY_THROWS_EXCEPTION(UsageError, BatchSource({}, 10, 1));
    BatchSource exactly({store("short")}, 100, 1);
    QCOMPARE(exactly.sequences_per_epoch(), 1);
  }

 private:
  static std::string text(int begin, int count) {
    std::string text;
    for (int i = begin; i < begin + count; ++i) text += static_cast<char>('0' + i % 64);
    return text;
  }

  static std::shared_ptr<const TokenStore> store(const std::string& domain) {
    return TokenStore::open(Corpus::open("numbers"), domain, Split::train, *make_byte_tokenizer());
  }

  static std::vector<std::vector<int32_t>> epoch(BatchSource& source) {
    std::vector<std::vector<int32_t>> rows;
    for (int64_t i = 0; i < source.sequences_per_epoch(); ++i) {
      std::vector<int32_t> tokens(10), targets(10);
      source.next(1, tokens, targets);
      tokens.push_back(targets.back());
      rows.push_back(tokens);
    }
    return rows;
  }

  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BatchSourceTest)
#include "batch_source_test.moc"
