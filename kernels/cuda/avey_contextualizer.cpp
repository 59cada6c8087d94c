#include "kernels/cuda/avey_contextualizer.h"

#include <algorithm>

namespace saccade::cuda {

int64_t ContextualizerShape::group() const {
  constexpr int64_t kElements = int64_t{1} << 26;
  return std::clamp<int64_t>(kElements / (queries() * C()), 1, contexts());
}

ContextualizerScratch contextualizer_scratch(Tape& tape, const ContextualizerShape& s, DType dtype, bool backward) {
  const int64_t n = s.group(), C = s.C(), Q = s.queries();
  ContextualizerScratch scratch;
  scratch.z = tape.empty({n, C, s.r}, dtype);
  scratch.inverse = tape.empty({n, C}, DType::f32);
  scratch.products = tape.empty({n, Q, C}, DType::f32);
  scratch.weights = tape.empty({n, Q, C}, dtype);
  scratch.y = tape.empty({n, Q, s.r}, dtype);
  if (!backward) return scratch;
  scratch.d_products = tape.empty({n, Q, C}, DType::f32);
  scratch.slopes = tape.empty({n, Q, C}, dtype);
  scratch.d_z = tape.empty({n, C, s.r}, DType::f32);
  scratch.along = tape.empty({n, C, s.r}, DType::f32);
  if (s.layout.pad_rows()) scratch.padding = tape.empty({2, s.layout.pad_rows(), s.r}, DType::f32);
  return scratch;
}

}  // namespace saccade::cuda
