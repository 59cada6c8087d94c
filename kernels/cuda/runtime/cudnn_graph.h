#pragma once
/// cuDNN, loaded at its first use: the program starts without it. Compiled in where its headers are found (the macro
/// SACCADE_CUDNN); the environment variable SACCADE_CUDNN=off switches it off.
#ifdef SACCADE_CUDNN
#include <cudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace saccade::cuda::cudnn {

/// A descriptor of cuDNN's graph interface. Failures throw DeviceError with cuDNN's error text.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other);
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values);
  int64_t get_integer(cudnnBackendAttributeName_t name) const;
  void finalize();
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// An operation graph, and once it is finalized its execution plan. Tensors have four dimensions and are named by number.
class Graph {
 public:
  using Dims = std::vector<int64_t>;
  explicit Graph(int device);
  ~Graph();

  /// A tensor in memory, bound to an address at run time.
  int input(cudnnDataType_t type, const Dims& dims, const Dims& strides);
  /// A float in CPU memory, bound to its value at run time.
  int scalar();
  /// An intermediate that never reaches memory, contiguous.
  int intermediate(cudnnDataType_t type, const Dims& dims);

  void matmul(int a, int b, int c);
  void pointwise(cudnnPointwiseMode_t mode, int x, int y, cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  void pointwise(cudnnPointwiseMode_t mode, int x, int b, int y, cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  /// y = mask ? x : b
  void select(int x, int b, int mask, int y);
  /// Position along an axis.
  void index(int x, int axis, int y);
  void reduce(cudnnReduceTensorOp_t mode, int x, int y);

  /// Chooses an engine. False: cuDNN has none for this graph.
  bool plan();
  /// Runs on the device's stream. `bound`: tensor → address in device memory (inputs) or in CPU memory (scalars).
  void run(const std::map<int, const void*>& bound) const;

 private:
  int tensor(cudnnDataType_t type, const Dims& dims, const Dims& strides, bool is_virtual, bool by_value);
  Descriptor pointwise_operation(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis);
  void add(Descriptor operation);

  int device_;
  std::vector<Descriptor> tensors_, operations_, details_;
  std::unique_ptr<Descriptor> plan_;
  void* workspace_ = nullptr;
};

}  // namespace saccade::cuda::cudnn
#endif
