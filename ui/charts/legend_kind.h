#pragma once

namespace saccade::ui {

enum class LegendKind {
  whole,     ///< all, no label cut: on paper
  fitting,   ///< labels may give way
  direct,    ///< names stand at the ends of the curves, what kinds there are over them
  none,      ///< nothing at all
  keys_only  ///< what kinds of curves there are; a list beside says which is whose
};

}  // namespace saccade::ui
