#include <QtTest>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "analysis/runs/hdf5_chunks.h"

namespace h5 = saccade::h5;

namespace {

/// A file in memory with one data set, shuffled, deflated and with Fletcher32, or that alone.
struct DataSet {
  hid_t file, set;
  DataSet(const h5::Chunked& shape, hid_t type) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), layout = H5Pcreate(H5P_DATASET_CREATE);
    static int made = 0;
    const std::string name = "chunks-" + std::to_string(made++);
    H5Pset_fapl_core(access, 1 << 20, false);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    file = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pset_chunk(layout, static_cast<int>(shape.chunk.size()), shape.chunk.data());
    if (shape.deflated) H5Pset_shuffle(layout), H5Pset_deflate(layout, 1);
    H5Pset_fletcher32(layout);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.extent.size()), shape.extent.data(), nullptr);
    set = H5Dcreate2(file, "values", type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(layout);
    H5Pclose(access);
  }
  ~DataSet() {
    H5Dclose(set);
    H5Fclose(file);
  }
};

int write(const DataSet& data, const h5::Chunked& shape, const void* values) {
  const h5::ChunkedValues all{data.set, shape, values, 1};
  return h5::write_chunks({&all, 1});
}

template <class T>
std::vector<T> values_for(const h5::Chunked& shape) {
  std::vector<T> values(std::accumulate(shape.extent.begin(), shape.extent.end(), size_t{1}, std::multiplies<>()));
  uint64_t state = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values[i] = i % 3 == 0 ? T() : static_cast<T>(static_cast<double>(state >> 33) * 0.37);
  }
  return values;
}

/// What this process writes HDF5 reads, and the other way round.
template <class T>
void go_both_ways(h5::Chunked shape, hid_t type) {
  shape.element = sizeof(T);
  const std::vector<T> values = values_for<T>(shape);
  std::vector<T> back(values.size());
  const DataSet ours(shape, type), theirs(shape, type);
  QCOMPARE(write(ours, shape, values.data()), 0);
  QVERIFY(H5Dread(ours.set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0);
  QVERIFY(back == values);
  QVERIFY(H5Dwrite(theirs.set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  QVERIFY(H5Dflush(theirs.set) >= 0);
  std::fill(back.begin(), back.end(), T());
  QCOMPARE(h5::read_chunks(theirs.set, shape, back.data()), 0);
  QVERIFY(back == values);
}

}  // namespace

class Hdf5ChunksTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sameAsHdf5OnEveryShape() {
    const std::vector<h5::Chunked> shapes = {{{1000}, {7}, 0},      {{1024}, {256}, 0},           {{13, 17}, {5, 17}, 0},
                                             {{13, 17}, {1, 6}, 0}, {{3, 40, 40}, {1, 7, 40}, 0}, {{2, 3, 4, 5}, {2, 2, 3, 4}, 0}};
    for (size_t i = 0; i < 2 * shapes.size(); ++i) {
      h5::Chunked shape = shapes[i / 2];
      shape.deflated = i % 2 == 0;
      go_both_ways<float>(shape, H5T_NATIVE_FLOAT);
      go_both_ways<double>(shape, H5T_NATIVE_DOUBLE);
      go_both_ways<int32_t>(shape, H5T_NATIVE_INT32);
      go_both_ways<uint8_t>(shape, H5T_NATIVE_UINT8);
      if (QTest::currentTestFailed()) return;
    }
  }

  void moreChunksThanAreFilteredAtOnce() { go_both_ways<float>({{1000, 50}, {3, 50}, 0}, H5T_NATIVE_FLOAT); }

  void chunksThatDeflateGainsNothingOn() {
    h5::Chunked shape{{4096}, {1024}, 1};
    std::vector<uint8_t> noise(4096), back(4096);
    uint64_t state = 1;
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
    const DataSet theirs(shape, H5T_NATIVE_UINT8), ours(shape, H5T_NATIVE_UINT8);
    QVERIFY(H5Dwrite(theirs.set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, noise.data()) >= 0);
    QVERIFY(H5Dflush(theirs.set) >= 0);
    QCOMPARE(h5::read_chunks(theirs.set, shape, back.data()), 0);
    QVERIFY(back == noise);
    QCOMPARE(write(ours, shape, noise.data()), 0);
    std::fill(back.begin(), back.end(), 0);
    QVERIFY(H5Dread(ours.set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0);
    QVERIFY(back == noise);
  }

  /// More chunks than are read at once, of sets of several shapes.
  void manySetsAreWrittenAndCompared() {
    std::vector<h5::Chunked> shapes;
    for (hsize_t rows = 1; rows <= 12; ++rows) shapes.push_back({{rows, 10}, {1, 1 + rows % 4}, sizeof(float), rows % 3 > 0});
    std::vector<std::vector<float>> values;
    std::vector<std::unique_ptr<DataSet>> sets;
    std::vector<h5::ChunkedValues> all;
    for (const h5::Chunked& shape : shapes) {
      values.push_back(values_for<float>(shape));
      sets.push_back(std::make_unique<DataSet>(shape, H5T_NATIVE_FLOAT));
      all.push_back({sets.back()->set, shape, values.back().data(), 1});
    }
    QCOMPARE(h5::write_chunks(all), 0);
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<float> back(values[i].size());
      QVERIFY(H5Dread(sets[i]->set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0);
      QVERIFY(back == values[i]);
    }
    QCOMPARE(h5::hold_chunks(all), 1);
    for (const size_t changed : {size_t{0}, shapes.size() / 2, shapes.size() - 1}) {
      float& value = values[changed].back();
      const float before = std::exchange(value, std::nextafter(value, 1e9F));
      QCOMPARE(h5::hold_chunks(all), 0);
      value = before;
    }
    values[3][0] = -0.0F;  // the same number, other bits
    QCOMPARE(h5::hold_chunks(all), 0);
  }

  void everyChangedByteIsFound_data() {
    QTest::addColumn<bool>("deflated");
    QTest::newRow("deflated") << true;
    QTest::newRow("as they are") << false;
  }
  void everyChangedByteIsFound() {
    QFETCH(const bool, deflated);
    const h5::Chunked shape{{4, 64}, {1, 64}, sizeof(float), deflated};
    const std::vector<float> values = values_for<float>(shape);
    const DataSet data(shape, H5T_NATIVE_FLOAT);
    QCOMPARE(write(data, shape, values.data()), 0);
    const std::array<hsize_t, 2> third{2, 0};
    hsize_t size = 0;
    uint32_t skipped = 0;
    QVERIFY(H5Dget_chunk_storage_size(data.set, third.data(), &size) >= 0);
    std::vector<uint8_t> stored(size);
    QVERIFY(H5Dread_chunk(data.set, H5P_DEFAULT, third.data(), &skipped, stored.data()) >= 0);
    std::vector<float> back(values.size());
    for (uint8_t& byte : stored) {
      byte ^= 0x10;
      QVERIFY(H5Dwrite_chunk(data.set, H5P_DEFAULT, 0, third.data(), size, stored.data()) >= 0);
      QVERIFY(h5::read_chunks(data.set, shape, back.data()) < 0);
      byte ^= 0x10;
    }
    QVERIFY(H5Dwrite_chunk(data.set, H5P_DEFAULT, 0, third.data(), size, stored.data()) >= 0);
    QCOMPARE(h5::read_chunks(data.set, shape, back.data()), 0);
    QVERIFY(back == values);
  }
};

QTEST_APPLESS_MAIN(Hdf5ChunksTest)
#include "hdf5_chunks_test.moc"
