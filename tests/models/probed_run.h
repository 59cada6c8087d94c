#pragma once
#include "models/architectures/registry.h"

namespace saccade::test {

/// A model of two layers of width 8 reports of two sequences; `change` may set its parameters before.
inline void look(nlohmann::json architecture, int64_t length, ProbeRecord& record, const std::function<void(Model&)>& change = {}) {
  architecture.update({{"width", 8}, {"layers", 2}});
  Arena arena(Device::cpu());
  const auto model = make_model(resolve_architecture(architecture, length), 7, length, arena, DType::f64, 1, false);
  if (change) change(*model);
  const Tensor tokens = arena.allocate({2, length}, DType::i32);
  for (int64_t i = 0; i < tokens.size(); ++i) tokens.data<int32_t>()[i] = static_cast<int32_t>(i * i % 7);
  Tape tape(arena, false);
  model->hidden(tape, tokens, &record);
}

inline ProbeRecord probed(const nlohmann::json& architecture, int64_t length, const std::function<void(Model&)>& change) {
  ProbeRecord record;
  record.maps_wanted = true;
  look(architecture, length, record, change);
  return record;
}

}  // namespace saccade::test
