#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "analysis/figures/figure.h"

namespace saccade {

/// A map that is read by rows.
struct MapRows {
  int64_t rows = 0, columns = 0;
  std::function<std::vector<float>(int64_t first, int64_t count)> read;  ///< whole rows; of any thread
};

/// A map too large to be drawn cell by cell, in blocks that are twice as high and wide from level to level. A block is worth its value of
/// greatest size, with its sign; NaN where it has none. Levels of at most kBase rows are kept; tiles of finer ones are made from the rows
/// when they are looked at, and the last of them kept. All calls may come from several threads.
class MapPyramid {
 public:
  /// Reads all rows once, kBand at a time. `cancelled` is asked between bands; then nothing more can be asked for.
  explicit MapPyramid(MapRows source, const std::function<bool()>& cancelled = {});

  static constexpr int64_t kBase = 2048, kTile = 256, kBand = 64, kMostTiles = 192;

  /// The part [top, bottom) × [left, right) of the map at the finest level with at most `most_rows` × `most_columns` blocks, which may
  /// reach beyond the part to the next edge of a tile: values with the extents and `cells` of the whole (HeatMap). Throws what `read`
  /// throws.
  struct Part {
    int64_t top = 0, bottom = 0, left = 0, right = 0;
  };
  HeatMap part(const Part& part, int64_t most_rows, int64_t most_columns);
  HeatMap whole(int64_t most) { return part({0, source_.rows, 0, source_.columns}, most, most); }
  /// Of the whole map: the least and greatest finite value; 0, 1 without any.
  std::array<double, 2> range() const { return range_; }
  bool complete() const { return complete_; }

  int64_t rows() const { return source_.rows; }
  int64_t columns() const { return source_.columns; }
  /// What it holds now. Of a map of 16384² never more than 22 MiB of grids and 48 MiB of tiles; a band of rows that is being read is 4 MiB.
  int64_t bytes() const;

 private:
  struct Grid {
    int64_t rows = 0, columns = 0;  ///< blocks
    std::vector<float> values;
  };
  using Key = std::tuple<int, int64_t, int64_t>;  ///< level, row and column of the tile
  struct Tile {
    std::vector<float> values;  ///< [kTile, kTile]
    std::list<Key>::iterator used;
  };

  int columnLevel(int level) const { return std::max(0, level - narrower_); }
  int64_t blockRows(int level) const { return int64_t{1} << level; }
  int64_t blockColumns(int level) const { return int64_t{1} << columnLevel(level); }
  Grid emptyGrid(int level) const;
  void addRows(const std::vector<float>& rows, int64_t first, int64_t count, int level, Grid& grid) const;
  Grid halved(const Grid& fine, bool columns) const;
  void makeTiles(int level, int64_t tile_row, const std::vector<int64_t>& tile_columns);
  HeatMap kept(int level, const Part& part) const;
  HeatMap described(int level, const Part& blocks) const;

  MapRows source_;
  int base_ = 0;      ///< level of the finest grid that is kept
  int narrower_ = 0;  ///< levels at which only rows are put together, where there are many more of them
  std::vector<Grid> grids_;
  std::array<double, 2> range_{0, 1};
  bool complete_ = false;
  mutable std::mutex mutex_;
  std::map<Key, Tile> tiles_;
  std::list<Key> used_;  ///< the latest first
};

}  // namespace saccade
