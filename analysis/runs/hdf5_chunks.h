#pragma once
#include <hdf5.h>

#include <cstdint>
#include <vector>

namespace saccade::h5 {

/// A data set of several chunks: extents and chunk in elements, and the bytes of one. Its filters are shuffle, deflate and Fletcher32, in that order.
struct Chunked {
  std::vector<hsize_t> extent, chunk;
  size_t element = 0;
};

/// Writes all values (row-major), or reads them: as H5Dwrite and H5Dread do, which filter one chunk after the other, but several chunks
/// at a time. `level` is deflate's. Negative on an error, like HDF5's own.
herr_t write_chunks(hid_t set, const Chunked& shape, const void* values, int level);
herr_t read_chunks(hid_t set, const Chunked& shape, void* values);

/// HDF5's checksum of the filter Fletcher32: over 16-bit words, the first byte the higher one; an odd byte at the end counts as one.
uint32_t fletcher32(const uint8_t* bytes, size_t count);

}  // namespace saccade::h5
