#include "models/mixer.h"

#include <stdexcept>

namespace saccade {

std::unique_ptr<LayerState> Mixer::begin(Arena&, DType, int64_t, int64_t) const {
  throw UsageError("this mixer does not decode incrementally");
}

Tensor Mixer::extend(Tape&, const Tensor&, Pass&, LayerState&) const { throw std::logic_error("extend without begin"); }

}  // namespace saccade
