#include "tests/support/golden_file.h"

#include <hdf5.h>

#include <filesystem>
#include <stdexcept>

namespace saccade::test {
namespace {

struct Handle {
  hid_t id;
  herr_t (*close)(hid_t);
  Handle(hid_t i, herr_t (*c)(hid_t), const std::string& what) : id(i), close(c) {
    if (id < 0) throw std::runtime_error("cannot read " + what);
  }
  ~Handle() { close(id); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id; }
};

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->push_back(name);
  return 0;
}

std::vector<std::string> children(hid_t group) {
  std::vector<std::string> names;
  H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &names);
  return names;
}

Array read_array(hid_t group, const std::string& name) {
  Handle set(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, name);
  Handle space(H5Dget_space(set), H5Sclose, name), type(H5Dget_type(set), H5Tclose, name);
  std::vector<hsize_t> dims(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  Array array;
  for (hsize_t d : dims) array.shape.push_back(static_cast<int64_t>(d));
  if (dims.empty()) array.shape = {1};
  array.integer = H5Tget_class(type) == H5T_INTEGER;
  array.values.resize(static_cast<size_t>(array.shape.size()));
  if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data()) < 0)
    throw std::runtime_error("cannot read " + name);
  return array;
}

void read_folder(hid_t group, const char* folder, Arrays& into) {
  if (H5Lexists(group, folder, H5P_DEFAULT) <= 0) return;
  Handle sub(H5Gopen2(group, folder, H5P_DEFAULT), H5Gclose, folder);
  for (const std::string& name : children(sub)) into[name] = read_array(sub, name);
}

herr_t collect_attribute(hid_t object, const char* name, const H5A_info_t*, void* out) {
  auto& json = *static_cast<nlohmann::json*>(out);
  Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, name), type(H5Aget_type(attribute), H5Tclose, name);
  Handle space(H5Aget_space(attribute), H5Sclose, name);
  const H5T_class_t kind = H5Tget_class(type);
  if (H5Sget_simple_extent_npoints(space) != 1) return 0;
  if (kind == H5T_STRING && H5Tis_variable_str(type)) {
    char* text = nullptr;
    H5Aread(attribute, type, &text);
    json[name] = std::string(text);
    H5free_memory(text);
  } else if (kind == H5T_STRING) {
    std::string text(H5Tget_size(type), '\0');
    H5Aread(attribute, type, text.data());
    json[name] = std::string(text.c_str());
  } else if (kind == H5T_FLOAT) {
    double value = 0;
    H5Aread(attribute, H5T_NATIVE_DOUBLE, &value);
    json[name] = value;
  } else if (kind == H5T_INTEGER) {
    int64_t value = 0;
    H5Aread(attribute, H5T_NATIVE_INT64, &value);
    json[name] = value;
  } else if (kind == H5T_ENUM) {  // booleans as h5py writes them
    int8_t value = 0;
    H5Aread(attribute, type, &value);
    json[name] = static_cast<int64_t>(value);
  }
  return 0;
}

void read_case(hid_t group, GoldenCase& c) {
  read_folder(group, "inputs", c.inputs);
  for (const auto& [input, array] : c.inputs)
    if (array.shape.rank() == 1 && !array.integer) c.parameters.insert(input);
  Arrays parameters;
  read_folder(group, "params", parameters);
  for (const auto& [parameter, array] : parameters) c.parameters.insert(parameter);
  c.inputs.merge(parameters);
  read_folder(group, "outputs", c.outputs);
  read_folder(group, "grad_outputs", c.grad_outputs);
  read_folder(group, "grads", c.grads);
  if (c.attributes.contains("loss")) c.outputs["loss"] = Array{{1}, {c.attributes.at("loss").get<double>()}, false};
}

/// A case; or, in a group without folders for its parts, its datasets as outputs, and cases in the groups below ("a/b").
void read_group(hid_t group, const std::string& file, const std::string& name, std::vector<GoldenCase>& cases) {
  GoldenCase c;
  c.file = file;
  c.name = name;
  c.attributes = nlohmann::json::object();
  H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_attribute, &c.attributes);
  c.op = c.attributes.value("op", "");
  if (H5Lexists(group, "outputs", H5P_DEFAULT) > 0) {
    read_case(group, c);
  } else {
    for (const std::string& child : children(group)) {
      Handle object(H5Oopen(group, child.c_str(), H5P_DEFAULT), H5Oclose, child);
      if (H5Iget_type(object) == H5I_GROUP)
        read_group(object, file, name + "/" + child, cases);
      else
        c.outputs[child] = read_array(group, child);
    }
    if (c.outputs.empty()) return;
  }
  cases.push_back(std::move(c));
}

}  // namespace

std::vector<GoldenCase> read_golden_file(const std::string& path) {
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, path);
  std::vector<GoldenCase> cases;
  for (const std::string& name : children(file)) {
    Handle group(H5Gopen2(file, name.c_str(), H5P_DEFAULT), H5Gclose, name);
    read_group(group, std::filesystem::path(path).stem(), name, cases);
  }
  return cases;
}

std::map<std::string, GoldenRunner>& golden_runners() {
  static std::map<std::string, GoldenRunner> runners;
  return runners;
}

const GoldenRunner* find_golden_runner(const GoldenCase& c) {
  const std::string path = c.op.empty() ? c.file + "/" + c.name : c.op;
  const GoldenRunner* best = nullptr;
  size_t longest = 0;
  for (const auto& [key, runner] : golden_runners()) {
    if (path.rfind(key, 0) != 0 || key.size() < longest) continue;
    if (path.size() > key.size() && (!c.op.empty() || (path[key.size()] != '_' && path[key.size()] != '/'))) continue;
    best = &runner, longest = key.size();
  }
  return best;
}

GoldenResult run_golden(const GoldenCase& c, DType dtype, Arena& arena,
                        const std::function<std::map<std::string, Tensor>(Tape&, const std::map<std::string, Tensor>&)>& forward,
                        const std::set<std::string>& exact) {
  Tape tape(arena, true);
  std::map<std::string, Tensor> inputs, buffers;
  for (const auto& [name, array] : c.inputs) {
    const DType type = c.parameters.contains(name) || exact.contains(name) ? accumulation_dtype(dtype) : dtype;
    inputs[name] = to_tensor(array, type, arena);
    if (dtype == DType::bf16 && c.parameters.contains(name) && array.shape.rank() == 2)
      tape.bind_compute_copy(inputs[name], to_tensor(array, dtype, arena));
    if (array.integer) continue;
    inputs[name].set_differentiable(true);
    tape.bind_grad(inputs[name], buffers[name] = arena.allocate(array.shape, type));
  }
  const auto outputs = forward(tape, inputs);
  GoldenResult result;
  for (const auto& [name, tensor] : outputs) result.outputs[name] = to_array(tensor);
  std::vector<std::pair<Tensor, Tensor>> seeds;
  for (const auto& [name, array] : c.grad_outputs) {
    const Tensor& y = outputs.at(name);
    seeds.emplace_back(y, to_tensor(array, y.dtype(), arena).reshape(y.shape()));
  }
  tape.backward(seeds);
  for (const auto& [name, buffer] : buffers) result.grads[name] = to_array(buffer);
  return result;
}

}  // namespace saccade::test
