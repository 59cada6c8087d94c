#pragma once
#include "models/model.h"
#include "tests/support/golden_file.h"

namespace saccade::test {

/// Gives the model the parameters of a case.
void set_parameters(const Model& model, const GoldenCase& c);

/// Loss and logits of a case's tokens, and the gradient of every parameter. In bf16 as a run on a GPU trains: bf16 activations
/// and copies of matrices, f32 parameters.
GoldenResult run_model(const Model& model, const GoldenCase& c, DType dtype, Arena& arena);

}  // namespace saccade::test
