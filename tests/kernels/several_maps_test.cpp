#include "kernels/ops/attention/attention.h"
#include "kernels/ops/delta_rule/delta_rule.h"
#include "kernels/ops/mamba1/mamba1_scan.h"
#include "kernels/ops/mamba2/mamba2_ssd.h"
#include "kernels/ops/read_statistics/read_statistics.h"
#include "kernels/ops/taylor_attention/taylor_attention.h"
#include "kernels/ops/top1_chunk/top1_chunk.h"
#include "kernels/ops/wkv/wkv.h"
#include "kernels/ops/wkv7/wkv7.h"
#include "tests/support/compare.h"

namespace saccade::test {

/// Read weights of several sequences are those of each, one after the other, to the bit; so is what is summed up of them.
class SeveralMapsTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kBatch = 4, kLength = 37, kHeads = 3, kWidth = 8;

  using Weights = std::function<Tensor(Tape&, const Sequences&)>;
  static void compare(Tape& tape, const Weights& weights) {
    const int64_t first = 1, count = 3;
    const Tensor together = weights(tape, {first, count});
    const Array all = to_array(together), sums = to_array(read_sums(tape, together, 5)), reads = to_array(query_reads(tape, together, 5));
    std::vector<double> joined, joined_sums, joined_reads;
    const auto add = [](std::vector<double>& to, const Tensor& of) {
      const std::vector<double> values = to_array(of).values;
      to.insert(to.end(), values.begin(), values.end());
    };
    for (int64_t s = first; s < first + count; ++s) {
      const Tensor one = weights(tape, s);
      QCOMPARE(count * one.dim(0), together.dim(0));
      add(joined, one);
      add(joined_sums, read_sums(tape, one, 5));
      add(joined_reads, query_reads(tape, one, 5));
    }
    QVERIFY(joined == all.values && joined_sums == sums.values && joined_reads == reads.values);
  }

 private Q_SLOTS:
  void weights_of_several_sequences_are_those_of_each() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    uint64_t seed = 0;
    const auto random = [&](const Shape& shape) { return to_tensor(random_array(shape, ++seed, 0.5), DType::f32, arena); };
    const Shape heads{kBatch, kLength, kHeads, kWidth}, shared{1, kLength, kHeads, kWidth}, gates{kBatch, kLength, kHeads};
    const Tensor q = random(heads), k = random(heads), v = random(heads), a = random(heads), b = random(heads);
    ScoreOptions score;
    score.window = 20;
    compare(tape, [&](Tape& t, const Sequences& s) { return attention_weights(t, q, k, score, s); });
    const Tensor table = random(shared), other_table = random(shared);
    compare(tape, [&](Tape& t, const Sequences& s) { return attention_weights(t, q, table, score, s); });
    compare(tape, [&](Tape& t, const Sequences& s) { return attention_weights(t, other_table, table, score, s); });
    ChunkOptions chunks;
    chunks.chunk = 5;
    const Top1Chunk chosen = top1_chunk(tape, q, k, v, {}, chunks);
    compare(tape, [&](Tape& t, const Sequences& s) { return top1_chunk_weights(t, q, k, chosen, {}, chunks, s); });
    const DeltaRule rule{.q = q, .k = k, .v = v, .beta = random(gates)};
    compare(tape, [&](Tape& t, const Sequences& s) { return delta_rule_weights(t, rule, s); });
    const Tensor bonus = random({kHeads, kWidth});
    compare(tape, [&](Tape& t, const Sequences& s) { return wkv_weights(t, q, k, v, bonus, s); });
    compare(tape, [&](Tape& t, const Sequences& s) { return wkv_weights(t, q, k, bonus, bonus, s); });
    compare(tape, [&](Tape& t, const Sequences& s) { return wkv7_weights(t, q, v, k, a, b, s); });
    compare(tape, [&](Tape& t, const Sequences& s) { return taylor_weights(t, q, k, s); });
    const Tensor x = random({kBatch, kLength, kWidth}), states = random({kBatch, kLength, 5}), more = random({kBatch, kLength, 5});
    const Mamba1Scan scan{.u = x,
                          .dt = random({kBatch, kLength, kWidth}),
                          .z = x,
                          .b = states,
                          .c = more,
                          .skip = random({kWidth}),
                          .dt_bias = random({kWidth}),
                          .a_log = random({kWidth, 5})};
    compare(tape, [&](Tape& t, const Sequences& s) { return mamba1_weights(t, scan, s, {1, 6}); });
    const Mamba2Ssd ssd{.x = v,
                        .dt = random(gates),
                        .b = states.reshape({kBatch, kLength, 1, 5}),
                        .c = more.reshape({kBatch, kLength, 1, 5}),
                        .skip = random({kHeads}),
                        .dt_bias = random({kHeads}),
                        .a_log = random({kHeads})};
    compare(tape, [&](Tape& t, const Sequences& s) { return mamba2_weights(t, ssd, s); });
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SeveralMapsTest)
#include "several_maps_test.moc"
