#include "kernels/engine/side_stream.h"

#include <QtTest>

namespace saccade::test {
namespace {

constexpr Cost kSmall{1e6, 1e6}, kLarge{1e12, 1e9};

const auto kNothing = [] {};

/// Something begun beside that reads x and, with a target, writes it.
void begin(Tape& tape, const Tensor& x, const GradTarget& target = {}, Cost cost = kSmall) {
  run_on_side_stream(tape, "work", cost, {x}, {target}, kNothing, kNothing);
}

}  // namespace

/// On the plan of a GPU, which keeps memory as the GPU does.
class BesideTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void runs_at_once_on_the_cpu() {
    Arena arena(Device::cpu());
    Tape tape(arena, true);
    bool ran = false;
    run_on_side_stream(
        tape, "work", kSmall, {tape.empty({4}, DType::f32)}, {}, [&] { ran = true; }, kNothing);
    QVERIFY(ran);
    QCOMPARE(arena.used(), int64_t{0});
  }

  void keeps_what_it_reads() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, true);
    const BesideEnds guard(tape);
    Tensor first = tape.empty({64}, DType::f32), second = tape.empty({64}, DType::f32);
    begin(tape, first);
    begin(tape, second);
    QVERIFY(!first.sole_owner() && !second.sole_owner());
    tape.side_stream().wait_for_reads(first);
    QVERIFY(first.sole_owner() && !second.sole_owner());
    second = {};
    QVERIFY(arena.used() > first.bytes());
  }

  void ends_with_the_backward_pass() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, true);
    const Tensor x = tape.empty({64}, DType::f32);
    {
      const BesideEnds guard(tape);
      begin(tape, x);
    }
    QVERIFY(x.sole_owner());
  }

  void waits_for_writes_of_a_buffer() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, true);
    const BesideEnds guard(tape);
    const Tensor x = tape.empty({64}, DType::f32), y = tape.empty({64}, DType::f32), a = tape.empty({8}, DType::f32),
                 b = tape.empty({8}, DType::f32);
    begin(tape, x, {a, false});
    begin(tape, y, {b, false});
    tape.side_stream().wait_for_writes(a.reshape({2, 4}));
    QVERIFY(x.sole_owner() && !y.sole_owner());
    tape.side_stream().wait_for_writes(b);
    QVERIFY(y.sole_owner());
  }

  void large_work_stays_in_line() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, true);
    const Tensor x = tape.empty({64}, DType::f32);
    begin(tape, x, {}, kLarge);
    QVERIFY(x.sole_owner());
    QCOMPARE(tape.cost().flops, kLarge.flops);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BesideTest)
#include "beside_test.moc"
