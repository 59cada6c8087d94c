#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "analysis/runs/hdf5.h"
#include "analysis/runs/hdf5_chunks.h"
#include "analysis/runs/hdf5_helper.h"

namespace saccade::h5 {
namespace {

/// Fixed-length UTF-8, padded with zeros.
Id text_type(size_t length) {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<size_t>(1, length));
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

struct PackedTexts {
  size_t length = 1;
  std::string bytes;
};
PackedTexts pack(const std::vector<std::string>& texts) {
  PackedTexts packed;
  for (const auto& text : texts) packed.length = std::max(packed.length, text.size());
  packed.bytes.assign(packed.length * texts.size(), '\0');
  for (size_t i = 0; i < texts.size(); ++i) texts[i].copy(packed.bytes.data() + i * packed.length, packed.length);
  return packed;
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->push_back(name);
  return 0;
}

constexpr hsize_t kLargestChunk = hsize_t{1} << 20;  // bytes; one element may be larger
constexpr hsize_t kLargeChunk = hsize_t{1} << 16;    // likewise: from here on a single one is worth it to be left to other threads

/// Chunks of kLargestChunk at most, split along the first dimensions.
std::vector<hsize_t> chunk_dims(const std::vector<hsize_t>& dims, size_t element) {
  std::vector<hsize_t> chunk = dims;
  const auto bytes = [&] {
    hsize_t product = element;
    for (const hsize_t d : chunk) product *= d;
    return product;
  };
  for (size_t axis = 0; axis < chunk.size() && bytes() > kLargestChunk;) {
    if (chunk[axis] == 1)
      ++axis;
    else
      chunk[axis] = (chunk[axis] + 1) / 2;
  }
  return chunk;
}

/// Whether several threads are to filter it, with others or alone: HDF5 filters in one.
bool is_large(const Chunked& shape) {
  if (shape.chunk != shape.extent) return true;
  hsize_t bytes = shape.element;
  for (const hsize_t d : shape.extent) bytes *= d;
  return !shape.deflated && bytes >= kLargeChunk;
}

/// What the data set is, where it has the filters and the type that are written here.
std::optional<Chunked> written_here(const Id& set, hid_t type) {
  const Id layout(H5Dget_create_plist(set), H5Pclose), stored(H5Dget_type(set), H5Tclose), space(H5Dget_space(set), H5Sclose);
  if (H5Tequal(stored, type) <= 0 || H5Pget_layout(layout) != H5D_CHUNKED) return {};
  std::vector<H5Z_filter_t> filters;
  for (int i = 0; i < H5Pget_nfilters(layout); ++i) {
    unsigned flags = 0;
    size_t values = 0;
    filters.push_back(H5Pget_filter2(layout, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr));
  }
  Chunked shape;
  shape.deflated = filters == std::vector<H5Z_filter_t>{H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
  if (!shape.deflated && filters != std::vector<H5Z_filter_t>{H5Z_FILTER_FLETCHER32}) return {};
  shape.extent.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  shape.chunk.resize(shape.extent.size());
  H5Sget_simple_extent_dims(space, shape.extent.data(), nullptr);
  H5Pget_chunk(layout, static_cast<int>(shape.chunk.size()), shape.chunk.data());
  shape.element = H5Tget_size(stored);
  return shape;
}

}  // namespace

/// Data sets that are open, and what of a group an error names.
struct ManySets::State {
  std::vector<ChunkedValues> sets;
  std::vector<Id> open;
  std::string file, first;
  bool same = true;

