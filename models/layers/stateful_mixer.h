#pragma once
#include "models/mixer.h"

namespace saccade {

/// A mixer whose forward pass and decoding are the same function, without and with what it keeps of a sequence.
template <class State>
class StatefulMixer : public Mixer {
 public:
  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const final { return mix(tape, x, pass, nullptr); }
  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const final {
    return mix(tape, x, pass, &dynamic_cast<State&>(state));
  }

 protected:
  /// x [B, T, D] → [B, T, D]; a state then holds x, too.
  virtual Tensor mix(Tape& tape, const Tensor& x, Pass& pass, State* state) const = 0;
};

}  // namespace saccade
