#pragma once

namespace saccade::ui {

enum class LegendKind {
  whole,     ///< all, no label cut: on paper
  fitting,   ///< labels may give way
  keys_only  ///< what kinds of curves there are; a list beside says which is whose
};

}  // namespace saccade::ui
