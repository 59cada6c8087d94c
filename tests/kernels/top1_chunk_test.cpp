#include "kernels/ops/top1_chunk/top1_chunk.h"

#include <set>

#include "tests/kernels/plain_attention.h"

namespace saccade::test {

class Top1ChunkTest : public QObject {
  Q_OBJECT

  static Op op(const ScoreOptions& score, const ChunkOptions& options, bool report = true) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      const Top1Chunk a = top1_chunk(tape, x[0], x[1], x[2], score, options, report ? ChunkReported::scores : ChunkReported::nothing);
      if (!report) return std::vector<Tensor>{a.o, a.selected, a.lse};
      return std::vector<Tensor>{a.o, a.selected, a.lse, a.entropy, a.report.score, a.report.captured_mass, a.report.margin};
    };
  }
  static int64_t published_peak(int64_t length, ChunkReported reported) {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({1, length, 12, 64}, DType::f32);
    top1_chunk(tape, x, x, x, {}, choose(ChunkSelection::approx, 128), reported);
    return arena.peak_extent();
  }
  static ChunkOptions choose(ChunkSelection selection, int64_t chunk, int64_t top_k = 1, bool share = false) {
    return {chunk, top_k, share, selection, 7};
  }

  /// Scores of the candidates [B, H, T, chunks] from their definition.
  static Array plain_chunk_scores(const std::vector<Array>& x, const Array& s, const ScoreOptions& score, const ChunkOptions& options) {
    const int64_t batch = s.shape[0], heads = s.shape[1], length = s.shape[2], width = x[0].shape[3], chunk = options.chunk;
    Array out{{batch, heads, length, (length + chunk - 1) / chunk}, {}, false};
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < length; ++t)
          for (int64_t c = 0; c < out.shape[3]; ++c) {
            double sum = 0, mean = 0;  // of the scores, ALiBi's bias included
            const double slope = score.alibi ? plain_slopes(heads, score.released_alibi)[static_cast<size_t>(h)] : 0;
            for (int64_t j = c * chunk; j < std::min(length, (c + 1) * chunk); ++j) {
              double dot = 0;
              sum += std::exp(at(s, b, h, t, j));
              for (int64_t i = 0; i < width; ++i) dot += at(x[0], b, t, h, i) * at(x[1], b, j, h, i);
              mean += (score.scale * dot - slope * static_cast<double>(t - j)) / static_cast<double>(chunk);
            }
            const double value = options.selection == ChunkSelection::approx ? mean : std::log(sum);
            out.values.push_back(c < t / chunk ? value : -INFINITY);
          }
    return out;
  }

  /// The top_k best chunks by repeated search.
  static std::vector<int64_t> best_chunks(const Array& scores, const ChunkOptions& options, int64_t b, int64_t h, int64_t t) {
    std::vector<int64_t> best;
    while (static_cast<int64_t>(best.size()) < options.top_k) {
      int64_t found = -1;
      double most = 0;
      for (int64_t c = 0; c < t / options.chunk; ++c) {
        if (std::find(best.begin(), best.end(), c) != best.end()) continue;
        double score = 0;
        for (int64_t g = 0; g < scores.shape[1]; ++g)
          if (options.share_selection || g == h) score += at(scores, b, g, t, c);
        if (found < 0 || score > most) found = c, most = score;
      }
      best.push_back(found);
    }
    return best;
  }

  /// Hides every key outside the own and the selected chunks.
  static Array restricted(Array s, const Array& selected, int64_t chunk) {
    const int64_t length = s.shape[2], places = selected.shape[3];
    for (int64_t row = 0; row < s.shape[0] * s.shape[1] * length; ++row)
      for (int64_t j = 0; j < length; ++j) {
        const auto chosen = selected.values.begin() + row * places;
        if (j / chunk != row % length / chunk && std::find(chosen, chosen + places, static_cast<double>(j / chunk)) == chosen + places)
          s.values[static_cast<size_t>(row * length + j)] = -INFINITY;
      }
    return s;
  }

  /// The least of the chosen scores minus the best of the others.
  static double plain_margin(const Array& scores, const Array& selected, const ChunkOptions& options, int64_t b, int64_t h, int64_t t) {
    const int64_t candidates = t / options.chunk;
    std::set<int64_t> chosen;
    for (int64_t place = 0; place < options.top_k; ++place) chosen.insert(static_cast<int64_t>(at(selected, b, h, t, place)));
    std::vector<double> taken, left;
    for (int64_t c = 0; c < candidates; ++c) {
      double score = 0;
      for (int64_t g = 0; g < scores.shape[1]; ++g)
        if (options.share_selection || g == h) score += at(scores, b, g, t, c);
      (chosen.contains(c) ? taken : left).push_back(score);
    }
    if (candidates == 0) return std::nan("");
    return left.empty() ? INFINITY : *std::min_element(taken.begin(), taken.end()) - *std::max_element(left.begin(), left.end());
  }

  static void compare_with_plain(const std::vector<Array>& x, const ScoreOptions& score, const ChunkOptions& options) {
    const int64_t batch = x[2].shape[0], length = x[2].shape[1], heads = x[2].shape[2];
    const OpRun run = run_op(op(score, options), x, DType::f64, Device::cpu());
    const Array s = plain_scores(x[0], x[1], batch, score), scores = plain_chunk_scores(x, s, score, options);
    const Array& selected = run.values[1];
    COMPARE_CLOSE(run.values[4], scores, 1e-11, "score");
    if (options.selection == ChunkSelection::exact || options.selection == ChunkSelection::approx)
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t t = 0; t < length; ++t) {
            const std::vector<int64_t> best = best_chunks(scores, options, b, h, t);
            for (int64_t place = 0; place < options.top_k; ++place)
              QCOMPARE(static_cast<int64_t>(at(selected, b, h, t, place)), best[static_cast<size_t>(place)]);
          }
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < length; ++t) {
          const double margin = run.values[6].values[static_cast<size_t>((b * heads + h) * length + t)];
          const double want = plain_margin(scores, selected, options, b, h, t);
          QVERIFY(std::isfinite(want) ? std::abs(margin - want) < 1e-11 : std::isnan(margin) == std::isnan(want) && !std::isfinite(margin));
        }
    const PlainAttention expected = plain_attention(restricted(s, selected, options.chunk), x[2]), full = plain_attention(s, x[2]);
    COMPARE_CLOSE(run.values[0], expected.o, 1e-11, "o");
    COMPARE_CLOSE(run.values[2], expected.lse, 1e-11, "lse");
    COMPARE_CLOSE(run.values[3], expected.entropy, 1e-10, "entropy");
    for (int64_t row = 0; row < batch * heads * length; ++row) {
      double mass = 0;
      for (int64_t place = 0; place < options.top_k; ++place) {
        const auto c = static_cast<int64_t>(selected.values[static_cast<size_t>(row * options.top_k + place)]);
        for (int64_t j = c * options.chunk; c >= 0 && j < (c + 1) * options.chunk; ++j)
          mass += full.weights.values[static_cast<size_t>(row * length + j)];
      }
      QVERIFY(std::abs(run.values[5].values[static_cast<size_t>(row)] - mass) < 1e-11);
    }
  }

  /// One head whose queries all look for what the keys of chunk 1 (of 8 positions) have.
  static std::vector<Array> popular(int64_t length) {
    std::vector<Array> x = random_heads(1, length, 1, 4);
    for (int64_t t = 0; t < length; ++t) {
      x[0].values[static_cast<size_t>(4 * t)] = 3;
      x[1].values[static_cast<size_t>(4 * t)] = t / 8 == 1 ? 6 : 0;
    }
    return x;
  }

 private Q_SLOTS:
  void plain_data() {
    QTest::addColumn<int>("selection");
    QTest::addColumn<int>("length");
    QTest::addColumn<int>("chunk");
    QTest::addColumn<int>("top_k");
    QTest::addColumn<bool>("share");
    const std::vector<std::tuple<int, int, int, bool>> shapes{
        {37, 8, 1, false},   {64, 16, 1, true}, {1, 4, 1, false},    {23, 1, 2, false},    {29, 64, 2, false},
        {150, 70, 1, false}, {139, 7, 4, true}, {131, 16, 3, false}, {300, 129, 2, false}, {530, 257, 1, false}};
    for (int selection = 0; selection < 4; ++selection)
      for (const auto& [length, chunk, top_k, share] : shapes)
        QTest::addRow("selection %d length %d chunk %d top_k %d shared %d", selection, length, chunk, top_k, share)
            << selection << length << chunk << top_k << share;
  }
  void plain() {
    QFETCH(int, selection);
    QFETCH(int, length);
    QFETCH(int, chunk);
    QFETCH(int, top_k);
    QFETCH(bool, share);
    const ChunkOptions options = choose(static_cast<ChunkSelection>(selection), chunk, top_k, share);
    compare_with_plain(random_heads(1, length, 2, 3), {0.8, 0, false}, options);
    if (length < 200) compare_with_plain(random_heads(2, length, 2, 3), {0.8, 0, true}, options);
  }

  /// Gradients of the attention used; the selection is constant between the steps of the finite differences.
  void gradients() {
    for (const ChunkOptions& options :
         {choose(ChunkSelection::exact, 5), choose(ChunkSelection::exact, 4, 3), choose(ChunkSelection::approx, 5, 1, true),
          choose(ChunkSelection::oracle_recent, 4, 2), choose(ChunkSelection::random, 3, 4)})
      for (const ScoreOptions& score : {ScoreOptions{0.8, 0, false}, ScoreOptions{0.8, 0, true}})
        CHECK_OP(op(score, options, false), random_heads(2, 23, 2, 3));
    const QString problem = check_gradient(op({0.8, 0, false}, choose(ChunkSelection::exact, 70, 1), false), random_heads(1, 215, 1, 1));
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void tiles() {
    for (const ChunkOptions& options : {choose(ChunkSelection::exact, 64), choose(ChunkSelection::exact, 65, 2),
                                        choose(ChunkSelection::approx, 16, 4), choose(ChunkSelection::random, 128)})
      for (const QString& problem :
           {check_threads(op({0.5, 0, true}, options), random_heads(1, 401, 2, 8)), check_plan(op({}, options), random_heads(1, 401, 2, 8)),
            check_plan(op({}, options, false), random_heads(2, 100, 2, 8)),
            check_float(op({0.3, 0, false}, options, false), random_heads(1, 401, 1, 8))})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// A chunk as long as the sequence is dense attention.
  void one_chunk_is_dense() {
    const std::vector<Array> x = random_heads(2, 90, 2, 4);
    const OpRun run = run_op(op({}, choose(ChunkSelection::exact, 90)), x, DType::f64, Device::cpu());
    COMPARE_CLOSE(run.values[0], plain_attention(plain_scores(x[0], x[1], 2, {}), x[2]).o, 1e-12, "o");
    QVERIFY(std::all_of(run.values[1].values.begin(), run.values[1].values.end(), [](double c) { return c == -1; }));
  }

  /// Every later query chooses chunk 1: its list spans many tiles and pieces, which threads share.
  void popular_chunk() {
    const std::vector<Array> x = popular(1300);
    const OpRun run = run_op(op({}, choose(ChunkSelection::exact, 8)), x, DType::f64, Device::cpu());
    for (size_t t = 16; t < 1300; ++t) {
      QCOMPARE(run.values[1].values[t], 1.0);
      QVERIFY(run.values[5].values[t] > 0.9);
    }
    for (const QString& problem :
         {check_threads(op({}, choose(ChunkSelection::exact, 8)), x), check_plan(op({}, choose(ChunkSelection::exact, 8)), x),
          check_gradient(op({}, choose(ChunkSelection::exact, 8), false), popular(90))})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// Its gradients, sums over three pieces, against central differences.
  void popular_chunk_gradients() {
    const Op attend = op({}, choose(ChunkSelection::exact, 8), false);
    const std::vector<Array> x = popular(1300);
    const OpRun run = run_op(attend, x, DType::f64, Device::cpu());  // o, selected, lse, dq, dk, dv
    const Array seed = random_array(x[2].shape, 1000);
    const auto loss = [&](size_t input, size_t element, double step) {
      std::vector<Array> moved = x;
      moved[input].values[element] += step;
      const OpRun there = run_op(attend, moved, DType::f64, Device::cpu());
      double sum = 0;
      for (size_t i = 0; i < seed.values.size(); ++i) sum += there.values[0].values[i] * seed.values[i];
      return sum;
    };
    for (size_t input : {1, 2})
      for (size_t element = 32; element < 64; ++element) {
        const double difference = (loss(input, element, 1e-5) - loss(input, element, -1e-5)) / 2e-5;
        QVERIFY(std::abs(run.values[3 + input].values[element] - difference) < 1e-6);
      }
  }

  /// All mass in the chosen chunk: the selection loses nothing.
  void captured_mass_of_one() {
    std::vector<Array> x = random_heads(1, 40, 1, 2);
    for (int64_t t = 0; t < 40; ++t) {
      x[0].values[static_cast<size_t>(2 * t)] = 30;
      x[1].values[static_cast<size_t>(2 * t)] = t / 8 == 0 ? 30 : 0;
    }
    const Array captured = run_op(op({}, choose(ChunkSelection::exact, 8)), x, DType::f64, Device::cpu()).values[5];
    for (size_t t = 0; t < 40; ++t) QCOMPARE(captured.values[t], t < 8 ? 0.0 : 1.0);
  }

  void ties_take_the_smaller_chunk() {
    std::vector<Array> x = random_heads(1, 300, 1, 4);
    std::fill(x[1].values.begin(), x[1].values.end(), 1.0);
    for (ChunkSelection selection : {ChunkSelection::exact, ChunkSelection::approx})
      for (DType dtype : {DType::f32, DType::f64}) {
        const OpRun run = run_op(op({}, choose(selection, 8, 2)), x, dtype, Device::cpu());
        for (size_t t = 16; t < 300; ++t) {
          QCOMPARE(run.values[1].values[2 * t], 0.0);
          QCOMPARE(run.values[1].values[2 * t + 1], 1.0);
          QCOMPARE(run.values[6].values[t], t < 24 ? INFINITY : 0.0);  // two candidates are both chosen
        }
        QVERIFY(std::isnan(run.values[6].values[7]) && std::isinf(run.values[6].values[8]));
      }
  }

  void shared_selection_is_one() {
    const Array selected =
        run_op(op({}, choose(ChunkSelection::exact, 8, 2, true)), random_heads(2, 100, 3, 4), DType::f64, Device::cpu()).values[1];
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 1; h < 3; ++h)
        for (int64_t t = 0; t < 100; ++t)
          for (int64_t place = 0; place < 2; ++place) QCOMPARE(at(selected, b, h, t, place), at(selected, b, 0, t, place));
  }

  /// Controls: the latest chunks; distinct complete earlier chunks that the seed alone decides and that reach all of them.
  void controls() {
    const std::vector<Array> x = random_heads(1, 400, 2, 2), y = random_heads(1, 200, 2, 2, 3.0);
    const auto selected = [](const std::vector<Array>& in, ChunkOptions options, uint64_t seed) {
      options.seed = seed;
      return run_op(op({}, options), in, DType::f32, Device::cpu()).values[1];
    };
    const Array recent = selected(x, choose(ChunkSelection::oracle_recent, 8, 3), 1);
    const ChunkOptions random = choose(ChunkSelection::random, 8, 3);
    const Array one = selected(x, random, 1), again = selected(x, random, 1), two = selected(x, random, 2),
                shorter = selected(y, random, 1);
    QVERIFY(one.values == again.values && one.values != two.values);
    std::set<double> reached;
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t t = 0; t < 400; ++t) {
        std::set<double> distinct;
        for (int64_t place = 0; place < 3; ++place) {
          const double c = at(one, 0, h, t, place);
          QCOMPARE(at(recent, 0, h, t, place), static_cast<double>(std::max<int64_t>(t / 8 - 1 - place, -1)));
          QVERIFY(c < static_cast<double>(t / 8) && (c >= 0) == (place < t / 8));
          if (t < 200) QCOMPARE(at(shorter, 0, h, t, place), c);
          if (c >= 0) QVERIFY(distinct.insert(c).second);
          if (t >= 392) reached.insert(c);
        }
      }
    QVERIFY(reached.size() > 20);
  }

  void weights() {
    const ChunkOptions options = choose(ChunkSelection::exact, 7, 2);
    const ScoreOptions score{0.6, 0, true};
    const std::vector<Array> x = random_heads(2, 61, 2, 4);
    Arena::set_poison(true);
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor q = to_tensor(x[0], DType::f64, arena), k = to_tensor(x[1], DType::f64, arena), v = to_tensor(x[2], DType::f64, arena);
    const Top1Chunk result = top1_chunk(tape, q, k, v, score, options);
    const Array s = restricted(plain_scores(x[0], x[1], 2, score), to_array(result.selected), 7);
    COMPARE_CLOSE(to_array(top1_chunk_weights(tape, q, k, result, score, options, 1)), one_sequence(plain_attention(s, x[2]).weights, 1),
                  1e-12, "weights");
    QVERIFY_THROWS_EXCEPTION(UsageError, top1_chunk_weights(tape, q, k, result, score, options, 2));
    Arena::set_poison(false);
  }

  /// Scores in tiles give the same numbers to the bit as scores that are there as a whole.
  void numbers_without_all_scores() {
    const auto numbers = [](const ChunkOptions& options, ChunkReported wanted) {
      return [=](Tape& tape, const std::vector<Tensor>& x) {
        const Top1Chunk a = top1_chunk(tape, x[0], x[1], x[2], {0.6, 0, true}, options, wanted);
        if (wanted == ChunkReported::numbers && a.report.score) throw std::logic_error("scores that nobody asked for");
        return std::vector<Tensor>{a.entropy, a.report.captured_mass, a.report.margin};
      };
    };
    const std::vector<Array> x = random_heads(2, 1400, 3, 2);  // 6 x 1 400 scores a query: two tiles of 64 MiB
    for (const bool shared : {false, true}) {
      const ChunkOptions options = choose(shared ? ChunkSelection::approx : ChunkSelection::exact, 1, 3, shared);
      const OpRun whole = run_op(numbers(options, ChunkReported::scores), x, DType::f64, Device::cpu()),
                  tiles = run_op(numbers(options, ChunkReported::numbers), x, DType::f64, Device::cpu());
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < whole.values[i].values.size(); ++j)
          QVERIFY(whole.values[i].values[j] == tiles.values[i].values[j] ||
                  (std::isnan(whole.values[i].values[j]) && std::isnan(tiles.values[i].values[j])));
      QVERIFY(tiles.peak < whole.peak - (int64_t{20} << 20));
    }
    // At the published chunk and length all scores, twice, were 7.3 GiB.
    const int64_t length = 102400;
    QVERIFY(published_peak(length, ChunkReported::numbers) < published_peak(length, ChunkReported::nothing) + (int64_t{160} << 20));
  }

  /// Without a report nothing of size T x chunks is written.
  void memory() {
    const auto peak = [](int64_t length) {
      return run_op(op({}, choose(ChunkSelection::exact, 8), false), random_heads(1, length, 1, 2), DType::f32, Device::plan()).peak;
    };
    QVERIFY(peak(8192) <= 4 * peak(2048) + 4096);
  }

  void errors() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = tape.zeros({1, 9, 1, 4}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(UsageError, top1_chunk(tape, x, x, x, {}, choose(ChunkSelection::exact, 0)));
    QVERIFY_THROWS_EXCEPTION(UsageError, top1_chunk(tape, x, x, x, {}, choose(ChunkSelection::exact, 4, 0)));
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_chunk_selection("best"));
    QCOMPARE(parse_chunk_selection("oracle-recent"), ChunkSelection::oracle_recent);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::Top1ChunkTest)
#include "top1_chunk_test.moc"
