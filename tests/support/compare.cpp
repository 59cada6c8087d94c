#include "tests/support/compare.h"

#include <cmath>

#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"

namespace saccade::test {

Array to_array(const Tensor& tensor) { return {tensor.shape(), to_doubles(tensor), tensor.dtype() == DType::i32}; }

Tensor to_tensor(const Array& array, DType dtype, Arena& arena) {
  Tensor tensor = arena.allocate(array.shape, array.integer ? DType::i32 : dtype);
  from_doubles(tensor, array.values);
  return tensor;
}

Array random_array(const Shape& shape, uint64_t seed, double scale) {
  Array array{shape, std::vector<double>(static_cast<size_t>(shape.size())), false};
  const Random random(seed, "test");
  for (size_t i = 0; i < array.values.size(); ++i) array.values[i] = scale * random.normal(i);
  return array;
}

namespace {
struct Worst {
  double error = 0, largest = 0;
  size_t at = 0;
};
Worst worst(const Array& actual, const Array& expected) {
  Worst w;
  for (double x : expected.values)
    if (std::isfinite(x)) w.largest = std::max(w.largest, std::abs(x));
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double a = actual.values[i], e = expected.values[i];
    double error = std::abs(a - e);
    if (std::isfinite(e) != std::isfinite(a))
      error = INFINITY;
    else if (!std::isfinite(e))
      error = (std::isnan(e) ? std::isnan(a) : a == e) ? 0 : INFINITY;
    if (error > w.error) w.error = error, w.at = i;
  }
  return w;
}
}  // namespace

double relative_error(const Array& actual, const Array& expected) {
  if (actual.shape.size() != expected.shape.size()) return INFINITY;
  const Worst w = worst(actual, expected);
  return w.largest > 0 ? w.error / w.largest : w.error;
}

QString difference(const Array& actual, const Array& expected, double tolerance, const QString& name) {
  if (!(actual.shape == expected.shape))
    return QString("%1 has shape %2, expected %3").arg(name, to_string(actual.shape).c_str(), to_string(expected.shape).c_str());
  const Worst w = worst(actual, expected);
  const double relative = w.largest > 0 ? w.error / w.largest : w.error;
  if (relative <= tolerance) return {};
  return QString("%1 is off by %2 of its largest element %3 (allowed %4); element %5 is %6, expected %7")
      .arg(name)
      .arg(relative)
      .arg(w.largest)
      .arg(tolerance)
      .arg(w.at)
      .arg(actual.values[w.at], 0, 'g', 12)
      .arg(expected.values[w.at], 0, 'g', 12);
}

}  // namespace saccade::test
