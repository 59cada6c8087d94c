#pragma once
#include <string>

#include "analysis/figures/figure.h"

namespace saccade {

/// A figure's curves as a picture in SVG 1.1 that needs nothing else: axes, ticks, lines, markers and a legend below. Maps are not drawn.
std::string to_svg(const Figure& figure);

/// Text as XML and HTML take it.
std::string escaped_markup(const std::string& text);

}  // namespace saccade
