#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/compare.h"

namespace saccade::test {

using Arrays = std::map<std::string, Array>;

/// One group of a golden file.
struct GoldenCase {
  std::string file, name, op;  ///< op: the attribute "op"; empty when there is none
  nlohmann::json attributes;
  Arrays inputs, outputs, grad_outputs, grads;  ///< inputs include the group "params"
  std::set<std::string> parameters;             ///< inputs of the group "params", and vectors (gains)
};
/// Throws std::runtime_error when a file cannot be read.
std::vector<GoldenCase> read_golden_file(const std::string& path);

/// Runs one case in a dtype on the arena's device: outputs, and gradients for the upstream gradients given. In bf16 (CUDA)
/// activations are bf16, parameters f32.
struct GoldenResult {
  Arrays outputs, grads;
  Arrays scores;  ///< [..., candidates] by the selection made from them; only from runs on the CPU
};
using GoldenRunner = std::function<GoldenResult(const GoldenCase&, DType, Arena&)>;

/// Runners by op; a file in tests/golden registers its own.
std::map<std::string, GoldenRunner>& golden_runners();
struct RegisterGolden {
  RegisterGolden(const std::string& op, GoldenRunner runner) { golden_runners()[op] = std::move(runner); }
};

/// The runner of a case: of its op, else the one registered for the longest beginning of "file/name" that ends at a word:
/// "norms/rms_norm_gate_first_t37" → "norms/rms_norm_gate_first", "mamba2_ssd/t1" → "mamba2_ssd". Null when there is none.
const GoldenRunner* find_golden_runner(const GoldenCase& c);

/// For runners of a single op: makes differentiable tensors of the inputs, calls `forward`, goes backward from
/// grad_outputs and collects all gradients. `exact`: inputs that stay f32 in bf16 besides parameters (states, log decays).
GoldenResult run_golden(const GoldenCase& c, DType dtype, Arena& arena,
                        const std::function<std::map<std::string, Tensor>(Tape&, const std::map<std::string, Tensor>& inputs)>& forward,
                        const std::set<std::string>& exact = {});

}  // namespace saccade::test
