#pragma once
#include <hdf5.h>

#include <cstdint>
#include <span>
#include <vector>

namespace saccade::h5 {

/// A data set in chunks: extents and chunk in elements, and the bytes of one. Its filters are shuffle, deflate and Fletcher32, in that
/// order, or Fletcher32 alone.
struct Chunked {
  std::vector<hsize_t> extent, chunk;
  size_t element = 0;
  bool deflated = true;
};

/// All values of a data set (row-major). `level` is deflate's, where they are written deflated.
struct ChunkedValues {
  hid_t set = -1;
  Chunked shape;
  const void* values = nullptr;
  int level = 0;
};

/// Writes all values, or reads them: as H5Dwrite and H5Dread do, which filter one chunk after the other, but several chunks at a time, of
/// one data set and the next. Negative on an error, like HDF5's own.
herr_t write_chunks(std::span<const ChunkedValues> sets);
herr_t read_chunks(hid_t set, const Chunked& shape, void* values);
/// Whether the data sets hold these values, bit by bit: 1 or 0, negative on an error.
htri_t hold_chunks(std::span<const ChunkedValues> sets);

/// HDF5's checksum of the filter Fletcher32: over 16-bit words, the first byte the higher one; an odd byte at the end counts as one.
uint32_t fletcher32(const uint8_t* bytes, size_t count);

}  // namespace saccade::h5
