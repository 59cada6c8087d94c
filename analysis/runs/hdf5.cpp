#include "analysis/runs/hdf5.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "analysis/runs/hdf5_helper.h"

namespace saccade::h5 {
namespace {

void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    H5dont_atexit();  // its exit handler crashes after a failed write (measured: 492 of 492)
    H5open();
    unsigned folders = 0;  // a file names the filters it needs: none of them is a reason to load a library (HDF5_PLUGIN_PATH)
    if (H5PLset_loading_state(0) < 0) throw Error("HDF5 cannot be kept from loading plugins");
    while (H5PLsize(&folders) >= 0 && folders > 0 && H5PLremove(folders - 1) >= 0) continue;
    hbool_t safe = 0;  // the window reads captures and results in different threads
    if (H5is_library_threadsafe(&safe) < 0 || !safe) throw Error("this HDF5 library was built without thread safety");
  });
  thread_local const herr_t quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // error stacks are kept per thread
  if (quiet < 0) throw Error("HDF5 cannot be started");
}

herr_t keep_innermost(unsigned, const H5E_error2_t* error, void* text) {
  std::string& reason = *static_cast<std::string*>(text) = error->desc ? error->desc : "";
  if (const size_t detail = reason.find(": time = "); detail != std::string::npos) {  // "…, error message = 'No space left', buf = …"
    const size_t begin = reason.find("error message = '"), end = reason.find('\'', begin + 17);
    const std::string cause = begin < end && end != std::string::npos ? ": " + reason.substr(begin + 17, end - begin - 17) : "";
    reason = reason.substr(0, detail) + cause;
  }
  return 0;
}

[[noreturn]] void fail_file(const std::filesystem::path& path, const std::string& what) {
  const std::string reason = take_error();
  throw DataError(path.string() + ": " + what + (reason.empty() ? "" : ": " + reason));
}

Id latest_format() {
  Id list = property_list(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_file_locking(list, false, true);
  return list;
}

/// HDF5 opens files by name, and follows links: it gets the name of what was opened without following any.
std::string name_of(const Descriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

Id create_file(const std::filesystem::path& path, const Descriptor& at) {
  start_library();
  Id file(H5Fcreate(name_of(at).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, latest_format()), H5Fclose);
  if (file < 0) fail_file(path, "cannot create");
  return file;
}

Id open_file(const std::filesystem::path& path, const Descriptor& at) {
  start_library();
  Id access = property_list(H5P_FILE_ACCESS);
  H5Pset_file_locking(access, false, true);
  H5Pset_metadata_read_attempts(access, 1);
  Id file(H5Fopen(name_of(at).c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (file < 0) fail_file(path, "not a readable HDF5 file");
  return file;
}

int64_t size_of(const Descriptor& file) {
  struct stat state {};
  return ::fstat(file.get(), &state) == 0 ? std::max<int64_t>(1, state.st_size) : 1;
}

Id open_root(const Id& file, const std::filesystem::path& path) {
  Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  if (root < 0) fail_file(path, "no root group");
  return root;
}

}  // namespace

std::string take_error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &text);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

Id property_list(hid_t kind) { return {H5Pcreate(kind), H5Pclose}; }

Id::~Id() { close(); }
Id::Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
Id& Id::operator=(Id&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}
herr_t Id::close() {
  const hid_t id = std::exchange(id_, -1);
  return id >= 0 ? close_(id) : 0;
}

Writer::Writer(const std::filesystem::path& path)
    : at_(open_run_file(path, O_RDWR | O_CREAT)),
      file_(create_file(path, at_)),
      root_(open_root(file_, path), path.string(), "/", nullptr) {}

void Writer::begin_write_back() const { ::sync_file_range(at_.get(), 0, 0, SYNC_FILE_RANGE_WRITE); }

void Writer::close() {
  root_ = Group(Id(), root_.file(), "/", nullptr);
  if (H5Fflush(file_, H5F_SCOPE_GLOBAL) < 0 || file_.close() < 0) fail_file(root_.file(), "cannot finish writing");
  begin_write_back();
}

Reader::Reader(const std::filesystem::path& path, Origin origin)
    : at_(open_run_file(path, O_RDONLY)), root_(Id(), path.string(), "/", nullptr) {
  start_library();  // its names of types are used here too
  if (origin == Origin::anyone) {
    root_ = Group(Id(), path.string(), "/", std::make_shared<Budget>(size_of(at_)), std::make_shared<Helper>(at_, path.string()));
  } else {
    file_ = open_file(path, at_);
    root_ = Group(open_root(file_, path), path.string(), "/", nullptr);
  }
}

Reader::Reader(Descriptor file, const std::string& name)
    : at_(std::move(file)), file_(open_file(name, at_)), root_(open_root(file_, name), name, "/", std::make_shared<Budget>(size_of(at_))) {}

}  // namespace saccade::h5
