#include "kernels/engine/tensor.h"

#include <atomic>
#include <stdexcept>

namespace saccade {

int64_t byte_size(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::bf16: return 2;
    case DType::f32:
    case DType::i32: return 4;
  }
  return 0;
}

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
  }
  return "unknown";
}

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (int64_t dim : dims) push_back(dim);
}

void Shape::push_back(int64_t dim) {
  if (rank_ == static_cast<int>(dims_.size())) throw std::logic_error("a tensor has at most five dimensions");
  dims_[static_cast<size_t>(rank_++)] = dim;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Tensor::Tensor(std::shared_ptr<Storage> storage, Shape shape, DType dtype) : storage_(std::move(storage)), shape_(shape), dtype_(dtype) {
  static std::atomic<uint64_t> next_id{1};
  id_ = next_id++;
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (shape.size() != size()) throw std::logic_error("reshape " + to_string(shape_) + " to " + to_string(shape));
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  if (begin < 0 || end < begin || end > dim(0)) throw std::logic_error("slice outside " + to_string(shape_));
  const int64_t row_bytes = dim(0) ? bytes() / dim(0) : 0;
  Shape shape{end - begin};
  for (int i = 1; i < rank(); ++i) shape.push_back(dim(i));
  Tensor view(storage_, shape, dtype_);
  view.offset_ = offset_ + begin * row_bytes;
  return view;
}

}  // namespace saccade
