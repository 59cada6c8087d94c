#include "analysis/inspection/map_pyramid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace saccade {
namespace {

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

/// The value of greater size stays.
void take(float& kept, float value) {
  if (std::isfinite(value) && !(std::abs(value) <= std::abs(kept))) kept = value;
}

int64_t blocks(int64_t cells, int64_t size) { return (cells + size - 1) / size; }

}  // namespace

MapPyramid::MapPyramid(MapRows source, const std::function<bool()>& cancelled) : source_(std::move(source)) {
  while (narrower_ < 30 && blocks(source_.rows, int64_t{1} << (narrower_ + 1)) >= source_.columns) ++narrower_;
  while (blocks(source_.rows, blockRows(base_)) > kBase || blocks(source_.columns, blockColumns(base_)) > kBase) ++base_;
  grids_.push_back(emptyGrid(base_));
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (int64_t first = 0; first < source_.rows; first += kBand) {
    if (cancelled && cancelled()) return;
    const int64_t count = std::min(kBand, source_.rows - first);
    const std::vector<float> rows = source_.read(first, count);
    for (const float v : rows)
      if (std::isfinite(v)) low = std::min(low, static_cast<double>(v)), high = std::max(high, static_cast<double>(v));
    addRows(rows, first, count, base_, grids_.front());
  }
  if (low <= high) range_ = {low, high};
  for (int level = base_; grids_.back().rows > 1 || grids_.back().columns > 1; ++level)
    grids_.push_back(halved(grids_.back(), columnLevel(level + 1) > columnLevel(level)));
  complete_ = true;
}

MapPyramid::Grid MapPyramid::emptyGrid(int level) const {
  Grid grid{blocks(source_.rows, blockRows(level)), blocks(source_.columns, blockColumns(level)), {}};
  grid.values.assign(static_cast<size_t>(grid.rows * grid.columns), kNothing);
  return grid;
}

void MapPyramid::addRows(const std::vector<float>& rows, int64_t first, int64_t count, int level, Grid& grid) const {
  const int row_shift = level, column_shift = columnLevel(level);
  for (int64_t r = 0; r < count; ++r) {
    const float* from = rows.data() + r * source_.columns;
    float* to = grid.values.data() + ((first + r) >> row_shift) * grid.columns;
    for (int64_t c = 0; c < source_.columns; ++c) take(to[c >> column_shift], from[c]);
  }
}

MapPyramid::Grid MapPyramid::halved(const Grid& fine, bool columns) const {
  Grid coarse{blocks(fine.rows, 2), columns ? blocks(fine.columns, 2) : fine.columns, {}};
  coarse.values.assign(static_cast<size_t>(coarse.rows * coarse.columns), kNothing);
  for (int64_t r = 0; r < fine.rows; ++r)
    for (int64_t c = 0; c < fine.columns; ++c)
      take(coarse.values[static_cast<size_t>(r / 2 * coarse.columns + (columns ? c / 2 : c))],
           fine.values[static_cast<size_t>(r * fine.columns + c)]);
  return coarse;
}

HeatMap MapPyramid::described(int level, const Part& part) const {
  HeatMap map{.rows = part.bottom - part.top, .columns = part.right - part.left};
  const auto high = static_cast<double>(blockRows(level)), wide = static_cast<double>(blockColumns(level));
  map.row_extent = {static_cast<double>(part.top) * high, static_cast<double>(part.bottom) * high};
  map.column_extent = {static_cast<double>(part.left) * wide, static_cast<double>(part.right) * wide};
  map.cells = {source_.rows, source_.columns};
  map.block = {blockRows(level), blockColumns(level)};
  return map;
}

HeatMap MapPyramid::kept(int level, const Part& part) const {
  const Grid& grid = grids_[static_cast<size_t>(level - base_)];
  HeatMap map = described(level, part);
  for (int64_t r = part.top; r < part.bottom; ++r) {
    const auto row = grid.values.begin() + r * grid.columns;
    map.values.insert(map.values.end(), row + part.left, row + part.right);
  }
  return map;
}

