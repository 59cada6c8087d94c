#pragma once
#include <QString>
#include <optional>

#include "analysis/runs/run_origin.h"

namespace saccade::ui {

/// How a host stands by its mirror: "connected", "offline, as of 4 Nov 14:05", "not reached", "not connected yet".
QString mirrorText(const std::optional<MirrorState>& mirror);

}  // namespace saccade::ui
