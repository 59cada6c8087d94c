#include "kernels/cuda/runtime/cudnn_graph.h"

#include "kernels/engine/cuda_runtime.h"

#ifdef SACCADE_CUDNN
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernels/cuda/runtime/check.h"
#endif

namespace saccade::cuda {

#ifndef SACCADE_CUDNN

std::string cudnn_version(std::string* why_none) {
  if (why_none) *why_none = "this build was made without cuDNN";
  return {};
}

#else
namespace cudnn {
namespace {

/// cuDNN's functions; `why` where they could not be loaded.
struct Library {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  std::string why;
};

template <class F>
void find(void* handle, const char* name, F& function, std::string& why) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (!function) why = std::string("libcudnn has no ") + name;
}

Library load() {
  Library l;
  if (const char* wanted = std::getenv("SACCADE_CUDNN"); wanted && std::string(wanted) == "off") {
    l.why = "switched off by SACCADE_CUDNN=off";
    return l;
  }
  const std::string name = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* words = dlerror();
    l.why = words ? words : name + " cannot be loaded";
    return l;
  }
  find(handle, "cudnnGetVersion", l.get_version, l.why);
  find(handle, "cudnnGetErrorString", l.error_string, l.why);
  find(handle, "cudnnCreate", l.create, l.why);
  find(handle, "cudnnSetStream", l.set_stream, l.why);
  find(handle, "cudnnBackendCreateDescriptor", l.create_descriptor, l.why);
  find(handle, "cudnnBackendDestroyDescriptor", l.destroy_descriptor, l.why);
  find(handle, "cudnnBackendSetAttribute", l.set_attribute, l.why);
  find(handle, "cudnnBackendGetAttribute", l.get_attribute, l.why);
  find(handle, "cudnnBackendFinalize", l.finalize, l.why);
  find(handle, "cudnnBackendExecute", l.execute, l.why);
  // Before 9.10 a mask could not be −∞.
  if (l.why.empty() && l.get_version() < 91000) l.why = "cuDNN 9.10 or later is needed";
  return l;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw DeviceError(std::string("cuDNN: ") + what + ": " + library().error_string(status));
}

/// The handle of a device, on its stream.
cudnnHandle_t handle(int device) {
  static std::map<int, cudnnHandle_t> handles;
  cudnnHandle_t& h = handles[device];
  if (!h) {
    Stream s = stream(device);
    check(library().create(&h), "create");
    check(library().set_stream(h, s), "stream");
  }
  return h;
}

std::vector<int64_t> contiguous(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) { check(library().create_descriptor(type, &raw_), "descriptor"); }
Descriptor::~Descriptor() {
  if (raw_) (void)library().destroy_descriptor(raw_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  check(library().set_attribute(raw_, name, type, count, values), "attribute");
}
void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& other) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.raw_);
}
void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}
int64_t Descriptor::get_integer(cudnnBackendAttributeName_t name) const {
  int64_t value = 0, count = 0;
  check(library().get_attribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value), "attribute");
  return value;
}
void Descriptor::finalize() { check(library().finalize(raw_), "descriptor"); }

Graph::Graph(int device) : device_(device) {}
Graph::~Graph() {
  if (workspace_) (void)cudaFree(workspace_);
}

int Graph::tensor(cudnnDataType_t type, const Dims& dims, const Dims& strides, bool is_virtual, bool by_value) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int id = static_cast<int>(tensors_.size());
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, int64_t{id});
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16});
  if (is_virtual) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (by_value) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  d.finalize();
  tensors_.push_back(std::move(d));
  return id;
}

int Graph::input(cudnnDataType_t type, const Dims& dims, const Dims& strides) { return tensor(type, dims, strides, false, false); }
int Graph::scalar() { return tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true); }
int Graph::intermediate(cudnnDataType_t type, const Dims& dims) { return tensor(type, dims, contiguous(dims), true, false); }

void Graph::add(Descriptor operation) {
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void Graph::matmul(int a, int b, int c) {
  Descriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR), operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  product.finalize();
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a]);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b]);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[c]);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  details_.push_back(std::move(product));
  add(std::move(operation));
}

Descriptor Graph::pointwise_operation(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis) {
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
  if (axis >= 0) function.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  function.finalize();
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  details_.push_back(std::move(function));
  return operation;
}

void Graph::pointwise(cudnnPointwiseMode_t mode, int x, int y, cudnnDataType_t compute) {
  Descriptor operation = pointwise_operation(mode, compute, -1);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  add(std::move(operation));
}

void Graph::pointwise(cudnnPointwiseMode_t mode, int x, int b, int y, cudnnDataType_t compute) {
  Descriptor operation = pointwise_operation(mode, compute, -1);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[b]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  add(std::move(operation));
}

void Graph::select(int x, int b, int mask, int y) {
  Descriptor operation = pointwise_operation(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[b]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[mask]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  add(std::move(operation));
}

void Graph::index(int x, int axis, int y) {
  Descriptor operation = pointwise_operation(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  add(std::move(operation));
}

void Graph::reduce(cudnnReduceTensorOp_t mode, int x, int y) {
  Descriptor function(CUDNN_BACKEND_REDUCTION_DESCRIPTOR), operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  function.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  function.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  function.finalize();
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, function);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x]);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[y]);
  details_.push_back(std::move(function));
  add(std::move(operation));
}

bool Graph::plan() {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations_) raw.push_back(operation.raw());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), choice(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle(device_));
  if (library().finalize(graph.raw()) != CUDNN_STATUS_SUCCESS) return false;
  choice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  choice.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (library().finalize(choice.raw()) != CUDNN_STATUS_SUCCESS) return false;
  constexpr int64_t kMost = 8;
  std::vector<Descriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> found;
  for (int64_t i = 0; i < kMost; ++i) {
    configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    found.push_back(configurations.back().raw());
  }
  int64_t count = 0;
  check(library().get_attribute(choice.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &count, found.data()),
        "choosing an engine");
  for (size_t i = 0; i < static_cast<size_t>(std::min(count, kMost)); ++i) {
    auto plan = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle(device_));
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[i]);
    if (library().finalize(plan->raw()) != CUDNN_STATUS_SUCCESS) continue;
    if (const int64_t bytes = plan->get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); bytes > 0)
      cuda::check(cudaMalloc(&workspace_, static_cast<size_t>(bytes)));
    plan_ = std::move(plan);
    return true;
  }
  return false;
}

void Graph::run(const std::map<int, const void*>& bound) const {
  std::vector<int64_t> ids;
  std::vector<const void*> addresses;
  for (const auto& [id, address] : bound) ids.push_back(id), addresses.push_back(address);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(addresses.size()), addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace_);
  pack.finalize();
  check(library().execute(handle(device_), plan_->raw(), pack.raw()), "running a plan");
}

}  // namespace cudnn

std::string cudnn_version(std::string* why_none) {
  const cudnn::Library& l = cudnn::library();
  if (!l.why.empty()) {
    if (why_none) *why_none = l.why;
    return {};
  }
  const size_t version = l.get_version();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

#endif

}  // namespace saccade::cuda
