#pragma once
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"

/// Our door to HDF5: every C call is made once here, checked once, and fails with the file's and the object's name. Files that this process
/// has not just written are read by another one (hdf5_helper.h): damage or malice costs no more than that.
/// Written files have the hardened layout: latest format, fixed-length strings, everything chunked and with Fletcher32, shuffled and
/// deflated but for weights (checkpoint_file.cpp). Read files may hold nothing of variable length, no links to elsewhere, no filters that
/// are plugins and no more data than their size can carry (Budget), so that damage ends in a DataError.
namespace saccade::h5 {

/// An HDF5 identifier that closes itself.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id() = default;
  Id(hid_t id, Close closer) : id_(id), close_(closer) {}
  ~Id();
  Id(Id&& other) noexcept;
  Id& operator=(Id&& other) noexcept;
  operator hid_t() const { return id_; }
  herr_t close();

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

Id property_list(hid_t kind);
/// The library's own words for what failed last; forgets it.
std::string take_error();

using Dims = std::vector<int64_t>;

template <class T>
hid_t native_type();
template <>
inline hid_t native_type<float>() {
  return H5T_NATIVE_FLOAT;
}
template <>
inline hid_t native_type<double>() {
  return H5T_NATIVE_DOUBLE;
}
template <>
inline hid_t native_type<int32_t>() {
  return H5T_NATIVE_INT32;
}
template <>
inline hid_t native_type<int64_t>() {
  return H5T_NATIVE_INT64;
}
template <>
inline hid_t native_type<uint64_t>() {
  return H5T_NATIVE_UINT64;
}
template <>
inline hid_t native_type<uint8_t>() {
  return H5T_NATIVE_UINT8;
}

/// What may still be read of a file, which decides how much memory that takes: kLeastBudget or kMostExpansion times the file's
/// size in all, whichever is more. Chunks may have 1 MiB, as those written here have, or one element.
struct Budget {
  static constexpr int64_t kLeastBudget = int64_t{256} << 20, kMostExpansion = 256;
  explicit Budget(int64_t size) : file_size(size), left(std::max(kLeastBudget, kMostExpansion * size)) {}
  int64_t file_size, left;  ///< bytes
};

class Helper;

/// Data sets whose values are written, or compared with what is stored, when all of them are known: chunks of several side by side, where
/// each alone would wait for its slowest one. The values must live until then.
class ManySets {
 public:
  ManySets();
  ~ManySets();
  ManySets(const ManySets&) = delete;
  ManySets& operator=(const ManySets&) = delete;
  /// What write_later left. Throws DataError.
  void write();
  /// Whether everything that compare_later was given is stored, bit by bit. Throws DataError.
  bool same();

 private:
  friend class Group;
  struct State;
  std::unique_ptr<State> state_;
};

/// A group, the root included. Names may be paths: "series/train/loss"; groups on the way are made when writing.
class Group {
 public:
  Group(Id id, std::string file, std::string path, std::shared_ptr<Budget> budget, std::shared_ptr<Helper> helper = nullptr);

  Group open(const std::string& name) const;
  Group create(const std::string& name) const;
  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;
  bool is_group(const std::string& name) const;

  /// `deflate`: 0 (as they are) to 9.
  template <class T>
  void write(const std::string& name, std::span<const T> values, const Dims& dims, int deflate = 4) const {
    write_raw(name, values.data(), values.size(), native_type<T>(), dims, deflate);
  }
  template <class T>
  void write(const std::string& name, const std::vector<T>& values) const {
    write<T>(name, values, {static_cast<int64_t>(values.size())});
  }
  /// As `write`, but large data sets get their values from later.write().
  template <class T>
  void write_later(const std::string& name, std::span<const T> values, const Dims& dims, int deflate, ManySets& later) const {
    write_raw(name, values.data(), values.size(), native_type<T>(), dims, deflate, &later);
  }
  /// Of a file that this process has written: later.same() tells whether the data set holds these values.
  template <class T>
  void compare_later(const std::string& name, std::span<const T> values, ManySets& later) const {
    compare_raw(name, values.data(), values.size(), native_type<T>(), later);
  }
  void write_texts(const std::string& name, const std::vector<std::string>& texts) const;
  void write_text(const std::string& name, const std::string& text) const { write_texts(name, {text}); }
  /// A second name for an object of this file.
  void link(const std::string& name, const std::string& existing_path) const;

