#include "kernels/ops/head_projection/head_projection.h"

#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/head_projection/next_heads.h"
#include "kernels/ops/linear/linear.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

namespace {

HeadProjection projection(const std::vector<Tensor>& x, QkNorm norm) {
  HeadProjection p{x[1], x[2], x[3], {}, {}, 2, {}};
  if (norm == QkNorm::rms) p.query_norm_weight = x[4], p.key_norm_weight = x[5];
  p.options.norm = norm;
  p.options.rotary_base = 100;
  return p;
}

std::vector<Array> arrays() {
  return {random_array({2, 3, 5}, 1), random_array({8, 5}, 2), random_array({8, 5}, 3),
          random_array({8, 5}, 4),    random_array({4}, 5),    random_array({4}, 6)};
}

}  // namespace

class HeadProjectionTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void gradient() {
    for (QkNorm norm : {QkNorm::none, QkNorm::l2, QkNorm::rms}) {
      std::vector<Array> inputs = arrays();
      if (norm != QkNorm::rms) inputs.resize(4);
      CHECK_OP(
          [norm](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
            const ProjectedHeads y = project_heads(t, x[0], projection(x, norm));
            return {y.q, y.k, y.v};
          },
          inputs);
    }
  }

  void attended() {
    std::vector<Array> inputs = arrays();
    inputs.resize(4);
    CHECK_OP(
        [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
          return {attend_heads(t, x[0], projection(x, QkNorm::none), {0.5, 2, false}).attention.o};
        },
        inputs);
  }

  void formula() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    std::vector<Tensor> x;
    for (const Array& array : arrays()) x.push_back(to_tensor(array, DType::f64, arena));
    const HeadProjection p = projection(x, QkNorm::rms);
    const ProjectedHeads y = project_heads(tape, x[0], p);
    const Shape heads{2, 3, 2, 4};
    COMPARE_CLOSE(to_array(y.q), to_array(prepare_heads(tape, linear(tape, x[0], x[1]).reshape(heads), x[4], p.options)), 1e-15, "q");
    COMPARE_CLOSE(to_array(y.k), to_array(prepare_heads(tape, linear(tape, x[0], x[2]).reshape(heads), x[5], p.options)), 1e-15, "k");
    COMPARE_CLOSE(to_array(y.v), to_array(linear(tape, x[0], x[3]).reshape(heads)), 1e-15, "v");
    HeadProjection without = p;
    without.query = {};
    const ProjectedHeads z = project_heads(tape, x[0], without);
    QVERIFY(!z.q);
    COMPARE_CLOSE(to_array(z.k), to_array(y.k), 1e-15, "k without queries");
    COMPARE_CLOSE(to_array(z.v), to_array(y.v), 1e-15, "v without queries");
  }

  /// As project_heads and append_rows, each sequence at its own position; rows of other tokens stay.
  void next_heads() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    std::vector<Tensor> x;
    for (const Array& array : arrays()) x.push_back(to_tensor(array, DType::f64, arena));
    const Tensor token = to_tensor(random_array({2, 1, 5}, 7), DType::f64, arena);
    HeadProjection p = projection(x, QkNorm::rms);
    p.options.position = {6, arena.allocate({2}, DType::i32)};
    p.options.position.on_device.data<int32_t>()[0] = 6, p.options.position.on_device.data<int32_t>()[1] = 2;
    Tensor caches[2][2];
    for (auto& side : caches)
      for (uint64_t i = 0; i < 2; ++i) side[i] = to_tensor(random_array({2, 7, 2, 4}, 8 + i), DType::f64, arena);
    const Tensor q = project_next_heads(tape, token, p, caches[0][0], caches[0][1]);
    const ProjectedHeads y = project_heads(tape, token, p);
    append_rows(tape, y.k, caches[1][0], p.options.position);
    append_rows(tape, y.v, caches[1][1], p.options.position);
    COMPARE_CLOSE(to_array(q), to_array(y.q), 0, "q");
    COMPARE_CLOSE(to_array(caches[0][0]), to_array(caches[1][0]), 0, "keys");
    COMPARE_CLOSE(to_array(caches[0][1]), to_array(caches[1][1]), 0, "values");
    const InputNorm norm{to_tensor(random_array({5}, 10), DType::f64, arena), 0.1};
    const Tensor of_normed = project_next_heads(tape, norm(tape, token), p, caches[0][0], caches[0][1]);
    COMPARE_CLOSE(to_array(project_next_heads(tape, token, p, caches[1][0], caches[1][1], norm)), to_array(of_normed), 0,
                  "q of normed rows");
    COMPARE_CLOSE(to_array(caches[1][0]), to_array(caches[0][0]), 0, "keys of normed rows");
    COMPARE_CLOSE(to_array(caches[1][1]), to_array(caches[0][1]), 0, "values of normed rows");
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                             project_next_heads(tape, token, p, caches[0][0], caches[0][1], {tape.empty({6}, DType::f64), 0.1}));
    p.options.position.first = 7;
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, project_next_heads(tape, token, p, caches[0][0], caches[0][1]));
    p.options.position.first = 6;
    const Tensor one = to_tensor(random_array({1, 7, 2, 4}, 8), DType::f64, arena);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, project_next_heads(tape, token, p, one, caches[0][1]));
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({1, 2, 8}, DType::f32), w = tape.empty({6, 8}, DType::f32), other = tape.empty({6, 9}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, project_heads(tape, x, {w, w, other, {}, {}, 3, {}}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, project_heads(tape, x, {w, w, w, {}, {}, 4, {}}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::HeadProjectionTest)
#include "head_projection_test.moc"
