#include "kernels/ops/wkv/wkv.h"

#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/norm/norm.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

Tensor optional(const Tensors& x, const char* name) { return x.contains(name) ? x.at(name) : Tensor(); }

GoldenResult run_wkv(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena,
                    [](Tape& tape, const Tensors& x) {
                      const Wkv out = wkv(tape, x.at("r"), x.at("k"), x.at("v"), x.at("w_raw"), x.at("u"), optional(x, "S0"));
                      return Tensors{{"y", out.y}, {"final_state", out.state}};
                    },
                    {"S0"});
}

GoldenResult run_group_norm(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    return Tensors{{"y", group_norm(tape, x.at("x"), x.at("weight"), x.at("bias"), c.attributes.at("heads"), c.attributes.at("eps"))}};
  });
}

GoldenResult run_layer_norm(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    return Tensors{{"y", layer_norm(tape, x.at("x"), x.at("weight"), x.at("bias"), c.attributes.at("eps"))}};
  });
}

GoldenResult run_unit_norm(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    return Tensors{{"y", unit_norm(tape, x.at("x"), {}, c.attributes.at("eps"))}};
  });
}

const RegisterGolden wkv5("wkv5", run_wkv), wkv6("wkv6", run_wkv), groups("norms/group_norm_heads", run_group_norm),
    layer("norms/layer_norm", run_layer_norm), unit("norms/l2_max_eps", run_unit_norm);

}  // namespace
}  // namespace saccade::test
