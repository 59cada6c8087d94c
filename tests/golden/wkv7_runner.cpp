#include "kernels/ops/wkv7/wkv7.h"

#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/rwkv7/rwkv7_gates.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

GoldenResult run_core(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena,
                    [](Tape& tape, const Tensors& x) {
                      const Wkv7 out = wkv7(tape, x.at("r"), x.at("log_w"), x.at("k"), x.at("v"), x.at("a"), x.at("b"),
                                            x.contains("S0") ? x.at("S0") : Tensor());
                      return Tensors{{"y", out.y}, {"final_state", out.state}};
                    },
                    {"log_w", "S0"});
}

/// Everything between the projections and the output matrix.
GoldenResult run_fused(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    const Shape& flat = x.at("r").shape();
    const int64_t heads = x.at("r_k").dim(0), width = x.at("r_k").dim(1);
    const Shape by_head{flat[0], flat[1], heads, width};
    const auto split = [&](const Tensor& t) { return t.reshape(by_head); };
    const Tensor &r = x.at("r"), &k = x.at("k"), &v = x.at("v");
    const Tensor kappa = unit_norm(tape, split(k), x.at("k_k").reshape({heads, width}), c.attributes.at("kk_eps")).reshape(flat);
    const Rwkv7Gates gates = rwkv7_gates(tape, x.at("d"), x.at("iclr_raw"), k, kappa, x.at("k_a"));
    const Wkv7 out = wkv7(tape, split(r), split(gates.log_w), split(gates.k), split(v), split(gates.a), split(gates.b));
    const Tensor y = group_norm(tape, out.y.reshape(flat), x.at("ln_w"), x.at("ln_b"), heads, c.attributes.at("ln_eps"));
    return Tensors{{"y", rwkv7_output(tape, y, r, gates.k, v, x.at("g"), x.at("r_k"))}, {"final_state", out.state}};
  });
}

const RegisterGolden core("wkv7/core", run_core), fused("wkv7/fused", run_fused);

}  // namespace
}  // namespace saccade::test