HeatMap MapPyramid::part(const Part& wanted, int64_t most_rows, int64_t most_columns) {
  const std::lock_guard lock(mutex_);
  const Part cells{std::clamp<int64_t>(wanted.top, 0, source_.rows - 1), std::clamp<int64_t>(wanted.bottom, 1, source_.rows),
                   std::clamp<int64_t>(wanted.left, 0, source_.columns - 1), std::clamp<int64_t>(wanted.right, 1, source_.columns)};
  const int coarsest = base_ + static_cast<int>(grids_.size()) - 1;
  int level = 0;
  while (level < coarsest && (blocks(cells.bottom - cells.top, blockRows(level)) > most_rows ||
                              blocks(cells.right - cells.left, blockColumns(level)) > most_columns))
    ++level;
  Part in_blocks{cells.top / blockRows(level), blocks(cells.bottom, blockRows(level)), cells.left / blockColumns(level),
                 blocks(cells.right, blockColumns(level))};
  if (level >= base_) return kept(level, in_blocks);
  const int64_t all_rows = blocks(source_.rows, blockRows(level)), all_columns = blocks(source_.columns, blockColumns(level));
  const Part tiles{in_blocks.top / kTile, blocks(in_blocks.bottom, kTile), in_blocks.left / kTile, blocks(in_blocks.right, kTile)};
  in_blocks = {tiles.top * kTile, std::min(all_rows, tiles.bottom * kTile), tiles.left * kTile, std::min(all_columns, tiles.right * kTile)};
  HeatMap map = described(level, in_blocks);
  map.values.assign(static_cast<size_t>(map.rows * map.columns), kNothing);
  for (int64_t tr = tiles.top; tr < tiles.bottom; ++tr) {
    std::vector<int64_t> missing;
    for (int64_t tc = tiles.left; tc < tiles.right; ++tc)
      if (!tiles_.contains({level, tr, tc})) missing.push_back(tc);
    if (!missing.empty()) makeTiles(level, tr, missing);
    for (int64_t tc = tiles.left; tc < tiles.right; ++tc) {
      Tile& tile = tiles_.at({level, tr, tc});
      used_.splice(used_.begin(), used_, tile.used);
      for (int64_t r = tr * kTile; r < std::min(in_blocks.bottom, (tr + 1) * kTile); ++r) {
        const auto row = tile.values.begin() + (r - tr * kTile) * kTile;
        const int64_t count = std::min(kTile, in_blocks.right - tc * kTile);
        std::copy(row, row + count, map.values.begin() + (r - in_blocks.top) * map.columns + tc * kTile - in_blocks.left);
      }
    }
    while (static_cast<int64_t>(tiles_.size()) > kMostTiles) {
      tiles_.erase(used_.back());
      used_.pop_back();
    }
  }
  return map;
}

/// Of one row of tiles, whose rows are read once.
void MapPyramid::makeTiles(int level, int64_t tile_row, const std::vector<int64_t>& tile_columns) {
  std::vector<std::vector<float>> made(tile_columns.size(), std::vector<float>(static_cast<size_t>(kTile * kTile), kNothing));
  const int64_t begin = tile_row * kTile * blockRows(level), end = std::min(source_.rows, begin + kTile * blockRows(level));
  const int column_shift = columnLevel(level);
  for (int64_t first = begin; first < end; first += kBand) {
    const int64_t count = std::min(kBand, end - first);
    const std::vector<float> rows = source_.read(first, count);
    for (int64_t r = 0; r < count; ++r)
      for (size_t i = 0; i < tile_columns.size(); ++i) {
        const int64_t left = tile_columns[i] * kTile << column_shift,
                      right = std::min(source_.columns, (tile_columns[i] + 1) * kTile << column_shift);
        float* to = made[i].data() + ((first + r - begin) >> level) * kTile;
        for (int64_t c = left; c < right; ++c) take(to[(c - left) >> column_shift], rows[static_cast<size_t>(r * source_.columns + c)]);
      }
  }
  for (size_t i = 0; i < tile_columns.size(); ++i) {
    const Key key{level, tile_row, tile_columns[i]};
    used_.push_front(key);
    tiles_[key] = {std::move(made[i]), used_.begin()};
  }
}

int64_t MapPyramid::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t values = static_cast<int64_t>(tiles_.size()) * kTile * kTile;
  for (const Grid& grid : grids_) values += static_cast<int64_t>(grid.values.size());
  return values * static_cast<int64_t>(sizeof(float));
}

}  // namespace saccade