  Dims dims(const std::string& name) const;
  /// Integer class and size in bytes of a data set's elements, for those who keep several types.
  bool is_double(const std::string& name) const;
  template <class T>
  std::vector<T> read(const std::string& name) const {
    std::vector<T> values(static_cast<size_t>(checked_size(name, sizeof(T))));
    read_raw(name, values.data(), values.size() * sizeof(T), native_type<T>());
    return values;
  }
  /// `counts` values from `offsets` on along every dimension of a data set, in its order.
  template <class T>
  std::vector<T> read_part(const std::string& name, const Dims& offsets, const Dims& counts) const {
    std::vector<T> values(static_cast<size_t>(checked_part(name, offsets, counts, sizeof(T))));
    read_part_raw(name, {offsets, counts}, values.data(), values.size() * sizeof(T), native_type<T>());
    return values;
  }
  std::vector<std::string> read_texts(const std::string& name) const;
  std::string read_text(const std::string& name) const;

  /// Attributes of this group, or of `object` in it.
  void set_attribute(const std::string& name, const std::string& text, const std::string& object = ".") const;
  void set_attribute(const std::string& name, const std::vector<std::string>& texts, const std::string& object = ".") const;
  void set_attribute(const std::string& name, double value, const std::string& object = ".") const;
  void set_attribute(const std::string& name, int64_t value, const std::string& object = ".") const;
  std::string text_attribute(const std::string& name, const std::string& object = ".") const;
  double real_attribute(const std::string& name) const;
  int64_t integer_attribute(const std::string& name) const;

  const std::string& file() const { return file_; }
  /// DataError "FILE: WHAT (/path/name)".
  [[noreturn]] void fail(const std::string& what, const std::string& name) const;

 private:
  struct Part {
    Dims offsets, counts;
  };
  int64_t checked_size(const std::string& name, size_t element) const;
  int64_t checked_part(const std::string& name, const Dims& offsets, const Dims& counts, size_t element) const;
  void read_part_raw(const std::string& name, const Part& part, void* values, size_t bytes, hid_t type) const;
  void require_numbers(const Id& set, const std::string& name, hid_t type) const;
  void write_raw(const std::string& name, const void* values, size_t count, hid_t type, const Dims& dims, int deflate,
                 ManySets* later = nullptr) const;
  void compare_raw(const std::string& name, const void* values, size_t count, hid_t type, ManySets& later) const;
  void read_raw(const std::string& name, void* values, size_t bytes, hid_t type) const;
  std::vector<std::string> ask(const std::string& what, const std::string& name, const std::string& more = {}) const;
  void read_scalar_attribute(const std::string& name, hid_t type, void* value) const;
  void write_attribute(const std::string& object, const std::string& name, hid_t type, hid_t space, const void* value) const;
  Id data_set(const std::string& name) const;
  void check_storage(const Id& set, const Id& layout, const std::string& name) const;
  void require_hard_links(const std::string& name) const;
  template <class R>
  R checked(R result, const std::string& what, const std::string& name) const {
    if (result < 0) fail(what, name);
    return result;
  }

  Id id_;
  std::string file_, path_;
  std::shared_ptr<Budget> budget_;  ///< none for a file of this process: being written, or read back
  std::shared_ptr<Helper> helper_;  ///< reads for us where there is one
};

/// A new file of a run, written front to back and closed by `close`, which reports what a destructor could not.
class Writer {
 public:
  explicit Writer(const std::filesystem::path& path);
  const Group& root() const { return root_; }
  /// Lets the disk begin with what has been written, so that the wait for it at the end is shorter. A hint: nothing depends on it.
  void begin_write_back() const;
  void close();

 private:
  Descriptor at_;
  Id file_;
  Group root_;
};

/// Whether a file may be damaged or hostile, or is one that this process has just written and reads back.
enum class Origin { anyone, this_process };

/// A file of a run (open_run_file), read only; takes no lock. Throws DataError when it is no HDF5 file or damaged.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path, Origin origin = Origin::anyone);
  /// In the helper: anyone's file that it was given. `name` is for messages.
  Reader(Descriptor file, const std::string& name);
  const Group& root() const { return root_; }

 private:
  Descriptor at_;
  Id file_;
  Group root_;
};

}  // namespace saccade::h5
