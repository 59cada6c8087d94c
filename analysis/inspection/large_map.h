#pragma once
#include <memory>

#include "analysis/inspection/map_pyramid.h"

namespace saccade {

/// Cells up to which a map is drawn cell by cell, so that exported pictures and numbers hold every one.
inline constexpr int64_t kMostCells = int64_t{1} << 22;
/// Cells of a captured map: 0 where there is none.
int64_t cells_of(const Capture& capture, const MapPlace& place);

/// A map of a capture, or what its read weights are more than those of another capture of the same tokens.
struct MapSource {
  std::shared_ptr<const Capture> capture;
  MapPlace place;
  std::shared_ptr<const Capture> minus = nullptr;  ///< null: a map by itself
  MapPlace minus_place = {};
};
/// Every cell. Throws as capture_figure, or difference_figure.
Figure whole_figure(const MapSource& source);
/// Rows first … first + count, [count, columns].
std::vector<float> rows_of(const MapSource& source, int64_t first, int64_t count);

/// A map as a pyramid; not complete when `cancelled` said so. Throws as whole_figure.
std::unique_ptr<MapPyramid> pyramid_of(const MapSource& source, const std::function<bool()>& cancelled);
/// The figure of the whole map in at most `most` × `most` blocks; marks count cells.
Figure pyramid_figure(const MapSource& source, MapPyramid& pyramid, int64_t most);
/// A part of the same map in the colours of the whole.
Figure part_figure(const Figure& whole, HeatMap part);

}  // namespace saccade
