#include <QtTest>
#include <bit>
#include <cmath>

#include "models/training/gradient_exchange.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

class RanksTest : public QObject {
  Q_OBJECT

  /// Sum of the leaves first … first + n − 1 of `count`, each one number, by TreeSum; `leaves` in order.
  static float tree_sum(const std::vector<float>& leaves) {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const auto count = static_cast<int64_t>(leaves.size());
    TreeSum tree(arena, {arena.allocate({1}, DType::f32)}, count);
    const Tensor leaf = arena.allocate({1}, DType::f32);
    for (int64_t i = 0; i < count; ++i) {
      *leaf.data<float>() = leaves[static_cast<size_t>(i)];
      tree.add(tape, {leaf}, i, count);
    }
    return *leaf.data<float>();
  }
  /// The same by the definition: halves at the largest power of two below the number.
  static float halves(const std::vector<float>& leaves) {
    if (leaves.size() == 1) return leaves.front();
    const auto half = static_cast<std::ptrdiff_t>(std::bit_floor(leaves.size() - 1));
    return halves({leaves.begin() + half, leaves.end()}) + halves({leaves.begin(), leaves.begin() + half});
  }
  static std::vector<float> leaves(int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(std::sin(static_cast<double>(7 * i + 1)) * std::pow(10, i % 7)));
    return values;
  }

 private Q_SLOTS:
  void the_tree_is_that_of_halves() {
    bool order_matters = false;
    for (int64_t count = 1; count < 70; ++count) {
      QCOMPARE(tree_sum(leaves(count)), halves(leaves(count)));
      float one_by_one = 0;
      for (const float x : leaves(count)) one_by_one += x;
      order_matters = order_matters || one_by_one != tree_sum(leaves(count));
    }
    QVERIFY(order_matters);
  }

  /// Ranks that sum their blocks, and the sums of blocks by another tree, get the bytes of one rank.
  void blocks_of_ranks_are_branches_of_the_tree() {
    for (const int64_t ranks : {1, 2, 3, 4, 6, 8})
      for (int64_t each = 1; each <= 12; ++each) {
        const MicroBatchOrder order{ranks * each, ranks};
        const std::vector<float> all = leaves(order.count);
        std::vector<bool> taken(all.size());
        std::vector<float> sums(static_cast<size_t>(order.count / order.block()));
        for (int64_t r = 0; r < ranks; ++r)
          for (int64_t first = 0; first < each; first += order.block()) {
            std::vector<float> block;
            for (int64_t i = first; i < first + order.block(); ++i) {
              const auto number = static_cast<size_t>(order.number(r, i));
              QVERIFY(!taken[number]);
              taken[number] = true;
              block.push_back(all[number]);
            }
            sums[static_cast<size_t>(order.number(r, first) / order.block())] = tree_sum(block);
          }
        QCOMPARE(tree_sum(sums), tree_sum(all));
      }
  }

  void shards_are_every_element_once_data() {
    QTest::addColumn<bool>("muon");
    QTest::newRow("adamw") << false;
    QTest::newRow("muon") << true;
  }
  void shards_are_every_element_once() {
    QFETCH(bool, muon);
    RunConfig config = small_run({{"block", "llama"}, {"mixer", "attention"}, {"heads", 2}, {"width", 256}},
                                 {{"optimizer", muon ? "muon" : "adamw"}, {"gradient_accumulation", 4}});
    for (const int ranks : {1, 2, 4}) {
      const TrainingStep step(config, 257, Device::plan(), {ranks, 0, 0, ranks, nullptr});
      const std::vector<Parameter>& parameters = step.model().parameters();
      int64_t total = 0, largest = 0, next = 0;
      size_t at = 0;
      bool cut = false;
      for (const std::vector<Piece>& shard : step.exchange().shards()) {
        int64_t elements = 0;
        for (const Piece& piece : shard) {
          if (next == parameters[at].value.size()) ++at, next = 0;
          QCOMPARE(piece.parameter, at);
          QCOMPARE(piece.begin, next);
          QVERIFY(piece.end > piece.begin && piece.end <= parameters[at].value.size());
          QVERIFY(piece.begin % kNormCut == 0);
          const bool whole = piece.end - piece.begin == parameters[at].value.size();
          cut = cut || !whole;
          const bool matrix = parameters[at].name.find("layer") == 0 && parameters[at].value.rank() == 2;
          if (muon && matrix) QVERIFY2(whole, parameters[at].name.c_str());
          next = piece.end;
          elements += piece.end - piece.begin;
        }
        total += elements;
        largest = std::max(largest, elements);
      }
      QCOMPARE(total, step.model().parameter_count());
      QCOMPARE(cut, ranks > 1 && !muon);
      if (!muon) QVERIFY(largest < total / ranks + 2 * kNormCut);
    }
  }

  void a_plan_counts_shards_and_sums() {
    const nlohmann::json wide{{"block", "llama"}, {"mixer", "attention"}, {"heads", 2}, {"width", 256}};
    const auto plan = [&](int accumulation, int ranks) {
      return make_plan(small_run(wide, {{"gradient_accumulation", accumulation}}), 257, {ranks, 0, 0, ranks, nullptr});
    };
    QCOMPARE(plan(1, 1).sum_bytes, int64_t{0});
    QCOMPARE(plan(2, 1).sum_bytes, plan(2, 1).gradient_bytes);
    QCOMPARE(plan(4, 1).sum_bytes, 2 * plan(4, 1).gradient_bytes);
    const Plan alone = plan(4, 1), half = plan(4, 2);
    QCOMPARE(half.ranks, 2);
    QCOMPARE(half.gradient_bytes, alone.gradient_bytes);
    QVERIFY(std::abs(static_cast<double>(half.optimizer_bytes) / static_cast<double>(alone.optimizer_bytes) - 0.5) < 0.05);
    // Sums of two micro-batches, and of its half what the other rank sends and one that stands.
    QVERIFY(std::abs(static_cast<double>(half.sum_bytes) / static_cast<double>(alone.gradient_bytes) - 2) < 0.1);
    QCOMPARE(half.flops_per_step, alone.flops_per_step);
    QCOMPARE(half.run_flops, alone.run_flops);
  }

  void what_cannot_be_shared_is_refused() {
    const auto refused = [](const std::function<void()>& action) -> QString {
      try {
        action();
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing";
    };
    const RunConfig config = small_run({{"heads", 2}}, {{"gradient_accumulation", 2}});
    QCOMPARE(
        refused([&] { require_divisible(config.training, 4); }),
        "/training/gradient_accumulation cuts a step into 2 micro-batches of 48 tokens; expected a multiple of the 4 ranks, for a rank "
        "takes whole ones (set /training/gradient_accumulation)");
    require_divisible(config.training, 2);
    RunConfig growing = small_run({{"heads", 2}}, {{"gradient_accumulation", 4}, {"batch_warmup_steps", 2}, {"batch_warmup_tokens", 24}});
    QVERIFY(refused([&] { require_divisible(growing.training, 2); }).startsWith("/training/batch_warmup_tokens are 1 micro-batches"));
    QVERIFY(refused([] { rank_device("cuda:0-2", {2, 0, 0, 2, nullptr}); }).contains("expected one GPU for each"));
    QVERIFY(refused([] {
              rank_device("cuda:1", {2, 0, 0, 2, nullptr});
            }).contains("expected auto, cpu, cuda or as many GPUs, like cuda:0-1"));
    QCOMPARE(rank_device("cuda:2-5", {4, 3, 3, 4, nullptr}), "cuda:5");
    QCOMPARE(rank_device("cpu", {4, 3, 3, 4, nullptr}), "cpu");
    QCOMPARE(ranks_of_device("cuda:2-5"), 4);
    for (const char* wrong : {"cuda:5-2", "cuda:-2", "cuda:1-", "cuda:1-2-3", "cuda:a-b"})
      QVERIFY2(refused([&] { resolve_config({{"device", wrong}}, "test"); }).contains("/device is"), wrong);
  }
};

}  // namespace saccade::test

QTEST_APPLESS_MAIN(saccade::test::RanksTest)
#include "ranks_test.moc"
