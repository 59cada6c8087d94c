#include "analysis/runs/hdf5_chunks.h"

#include <libdeflate.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>

#include "kernels/engine/parallel.h"

namespace saccade::h5 {
namespace {

constexpr size_t kChecksum = 4;       // bytes behind a filtered chunk, the lowest first
constexpr size_t kChunksAtOnce = 64;  // filtered before they are written: bounds memory, and how long other parallel work waits

// libdeflate writes and reads the streams of HDF5's deflate filter in about half of zlib's time.
using Compressor = std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)>;
using Decompressor = std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>;

hsize_t product(const std::vector<hsize_t>& dims) {
  hsize_t all = 1;
  for (const hsize_t d : dims) all *= d;
  return all;
}

/// Offsets of every chunk, the last dimension fastest.
std::vector<std::vector<hsize_t>> offsets_of(const Chunked& shape) {
  std::vector<std::vector<hsize_t>> all;
  std::vector<hsize_t> at(shape.extent.size(), 0);
  for (;;) {
    all.push_back(at);
    size_t axis = at.size();
    while (axis-- > 0) {
      at[axis] += shape.chunk[axis];
      if (at[axis] < shape.extent[axis]) break;
      at[axis] = 0;
      if (axis == 0) return all;
    }
  }
}

/// Calls visit(element in the data set, element in the chunk, count) for every run of elements that lie together in both.
template <class Visit>
void each_run(const Chunked& shape, const std::vector<hsize_t>& offset, Visit visit) {
  const size_t rank = shape.extent.size(), last = rank - 1;
  std::vector<hsize_t> size(rank), at(rank, 0);
  for (size_t d = 0; d < rank; ++d) size[d] = std::min(shape.chunk[d], shape.extent[d] - offset[d]);
  for (;;) {
    hsize_t outside = 0, inside = 0;
    for (size_t d = 0; d < rank; ++d) {
      outside = outside * shape.extent[d] + offset[d] + at[d];
      inside = inside * shape.chunk[d] + at[d];
    }
    visit(outside, inside, size[last]);
    size_t axis = last;
    while (axis-- > 0) {
      if (++at[axis] < size[axis]) break;
      at[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

/// All first bytes, then all second ones, and so on; or back.
void shuffle(const uint8_t* from, uint8_t* to, size_t count, size_t element) {
  for (size_t byte = 0; byte < element; ++byte)
    for (size_t i = 0; i < count; ++i) to[byte * count + i] = from[i * element + byte];
}
void unshuffle(const uint8_t* from, uint8_t* to, size_t count, size_t element) {
  for (size_t byte = 0; byte < element; ++byte)
    for (size_t i = 0; i < count; ++i) to[i * element + byte] = from[byte * count + i];
}

void add_checksum(std::vector<uint8_t>& stored, size_t size) {
  const uint32_t checksum = fletcher32(stored.data(), size);
  stored.resize(size + kChecksum);
  for (size_t i = 0; i < kChecksum; ++i) stored[size + i] = static_cast<uint8_t>(checksum >> (8 * i));
}

/// What is stored of a chunk; empty where zlib has no memory. Beyond the data set's end a chunk holds zeros.
std::vector<uint8_t> filtered(const Chunked& shape, const std::vector<hsize_t>& offset, const void* values, int level) {
  const size_t count = product(shape.chunk), bytes = count * shape.element;
  std::vector<uint8_t> plain;
  plain.reserve(bytes + kChecksum);
  plain.resize(bytes, 0);
  each_run(shape, offset, [&](hsize_t outside, hsize_t inside, hsize_t run) {
    std::memcpy(plain.data() + inside * shape.element, static_cast<const uint8_t*>(values) + outside * shape.element, run * shape.element);
  });
  if (!shape.deflated) {
    add_checksum(plain, bytes);
    return plain;
  }
  std::vector<uint8_t> shuffled(bytes);
  shuffle(plain.data(), shuffled.data(), count, shape.element);
  const Compressor deflate(libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  if (!deflate) return {};
  std::vector<uint8_t> stored(libdeflate_zlib_compress_bound(deflate.get(), bytes) + kChecksum);
  const size_t size = libdeflate_zlib_compress(deflate.get(), shuffled.data(), bytes, stored.data(), stored.size() - kChecksum);
  if (size == 0) return {};
  add_checksum(stored, size);
  return stored;
}

/// A chunk as it is stored, and which of its filters were left out, the first in the lowest bit: HDF5 leaves out deflate where it gains
/// nothing.
struct Stored {
  std::vector<uint8_t> bytes;
  uint32_t left_out = 0;
};

/// A chunk as it was before; empty where the bytes are not what such filters made of a chunk of this shape.
std::vector<uint8_t> take_apart(Stored& chunk, const Chunked& shape) {
  std::vector<uint8_t>& stored = chunk.bytes;
  const size_t count = product(shape.chunk), bytes = count * shape.element;
  if (stored.size() < kChecksum || (chunk.left_out & ~(shape.deflated ? 2u : 0u)) != 0) return {};
  const size_t size = stored.size() - kChecksum;
  uint32_t checksum = 0;
  for (size_t i = 0; i < kChecksum; ++i) checksum |= static_cast<uint32_t>(stored[size + i]) << (8 * i);
  if (checksum != fletcher32(stored.data(), size)) return {};
  if (!shape.deflated) {
    stored.resize(size);
    return size == bytes ? std::move(stored) : std::vector<uint8_t>();
  }
  std::vector<uint8_t> shuffled(bytes), plain(bytes);
  if (chunk.left_out == 0) {
    const Decompressor inflate(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
    if (!inflate) return {};
    // Without a place for the number of bytes it takes no fewer than all.
    if (libdeflate_zlib_decompress(inflate.get(), stored.data(), size, shuffled.data(), bytes, nullptr) != LIBDEFLATE_SUCCESS) return {};
  } else {
    if (size != bytes) return {};
    std::copy_n(stored.begin(), bytes, shuffled.begin());
  }
  unshuffle(shuffled.data(), plain.data(), count, shape.element);
  return plain;
}

/// One of the chunks of several data sets.
struct Place {
  const ChunkedValues* of;
  std::vector<hsize_t> offset;
};
std::vector<Place> places_of(std::span<const ChunkedValues> sets) {
  std::vector<Place> places;
  for (const ChunkedValues& set : sets)
    for (std::vector<hsize_t>& offset : offsets_of(set.shape)) places.push_back({&set, std::move(offset)});
  return places;
}

/// Reads chunks as they are stored, some at a time, and gives each one taken apart, in a parallel task: visit(number of the chunk, bytes).
/// Negative on an error.
herr_t each_chunk(std::span<const Place> places, const std::function<void(size_t, const std::vector<uint8_t>&)>& visit) {
  for (size_t first = 0; first < places.size(); first += kChunksAtOnce) {
    std::vector<Stored> stored(std::min(kChunksAtOnce, places.size() - first));
    for (size_t i = 0; i < stored.size(); ++i) {
      const Place& place = places[first + i];
      hsize_t size = 0;
      if (H5Dget_chunk_storage_size(place.of->set, place.offset.data(), &size) < 0) return -1;
      stored[i].bytes.resize(size);
      if (H5Dread_chunk(place.of->set, H5P_DEFAULT, place.offset.data(), &stored[i].left_out, stored[i].bytes.data()) < 0) return -1;
    }
    std::vector<char> good(stored.size());
    parallel_for(static_cast<int64_t>(stored.size()), [&](int64_t number) {
      const auto i = static_cast<size_t>(number);
      const std::vector<uint8_t> plain = take_apart(stored[i], places[first + i].of->shape);
      good[i] = !plain.empty();
      if (good[i]) visit(first + i, plain);
    });
    if (std::find(good.begin(), good.end(), 0) != good.end()) return -1;
  }
  return 0;
}

}  // namespace

uint32_t fletcher32(const uint8_t* bytes, size_t count) {
  constexpr size_t kWords = 360;  // so many sums cannot overflow 32 bits
  const auto folded = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  uint32_t a = 0, b = 0;
  size_t words = count / 2;
  while (words > 0) {
    const size_t now = std::min(words, kWords);
    for (size_t i = 0; i < now; ++i, bytes += 2) {
      a += static_cast<uint32_t>(bytes[0]) << 8 | bytes[1];
      b += a;
    }
    words -= now;
    a = folded(a);
    b = folded(b);
  }
  if (count % 2 != 0) {
    a += static_cast<uint32_t>(*bytes) << 8;
    b += a;
    a = folded(a);
    b = folded(b);
  }
  return folded(b) << 16 | folded(a);
}

herr_t write_chunks(std::span<const ChunkedValues> sets) {
  const std::vector<Place> places = places_of(sets);
  for (size_t first = 0; first < places.size(); first += kChunksAtOnce) {
    std::vector<std::vector<uint8_t>> stored(std::min(kChunksAtOnce, places.size() - first));
    parallel_for(static_cast<int64_t>(stored.size()), [&](int64_t i) {
      const auto& [of, offset] = places[first + static_cast<size_t>(i)];
      stored[static_cast<size_t>(i)] = filtered(of->shape, offset, of->values, of->level);
    });
    for (size_t i = 0; i < stored.size(); ++i) {
      const auto& [of, offset] = places[first + i];
      if (stored[i].empty()) return -1;
      if (const herr_t done = H5Dwrite_chunk(of->set, H5P_DEFAULT, 0, offset.data(), stored[i].size(), stored[i].data()); done < 0)
        return done;
    }
  }
  return 0;
}

herr_t read_chunks(hid_t set, const Chunked& shape, void* values) {
  const ChunkedValues whole{set, shape};
  const std::vector<Place> places = places_of({&whole, 1});
  return each_chunk(places, [&](size_t number, const std::vector<uint8_t>& plain) {
    each_run(shape, places[number].offset, [&](hsize_t outside, hsize_t inside, hsize_t run) {
      std::memcpy(static_cast<uint8_t*>(values) + outside * shape.element, plain.data() + inside * shape.element, run * shape.element);
    });
  });
}

htri_t hold_chunks(std::span<const ChunkedValues> sets) {
  const std::vector<Place> places = places_of(sets);
  std::atomic<bool> same = true;
  const herr_t read = each_chunk(places, [&](size_t number, const std::vector<uint8_t>& plain) {
    const auto& [of, offset] = places[number];
    const size_t element = of->shape.element;
    const auto* wanted = static_cast<const uint8_t*>(of->values);
    each_run(of->shape, offset, [&](hsize_t outside, hsize_t inside, hsize_t run) {
      if (std::memcmp(wanted + outside * element, plain.data() + inside * element, run * element) != 0) same = false;
    });
  });
  return read < 0 ? read : same ? 1 : 0;
}

}  // namespace saccade::h5