  void add(const Group& group, Id set, const std::string& name, const ChunkedValues& values) {
    if (sets.empty()) file = group.file(), first = name;
    sets.push_back(values);
    open.push_back(std::move(set));
  }
  void forget() { sets.clear(), open.clear(); }
  int checked(int result, const std::string& what) const {
    if (result >= 0) return result;
    const std::string reason = take_error();
    throw DataError(file + ": " + what + (reason.empty() ? "" : ", " + reason) + " (" + first + " and what follows)");
  }
};

Group::Group(Id id, std::string file, std::string path, std::shared_ptr<Budget> budget, std::shared_ptr<Helper> helper)
    : id_(std::move(id)), file_(std::move(file)), path_(std::move(path)), budget_(std::move(budget)), helper_(std::move(helper)) {}

std::vector<std::string> Group::ask(const std::string& what, const std::string& name, const std::string& more) const {
  return helper_->ask({what, path_, name, more});
}

namespace {

const std::string& only(const std::vector<std::string>& answer) {
  if (answer.size() != 1) throw DataError("the process that reads HDF5 gave " + std::to_string(answer.size()) + " answers for one");
  return answer.front();
}
bool is_yes(const std::vector<std::string>& answer) { return only(answer) == "1"; }

template <class T>
T number_from(const std::vector<std::string>& answer) {
  T value{};
  if (only(answer).size() != sizeof value) throw DataError("the process that reads HDF5 gave no number");
  std::memcpy(&value, answer.front().data(), sizeof value);
  return value;
}

/// As the helper calls it.
std::string name_of(hid_t type) {
  const char kind = H5Tget_class(type) == H5T_FLOAT ? 'f' : H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
  return kind + std::to_string(H5Tget_size(type));
}

}  // namespace

void Group::fail(const std::string& what, const std::string& name) const {
  const std::string reason = helper_ ? "" : take_error();
  throw DataError(file_ + ": " + what + " (" + path_ + (name == "." ? "" : name) + ")" + (reason.empty() ? "" : ": " + reason));
}

void Group::require_hard_links(const std::string& name) const {
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string part = name.substr(0, end);
    H5L_info_t info{};
    if (H5Lexists(id_, part.c_str(), H5P_DEFAULT) <= 0) fail("missing", part);
    checked(H5Lget_info(id_, part.c_str(), &info, H5P_DEFAULT), "unreadable link", part);
    if (info.type != H5L_TYPE_HARD) fail("a link to elsewhere is not followed", part);
  }
}

Group Group::open(const std::string& name) const {
  if (helper_) {
    ask("open", name);
    return {Id(), file_, path_ + name + "/", budget_, helper_};
  }
  if (name == ".") return {Id(checked(H5Gopen2(id_, ".", H5P_DEFAULT), "unreadable group", name), H5Gclose), file_, path_, budget_};
  require_hard_links(name);
  Id group(checked(H5Gopen2(id_, name.c_str(), H5P_DEFAULT), "unreadable group", name), H5Gclose);
  return {std::move(group), file_, path_ + name + "/", budget_};
}

Group Group::create(const std::string& name) const {
  const Id on_the_way = property_list(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(on_the_way, 1);
  Id group(checked(H5Gcreate2(id_, name.c_str(), on_the_way, H5P_DEFAULT, H5P_DEFAULT), "cannot create group", name), H5Gclose);
  return {std::move(group), file_, path_ + name + "/", budget_};
}

bool Group::contains(const std::string& name) const {
  return helper_ ? is_yes(ask("contains", name)) : H5Lexists(id_, name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> Group::names() const {
  if (helper_) return ask("names", ".");
  std::vector<std::string> names;
  checked(H5Literate(id_, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &names), "unreadable group", ".");
  return names;
}

bool Group::is_group(const std::string& name) const {
  if (helper_) return is_yes(ask("is_group", name));
  require_hard_links(name);
  const Id object(checked(H5Oopen(id_, name.c_str(), H5P_DEFAULT), "unreadable object", name), H5Oclose);
  return H5Iget_type(object) == H5I_GROUP;
}

void Group::write_raw(const std::string& name, const void* values, size_t count, hid_t type, const Dims& dims, int deflate,
                      ManySets* later) const {
  const std::vector<hsize_t> extent(dims.begin(), dims.end());
  size_t product = 1;
  for (const hsize_t d : extent) product *= d;
  if (product != count)
    throw Error("[hdf5] " + name + " has " + std::to_string(count) + " values for " + std::to_string(product) + " places");
  const Id space(checked(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), "bad shape", name), H5Sclose);
  const Id layout = property_list(H5P_DATASET_CREATE), on_the_way = property_list(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(on_the_way, 1);
  Chunked shape{extent, {}, H5Tget_size(type), deflate > 0};
  if (count > 0) {
    shape.chunk = chunk_dims(extent, shape.element);
    checked(H5Pset_chunk(layout, static_cast<int>(shape.chunk.size()), shape.chunk.data()), "bad chunks", name);
    if (deflate > 0) {
      checked(H5Pset_shuffle(layout), "no shuffle filter", name);
      checked(H5Pset_deflate(layout, static_cast<unsigned>(deflate)), "no deflate filter", name);
    }
    checked(H5Pset_fletcher32(layout), "no Fletcher32 filter", name);
  }
  Id set(checked(H5Dcreate2(id_, name.c_str(), type, space, on_the_way, layout, H5P_DEFAULT), "cannot create", name), H5Dclose);
  if (count > 0 && is_large(shape)) {
    const ChunkedValues chunked{set, std::move(shape), values, deflate};
    if (later) return later->state_->add(*this, std::move(set), name, chunked);
    checked(write_chunks({&chunked, 1}), "cannot write", name);
  } else if (count > 0) {
    checked(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "cannot write", name);
  }
  checked(set.close(), "cannot write", name);
}

void Group::compare_raw(const std::string& name, const void* values, size_t count, hid_t type, ManySets& later) const {
  const size_t bytes = count * H5Tget_size(type);
  if (checked_size(name, 1) != static_cast<int64_t>(count)) {
    later.state_->same = false;
    return;
  }
  Id set = data_set(name);
  require_numbers(set, name, type);
  if (std::optional<Chunked> shape = written_here(set, type); shape && is_large(*shape) && !budget_ && !helper_) {
    const ChunkedValues chunked{set, std::move(*shape), values, 0};
    return later.state_->add(*this, std::move(set), name, chunked);
  }
  std::vector<char> stored(bytes);
  read_raw(name, stored.data(), bytes, type);
  if (bytes > 0 && std::memcmp(stored.data(), values, bytes) != 0) later.state_->same = false;
}

ManySets::ManySets() : state_(std::make_unique<State>()) {}
ManySets::~ManySets() = default;

void ManySets::write() {
  State& s = *state_;
  if (s.sets.empty()) return;
  s.checked(write_chunks(s.sets), "cannot write");
  for (Id& set : s.open) s.checked(set.close(), "cannot write");
  s.forget();
}

bool ManySets::same() {
  State& s = *state_;
  if (!s.sets.empty() && s.checked(hold_chunks(s.sets), "unreadable data") == 0) s.same = false;
  s.forget();
  return s.same;
}

void Group::write_texts(const std::string& name, const std::vector<std::string>& texts) const {
  const PackedTexts packed = pack(texts);
  write_raw(name, packed.bytes.data(), texts.size(), text_type(packed.length), {static_cast<int64_t>(texts.size())}, 4);
}

void Group::link(const std::string& name, const std::string& existing_path) const {
  checked(H5Lcreate_hard(id_, existing_path.c_str(), id_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), "cannot link", name);
}

Id Group::data_set(const std::string& name) const {
  require_hard_links(name);
  Id set(checked(H5Dopen2(id_, name.c_str(), H5P_DEFAULT), "unreadable data", name), H5Dclose);
  const Id layout(checked(H5Dget_create_plist(set), "unreadable layout", name), H5Pclose);
  if (H5Pget_layout(layout) == H5D_VIRTUAL || H5Pget_external_count(layout) > 0) fail("data outside the file is not read", name);
  if (budget_) check_storage(set, layout, name);
  return set;
}

Dims Group::dims(const std::string& name) const {
  if (helper_) {
    Dims dims;
    for (const std::string& text : ask("dims", name)) {
      int64_t& d = dims.emplace_back(-1);
      if (std::from_chars(text.data(), text.data() + text.size(), d).ec != std::errc()) fail("unreadable shape", name);
    }
    return dims;
  }
  const Id set = data_set(name);
  const Id space(checked(H5Dget_space(set), "unreadable shape", name), H5Sclose);
  std::vector<hsize_t> extent(static_cast<size_t>(checked(H5Sget_simple_extent_ndims(space), "unreadable shape", name)));
  checked(H5Sget_simple_extent_dims(space, extent.data(), nullptr), "unreadable shape", name);
  return {extent.begin(), extent.end()};
}

bool Group::is_double(const std::string& name) const {
  if (helper_) return is_yes(ask("is_double", name));
  const Id set = data_set(name);
  const Id type(checked(H5Dget_type(set), "unreadable type", name), H5Tclose);
  return H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == 8;
}

int64_t Group::checked_size(const std::string& name, size_t element) const {
  const auto most = static_cast<double>(budget_ ? budget_->left : std::numeric_limits<int64_t>::max());
  double bytes = static_cast<double>(element);
  int64_t size = 1;
  for (const int64_t d : dims(name)) {
    bytes *= static_cast<double>(d);
    if (d < 0 || bytes > most) fail("more data than a file of this size is read for", name);
    size *= d;
  }
  if (budget_) budget_->left -= static_cast<int64_t>(bytes);
  return size;
}

/// What is in a data set's chunk is decompressed as a whole, so its size counts, whatever the shape says.
void Group::check_storage(const Id& set, const Id& layout, const std::string& name) const {
  const Id type(checked(H5Dget_type(set), "unreadable type", name), H5Tclose);
  const size_t element = H5Tget_size(type);
  if (H5Pget_layout(layout) != H5D_CHUNKED) {
    if (H5Dget_storage_size(set) > static_cast<hsize_t>(budget_->file_size)) fail("a shape larger than the file can hold", name);
    return;
  }
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const int rank = checked(H5Pget_chunk(layout, H5S_MAX_RANK, chunk.data()), "unreadable chunks", name);
  double bytes = static_cast<double>(element);
  for (int i = 0; i < rank; ++i) bytes *= static_cast<double>(chunk[static_cast<size_t>(i)]);
  if (bytes > static_cast<double>(std::max(kLargestChunk, static_cast<hsize_t>(element))))
    fail("chunks larger than any that is written", name);
}

void Group::read_raw(const std::string& name, void* values, size_t bytes, hid_t type) const {
  if (helper_) return helper_->ask({"read", path_, name, name_of(type)}, values, bytes);
  const Id set = data_set(name);
  require_numbers(set, name, type);
  if (!budget_)  // written by this process, so that there is nothing to guard against
    if (const std::optional<Chunked> shape = written_here(set, type); shape && is_large(*shape)) {
      checked(read_chunks(set, *shape, values), "unreadable data", name);
      return;
    }
  checked(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "unreadable data", name);
}

void Group::require_numbers(const Id& set, const std::string& name, hid_t type) const {
  const Id stored(checked(H5Dget_type(set), "unreadable type", name), H5Tclose);
  const bool wants_float = H5Tget_class(type) == H5T_FLOAT;
  if (H5Tget_class(stored) != (wants_float ? H5T_FLOAT : H5T_INTEGER)) fail(wants_float ? "not real numbers" : "not integers", name);
}

int64_t Group::checked_part(const std::string& name, const Dims& offsets, const Dims& counts, size_t element) const {
  const Dims all = dims(name);
  if (offsets.size() != all.size() || counts.size() != all.size()) fail("a part of another number of dimensions is asked for", name);
  const auto most = static_cast<double>(budget_ ? budget_->left : std::numeric_limits<int64_t>::max());
  double bytes = static_cast<double>(element);
  int64_t size = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    if (offsets[i] < 0 || counts[i] < 0 || offsets[i] > all[i] || counts[i] > all[i] - offsets[i]) fail("a part beyond its end", name);
    bytes *= static_cast<double>(counts[i]);
    if (bytes > most) fail("more data than a file of this size is read for", name);
    size *= counts[i];
  }
  if (budget_) budget_->left -= static_cast<int64_t>(bytes);
  return size;
}

void Group::read_part_raw(const std::string& name, const Part& part, void* values, size_t bytes, hid_t type) const {
  if (helper_) {
    std::vector<std::string> request{"read_part", path_, name, name_of(type)};
    for (size_t i = 0; i < part.offsets.size(); ++i)
      request.push_back(std::to_string(part.offsets[i])), request.push_back(std::to_string(part.counts[i]));
    return helper_->ask(request, values, bytes);
  }
  if (bytes == 0) return;
  const Id set = data_set(name);
  require_numbers(set, name, type);
  const std::vector<hsize_t> from(part.offsets.begin(), part.offsets.end()), count(part.counts.begin(), part.counts.end());
  const Id space(checked(H5Dget_space(set), "unreadable shape", name), H5Sclose);
  checked(H5Sselect_hyperslab(space, H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr), "unreadable shape", name);
  const Id memory(checked(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "bad shape", name), H5Sclose);
  checked(H5Dread(set, type, memory, space, H5P_DEFAULT, values), "unreadable data", name);
}

std::vector<std::string> Group::read_texts(const std::string& name) const {
  if (helper_) return ask("read_texts", name);
  const Id set = data_set(name);
  const Id stored(checked(H5Dget_type(set), "unreadable type", name), H5Tclose);
  if (H5Tget_class(stored) != H5T_STRING || H5Tis_variable_str(stored) > 0) fail("not fixed-length text", name);
  const size_t length = H5Tget_size(stored), count = static_cast<size_t>(checked_size(name, length));
  std::string bytes(length * count, '\0');
  checked(H5Dread(set, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), "unreadable data", name);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    std::string text = bytes.substr(i * length, length);
    text.resize(text.find_last_not_of('\0') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string Group::read_text(const std::string& name) const {
  const auto texts = read_texts(name);
  if (texts.size() != 1) fail("not one text", name);
  return texts.front();
}

void Group::write_attribute(const std::string& object, const std::string& name, hid_t type, hid_t space, const void* value) const {
  const Id attribute(checked(H5Acreate_by_name(id_, object.c_str(), name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                             "cannot create attribute " + name, object),
                     H5Aclose);
  checked(H5Awrite(attribute, type, value), "cannot write attribute " + name, object);
}

void Group::set_attribute(const std::string& name, const std::string& text, const std::string& object) const {
  const Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const PackedTexts packed = pack({text});
  write_attribute(object, name, text_type(packed.length), space, packed.bytes.data());
}
void Group::set_attribute(const std::string& name, const std::vector<std::string>& texts, const std::string& object) const {
  const hsize_t count = texts.size();
  const Id space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const PackedTexts packed = pack(texts);
  write_attribute(object, name, text_type(packed.length), space, packed.bytes.data());
}
void Group::set_attribute(const std::string& name, double value, const std::string& object) const {
  const Id space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(object, name, H5T_NATIVE_DOUBLE, space, &value);
}
void Group::set_attribute(const std::string& name, int64_t value, const std::string& object) const {
  const Id space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(object, name, H5T_NATIVE_INT64, space, &value);
}

std::string Group::text_attribute(const std::string& name, const std::string& object) const {
  if (helper_) return only(ask("text_attribute", name, object));
  const Id attribute(checked(H5Aopen_by_name(id_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), "no attribute " + name, object),
                     H5Aclose);
  const Id type(checked(H5Aget_type(attribute), "unreadable attribute " + name, object), H5Tclose);
  const Id space(checked(H5Aget_space(attribute), "unreadable attribute " + name, object), H5Sclose);
  const size_t length = H5Tget_size(type);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0 || H5Sget_simple_extent_npoints(space) != 1 || length > (1 << 20))
    fail("attribute " + name + " is not one fixed-length text", object);
  std::string text(length, '\0');
  checked(H5Aread(attribute, type, text.data()), "unreadable attribute " + name, object);
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

void Group::read_scalar_attribute(const std::string& name, hid_t type, void* value) const {
  const Id attribute(checked(H5Aopen(id_, name.c_str(), H5P_DEFAULT), "no attribute " + name, "."), H5Aclose);
  const Id stored(checked(H5Aget_type(attribute), "unreadable attribute " + name, "."), H5Tclose);
  const Id space(checked(H5Aget_space(attribute), "unreadable attribute " + name, "."), H5Sclose);
  if (H5Tget_class(stored) != H5Tget_class(type) || H5Sget_simple_extent_npoints(space) != 1)
    fail("attribute " + name + " is not one number", ".");
  checked(H5Aread(attribute, type, value), "unreadable attribute " + name, ".");
}
double Group::real_attribute(const std::string& name) const {
  if (helper_) return number_from<double>(ask("real_attribute", name));
  double value = 0;
  read_scalar_attribute(name, H5T_NATIVE_DOUBLE, &value);
  return value;
}
int64_t Group::integer_attribute(const std::string& name) const {
  if (helper_) return number_from<int64_t>(ask("integer_attribute", name));
  int64_t value = 0;
  read_scalar_attribute(name, H5T_NATIVE_INT64, &value);
  return value;
}

}  // namespace saccade::h5
