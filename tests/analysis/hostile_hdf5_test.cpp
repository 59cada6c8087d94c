#include <fcntl.h>
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "analysis/runs/capture_file.h"
#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/hdf5.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Files that would take memory, time or foreign code are refused before any value is read.
class HostileHdf5Test : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    // Before the first call of HDF5, as for somebody who has plugins: any library may lie there.
    fs::create_directory(path("plugins"));
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (const size_t at = line.find('/'); line.find("libz.so") != std::string::npos && at != std::string::npos) {
        fs::copy_file(fs::canonical(line.substr(at)), path("plugins") / "libfilter.so", fs::copy_options::skip_existing);
        break;
      }
    QVERIFY(fs::exists(path("plugins") / "libfilter.so"));
    qputenv("HDF5_PLUGIN_PATH", path("plugins").c_str());
    h5::Writer first(path("first.h5"));
    first.close();
  }

  void noLibraryIsLoadedForAFilter() {
    constexpr H5Z_filter_t kLzf = 32000;
    const hsize_t size = 32;
    const std::string bytes(32, 'x');
    {
      const h5::Id file(H5Fcreate(path("lzf.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
      const h5::Id space(H5Screate_simple(1, &size, nullptr), H5Sclose), layout = h5::property_list(H5P_DATASET_CREATE);
      H5Pset_chunk(layout, 1, &size);
      QVERIFY(H5Pset_filter(layout, kLzf, H5Z_FLAG_OPTIONAL, 0, nullptr) >= 0);
      const h5::Id set(H5Dcreate2(file, "values", H5T_NATIVE_UINT8, space, H5P_DEFAULT, layout, H5P_DEFAULT), H5Dclose);
      QVERIFY(set >= 0);
      const hsize_t offset = 0;
      QVERIFY(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &offset, bytes.size(), bytes.data()) >= 0);
    }
    const h5::Reader file(open_run_file(path("lzf.h5"), O_RDONLY), "lzf.h5");  // in this process, whose libraries can be seen
    QVERIFY(!message_of<DataError>([&] { file.root().read<uint8_t>("values"); }).isEmpty());
    std::ifstream maps("/proc/self/maps");
    const std::string all((std::istreambuf_iterator<char>(maps)), {});
    QVERIFY(all.find("libfilter.so") == std::string::npos);
  }

  void aChunkDecidesNoMemory() {
    write("chunk.h5", {32}, {hsize_t{90} << 20});
    const h5::Reader file(path("chunk.h5"));
    const QString message = message_of<DataError>([&] { file.root().read<float>("values"); });
    QVERIFY2(message.contains("chunks larger"), qPrintable(message));
  }

  /// Values that were never written take no room in a file, and all the memory that the shape says.
  void aShapeDecidesNoMemory() {
    write("shape.h5", {hsize_t{1} << 28}, {hsize_t{1} << 18});  // 1 GiB
    const h5::Reader file(path("shape.h5"));
    const QString message = message_of<DataError>([&] { file.root().read<float>("values"); });
    QVERIFY2(message.contains("more data than"), qPrintable(message));
  }

  /// The limit is for the file, not for each of its data sets.
  void manySetsDecideNoMemory() {
    write("many.h5", {hsize_t{25} << 20}, {hsize_t{1} << 18});  // 100 MiB each time it is read
    const h5::Reader file(path("many.h5"));
    QCOMPARE(file.root().read<float>("values").size(), size_t{25} << 20);
    QCOMPARE(file.root().read<float>("values").size(), size_t{25} << 20);
    QVERIFY(message_of<DataError>([&] { file.root().read<float>("values"); }).contains("more data than"));
  }

  /// What this process writes it reads back whatever it compresses to.
  void whatIsWrittenIsReadBack() {
    const std::vector<float> zeros(size_t{80} << 20);
    h5::Writer writer(path("zeros.h5"));
    writer.root().write("values", zeros);
    writer.close();
    const h5::Reader own(path("zeros.h5"), h5::Origin::this_process), foreign(path("zeros.h5"));
    QVERIFY(own.root().read<float>("values") == zeros);
    QVERIFY(message_of<DataError>([&] { foreign.root().read<float>("values"); }).contains("more data than"));
  }

  void aPipeIsNotWaitedFor() {
    QCOMPARE(::mkfifo(path("step-12.h5").c_str(), 0600), 0);
    for (const auto& read :
         std::vector<std::function<void()>>{[&] { read_captures(path("step-12.h5")); }, [&] { read_checkpoint(path("step-12.h5")); },
                                            [&] { read_text(path("step-12.h5")); }})
      QVERIFY(message_of<DataError>(read).contains("is no regular file"));
    QVERIFY(message_of<DataError>([&] { read_captures(path("plugins")); }).contains("is no regular file"));
  }

 private:
  fs::path path(const char* name) const { return fs::path(folder_.path().toStdString()) / name; }

  /// A data set "values" of floats of which 32 at most are written.
  void write(const char* name, std::vector<hsize_t> dims, std::vector<hsize_t> chunk) const {
    const h5::Id file(H5Fcreate(path(name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const hsize_t any = H5S_UNLIMITED;
    const h5::Id space(H5Screate_simple(1, dims.data(), &any), H5Sclose), layout = h5::property_list(H5P_DATASET_CREATE);
    H5Pset_chunk(layout, 1, chunk.data());
    H5Pset_deflate(layout, 4);
    const h5::Id set(H5Dcreate2(file, "values", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, layout, H5P_DEFAULT), H5Dclose);
    QVERIFY(set >= 0);
  }

  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::HostileHdf5Test)
#include "hostile_hdf5_test.moc"
