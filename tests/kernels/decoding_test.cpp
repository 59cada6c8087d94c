#include "kernels/ops/decoding/decoding.h"

#include "kernels/ops/top1_chunk/top1_chunk_decoding.h"
#include "kernels/ops/top1_element/top1_element.h"
#include "tests/kernels/plain_attention.h"

namespace saccade::test {

/// Compares the newest rows computed from a cache with the rows of the whole sequence.
class DecodingTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kBatch = 2, kHeads = 3, kWidth = 5, kLength = 150, kCapacity = 170;

  /// Rows first … first + n − 1 of x [B, T, …].
  static Array rows(const Array& x, int64_t first, int64_t n) {
    Array out{x.shape, {}, x.integer};
    const int64_t length = x.shape[1], row = x.shape.size() / x.shape[0] / length;
    for (int64_t b = 0; b < x.shape[0]; ++b)
      out.values.insert(out.values.end(), x.values.begin() + (b * length + first) * row, x.values.begin() + (b * length + first + n) * row);
    out.shape = {x.shape[0], n, x.shape[2], x.shape[3]};
    return out;
  }
  /// Places first … first + n − 1 of x [B, H, T, places].
  static Array places(const Array& x, int64_t first, int64_t n) {
    Array out{{x.shape[0], x.shape[1], n, x.shape.size() / x.shape[0] / x.shape[1] / x.shape[2]}, {}, x.integer};
    const int64_t row = out.shape[3];
    for (int64_t line = 0; line < x.shape[0] * x.shape[1]; ++line)
      out.values.insert(out.values.end(), x.values.begin() + (line * x.shape[2] + first) * row,
                        x.values.begin() + (line * x.shape[2] + first + n) * row);
    return out;
  }

  struct Cache {
    Arena arena{Device::cpu()};
    Tape tape{arena, false};
    Tensor q, k, v;
    int64_t first;

    /// The first tokens in one piece, the n newest in another.
    Cache(const std::vector<Array>& x, DType dtype, int64_t first_new, int64_t n) : first(first_new) {
      q = to_tensor(rows(x[0], first, n), dtype, arena);
      for (auto [cache, all] : {std::pair{&k, &x[1]}, std::pair{&v, &x[2]}}) {
        *cache = arena.allocate({all->shape[0], kCapacity, kHeads, kWidth}, dtype);
        if (first > 0) append_rows(tape, to_tensor(rows(*all, 0, first), dtype, arena), *cache, {0});
        append_rows(tape, to_tensor(rows(*all, first, n), dtype, arena), *cache, {first});
      }
    }
  };

  static double tolerance(DType dtype) { return dtype == DType::f32 ? 2e-6 : 1e-13; }

