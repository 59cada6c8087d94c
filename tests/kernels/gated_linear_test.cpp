#include "kernels/ops/gated_linear/gated_linear.h"

#include "kernels/ops/linear/linear.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

class GatedLinearTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void gradient() {
    for (Activation f : {Activation::gelu, Activation::silu})
      CHECK_OP([f](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {gated_linear(t, x[0], x[1], x[2], f)}; },
               (std::vector<Array>{random_array({2, 5, 7}, 1), random_array({11, 7}, 2), random_array({11, 7}, 3)}));
    CHECK_OP(
        [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
          return {gated_linear(t, x[0], x[1], x[2], Activation::silu, {x[3], 0.1})};
        },
        (std::vector<Array>{random_array({2, 5, 7}, 1), random_array({11, 7}, 2), random_array({11, 7}, 3), random_array({7}, 4)}));
  }

  void formula() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = to_tensor(random_array({3, 4}, 1), DType::f64, arena), gate = to_tensor(random_array({5, 4}, 2), DType::f64, arena),
                 up = to_tensor(random_array({5, 4}, 3), DType::f64, arena);
    const Tensor expected = gated(tape, linear(tape, x, gate), linear(tape, x, up), Activation::gelu);
    COMPARE_CLOSE(to_array(gated_linear(tape, x, gate, up, Activation::gelu)), to_array(expected), 1e-15, "y");
    const Tensor weight = to_tensor(random_array({4}, 4), DType::f64, arena), u = rms_norm(tape, x, weight, 0.1);
    COMPARE_CLOSE(to_array(gated_linear(tape, x, gate, up, Activation::gelu, {weight, 0.1})),
                  to_array(gated_linear(tape, u, gate, up, Activation::gelu)), 0, "y of normed rows");
  }

  /// A plan allocates for few rows what a GPU may need: the normed rows, unless it records.
  void plan_of_few_rows() {
    for (const bool recording : {false, true}) {
      Arena arena(Device::plan(Engine::cuda));
      Tape tape(arena, recording);
      const Tensor x = tape.empty({64, 8}, DType::bf16), gate = tape.empty({16, 8}, DType::f32), up = tape.empty({16, 8}, DType::f32);
      const Tensor weight = tape.empty({8}, DType::f32), y = gated_linear(tape, x, gate, up, Activation::silu, {weight, 0.1});
      QVERIFY(y.shape() == Shape({64, 16}) && y.dtype() == DType::bf16);
      QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                               gated_linear(tape, x, gate, up, Activation::silu, {tape.empty({9}, DType::f32), 0.1}));
    }
  }

  /// What the plan of a GPU run counts: the two products, the gate, and the same backward.
  void cuda_plan() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, true);
    Tensor x = tape.empty({6, 8}, DType::f32), gate = tape.empty({16, 8}, DType::f32), up = tape.empty({16, 8}, DType::f32);
    for (Tensor* input : {&x, &gate, &up}) input->set_differentiable(true);
    const Tensor y = gated_linear(tape, x, gate, up, Activation::silu);
    const double products = 2.0 * 6 * 8 * 32;
    QVERIFY(tape.cost().flops >= products && tape.cost().flops < 1.5 * products);
    const int64_t before = arena.used();
    tape.backward({{y, tape.empty(y.shape(), y.dtype())}});
    QVERIFY(tape.cost().flops >= 3 * products);
    QVERIFY(arena.used() < before + x.bytes() + 2 * gate.bytes() + 4096);
  }

  void shapes() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 8}, DType::f32), gate = tape.empty({4, 8}, DType::f32), up = tape.empty({5, 8}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, gated_linear(tape, x, gate, up, Activation::gelu));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, gated_linear(tape, x, gate, gate, Activation::gelu));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GatedLinearTest)
#include "gated_linear_test.moc"
