#pragma once
#include <string>

namespace saccade::cuda {

/// Why cuBLASLt cannot be loaded; empty when it can.
std::string cublas_problem();

}  // namespace saccade::cuda