  static std::vector<std::vector<Array>> inputs() {
    std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth), constant = x;
    constant[1] = random_array({1, kLength, kHeads, kWidth}, 8);
    return {x, constant};
  }

  /// Sequence b of x [B, …].
  static Array part(const Array& x, int64_t b) {
    Array one{x.shape, {}, x.integer};
    const int64_t size = x.shape.size() / x.shape[0];
    one.values.assign(x.values.begin() + b * size, x.values.begin() + (b + 1) * size);
    one.shape = {1, x.shape[1], x.shape[2], x.shape[3]};
    return one;
  }

  /// f(dtype, first position, number of new tokens)
  template <class F>
  static void for_pieces(F&& f) {
    for (DType dtype : {DType::f64, DType::f32})
      for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {36, 5}, {64, 70}, {149, 1}})
        f(dtype, first, n);
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void attention_from_a_cache() {
    for (const std::vector<Array>& x : inputs())
      for (const ScoreOptions& score : {ScoreOptions{0.6, 0, false}, ScoreOptions{0.6, 0, true}, ScoreOptions{0.6, 7, false}})
        for_pieces([&](DType dtype, int64_t first, int64_t n) {
          Cache c(x, dtype, first, n);
          const Array whole = to_array(
              attention(c.tape, to_tensor(x[0], dtype, c.arena), to_tensor(x[1], dtype, c.arena), to_tensor(x[2], dtype, c.arena), score)
                  .o);
          COMPARE_CLOSE(to_array(cached_attention(c.tape, c.q, c.k, c.v, score, {first})), rows(whole, first, n), tolerance(dtype), "o");
        });
  }

  void element_from_a_cache() {
    for (const std::vector<Array>& x : inputs())
      for_pieces([&](DType dtype, int64_t first, int64_t n) {
        Cache c(x, dtype, first, n);
        const Top1Element whole = top1_element(c.tape, to_tensor(x[0], dtype, c.arena), to_tensor(x[1], dtype, c.arena),
                                               to_tensor(x[2], dtype, c.arena), {0.6, 0, true});
        const CachedElement part = cached_top1_element(c.tape, c.q, c.k, c.v, {0.6, 0, true}, {first});
        QCOMPARE(to_array(part.selected).values, places(to_array(whole.selected.reshape({kBatch, kHeads, kLength, 1})), first, n).values);
        COMPARE_CLOSE(to_array(part.o), rows(to_array(whole.o), first, n), 1e-15, "o");
      });
  }

  void chunk_from_a_cache_data() {
    QTest::addColumn<int>("selection");
    QTest::addColumn<int>("chunk");
    QTest::addColumn<int>("top_k");
    QTest::addColumn<bool>("share");
    for (int selection = 0; selection < 4; ++selection)
      for (const auto& [chunk, top_k, share] :
           std::vector<std::tuple<int, int, bool>>{{16, 1, false}, {16, 3, true}, {1, 2, false}, {70, 1, false}, {160, 1, false}})
        QTest::addRow("selection %d chunk %d top_k %d shared %d", selection, chunk, top_k, share) << selection << chunk << top_k << share;
  }
  void chunk_from_a_cache() {
    QFETCH(int, selection);
    QFETCH(int, chunk);
    QFETCH(int, top_k);
    QFETCH(bool, share);
    const ChunkOptions options{chunk, top_k, share, static_cast<ChunkSelection>(selection), 7};
    const ScoreOptions score{0.6, 0, selection == 0};
    const std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth);
    for_pieces([&](DType dtype, int64_t first, int64_t n) {
      Cache c(x, dtype, first, n);
      const Top1Chunk whole = top1_chunk(c.tape, to_tensor(x[0], dtype, c.arena), to_tensor(x[1], dtype, c.arena),
                                         to_tensor(x[2], dtype, c.arena), score, options);
      Tensor means;
      if (keeps_mean_keys(options)) {
        means = c.arena.allocate({kBatch, kCapacity / chunk, kHeads, kWidth}, dtype);
        if (first > 0) extend_mean_keys(c.tape, c.k, means, options, {0}, first);
        extend_mean_keys(c.tape, c.k, means, options, {first}, n);
      }
      const CachedChunk part = cached_top1_chunk(c.tape, c.q, c.k, c.v, means, score, options, {first});
      QCOMPARE(to_array(part.selected).values, places(to_array(whole.selected), first, n).values);
      COMPARE_CLOSE(to_array(part.o), rows(to_array(whole.o), first, n), tolerance(dtype), "o");
    });
  }

  /// Sequences at positions of their own: each as alone, whatever the other's position.
  void positions_of_their_own() {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth);
      const std::vector<int64_t> first{140, 33};
      constexpr int64_t kNew = 3, kChunk = 16;
      Cache all(x, dtype, 140, kNew);  // what stands behind a position is not read
      const TokenPosition own{140, to_tensor({{kBatch}, {140, 33}, true}, DType::i32, all.arena)};
      const ScoreOptions score{0.6, 0, true};
      const ChunkOptions options{kChunk, 2, false, ChunkSelection::approx, 7};
      const Tensor means = all.arena.allocate({kBatch, kCapacity / kChunk, kHeads, kWidth}, dtype);
      extend_mean_keys(all.tape, all.k, means, options, {0}, 20);
      extend_mean_keys(all.tape, all.k, means, options, {20, to_tensor({{kBatch}, {20, 20}, true}, DType::i32, all.arena)}, 123);
      const Array a = to_array(cached_attention(all.tape, all.q, all.k, all.v, score, own)),
                  e = to_array(cached_top1_element(all.tape, all.q, all.k, all.v, score, own).o),
                  c = to_array(cached_top1_chunk(all.tape, all.q, all.k, all.v, means, score, options, own).o);
      for (int64_t b = 0; b < kBatch; ++b) {
        const auto one = [&](const Tensor& t) { return t.slice(b, b + 1); };
        const TokenPosition place{first[static_cast<size_t>(b)]};
        COMPARE_CLOSE(to_array(cached_attention(all.tape, one(all.q), one(all.k), one(all.v), score, place)), part(a, b), 0, "attention");
        COMPARE_CLOSE(to_array(cached_top1_element(all.tape, one(all.q), one(all.k), one(all.v), score, place).o), part(e, b), 0,
                      "element");
        COMPARE_CLOSE(to_array(cached_top1_chunk(all.tape, one(all.q), one(all.k), one(all.v), one(means), score, options, place).o),
                      part(c, b), 0, "chunk");
      }
      advance(all.tape, own, 2);
      QCOMPARE(to_array(own.on_device).values, (std::vector<double>{142, 35}));
    }
  }

  /// Rows go to each sequence's own place; sequences are copied as far as they are told to.
  void rows_and_copies() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor cache = to_tensor({{2, 4, 2}, std::vector<double>(16, 0), false}, DType::f64, arena);
    const TokenPosition own{2, to_tensor({{2}, {0, 2}, true}, DType::i32, arena)};
    append_rows(tape, to_tensor({{2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, false}, DType::f64, arena), cache, own);
    QCOMPARE(to_array(cache).values, (std::vector<double>{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8}));
    const Tensor copies = to_tensor({{3, 4, 2}, std::vector<double>(24, -1), false}, DType::f64, arena);
    copy_sequences(tape, cache, to_tensor({{3}, {1, 0, 1}, true}, DType::i32, arena), copies, 6);
    QCOMPARE(to_array(copies).values, (std::vector<double>{0, 0, 0, 0, 5, 6, -1, -1, 1, 2, 3, 4, 0, 0, -1, -1, 0, 0, 0, 0, 5, 6, -1, -1}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                             copy_sequences(tape, cache, to_tensor({{2}, {1, 0}, true}, DType::i32, arena), copies, 6));
    QVERIFY_THROWS_EXCEPTION(std::logic_error,
                             copy_sequences(tape, cache, to_tensor({{3}, {1, 2, 0}, true}, DType::i32, arena), copies, 6));
  }

  void errors() {
    const std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth);
    Cache c(x, DType::f32, 10, 3);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, append_rows(c.tape, c.q, c.k, {kCapacity - 2}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, cached_attention(c.tape, c.q, c.k, c.v, {}, {kCapacity - 2}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, cached_top1_element(c.tape, c.q, c.k, c.q, {}, {10}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                             cached_top1_chunk(c.tape, c.q, c.k, c.v, {}, {}, {16, 1, false, ChunkSelection::approx, 0}, {10}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::DecodingTest)
#include "decoding_test.moc"
