#pragma once
#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/engine/device.h"

namespace saccade {

enum class DType { f32, f64, bf16, i32 };

int64_t byte_size(DType dtype);
const char* to_string(DType dtype);

/// The type of sums and statistics (log-sum-exps, losses) over values of a type: f32 for bf16, else the same.
inline DType accumulation_dtype(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>);
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  return DType::i32;
}

/// Up to five dimensions, row-major, the last one contiguous.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  int rank() const { return rank_; }
  /// Dimension i; negative i counts from the end.
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i < 0 ? rank_ + i : i)]; }
  int64_t size() const { return std::accumulate(dims_.begin(), dims_.begin() + rank_, int64_t{1}, std::multiplies<>()); }
  void push_back(int64_t dim);
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, 5> dims_{};
  int rank_ = 0;
};

/// "[2, 37, 16]"
std::string to_string(const Shape& shape);

/// A block of memory on one device; returned to its arena when the last tensor on it is destroyed.
struct Storage {
  Device device;
  void* data = nullptr;  ///< null on `plan`
  int64_t bytes = 0;
  std::shared_ptr<void> owner;  ///< returns the memory on destruction
};

/// Contiguous storage, a shape and a type. A handle: copies share the memory and the identity under which the
/// tape finds their gradient. Reshaping keeps that identity; a slice is a new one (see `slice` on the tape).
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, Shape shape, DType dtype);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int rank() const { return shape_.rank(); }
  int64_t size() const { return shape_.size(); }
  int64_t bytes() const { return size() * byte_size(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_->device; }

  /// Elements as T; T must match dtype(). Null on `plan`.
  template <class T>
  T* data() const {
    assert(dtype_of<std::remove_const_t<T>>() == dtype_);
    return static_cast<T*>(raw());
  }
  void* raw() const { return storage_->data ? static_cast<char*>(storage_->data) + offset_ : nullptr; }

  /// The same elements in another shape of equal size.
  Tensor reshape(const Shape& shape) const;
  /// All but the last dimension folded into one: [rows, last].
  Tensor rows_view() const { return reshape({size() / shape_[-1], shape_[-1]}); }
  /// Elements begin … end-1 of the first dimension, sharing memory. Carries no gradient.
  Tensor slice(int64_t begin, int64_t end) const;

  /// Whether gradients flow to this tensor; set for parameters and by Tape::record for outputs.
  bool differentiable() const { return differentiable_; }
  void set_differentiable(bool yes) { differentiable_ = yes; }

  uint64_t id() const { return id_; }
  /// Whether it stands right behind another in the same allocation.
  bool follows(const Tensor& before) const { return storage_ == before.storage_ && offset_ == before.offset_ + before.bytes(); }
  /// True when no other tensor shares this memory.
  bool sole_owner() const { return storage_.use_count() == 1; }

 private:
  std::shared_ptr<Storage> storage_;
  int64_t offset_ = 0;  ///< bytes
  Shape shape_;
  DType dtype_ = DType::f32;
  uint64_t id_ = 0;
  bool differentiable_ = false;
};

/// Calls f with a value of the C++ type that stands for a floating dtype on the CPU: f(float{}) or f(double{}).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  assert(dtype == DType::f32 || dtype == DType::f64);
  return dtype == DType::f64 ? f(double{}) : f(float{});
}

}  // namespace saccade
