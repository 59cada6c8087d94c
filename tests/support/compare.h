#pragma once
#include <QString>
#include <QtTest>
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade::test {

/// Plain numbers with a shape, on the host, in double: what golden files and comparisons speak.
struct Array {
  Shape shape;
  std::vector<double> values;
  bool integer = false;
};

Array to_array(const Tensor& tensor);
/// A tensor of `dtype` in the arena (i32 when the array is integer).
Tensor to_tensor(const Array& array, DType dtype, Arena& arena);
/// Standard normal numbers, reproducible.
Array random_array(const Shape& shape, uint64_t seed, double scale = 1.0);

/// Largest |actual − expected| over the largest |expected| (infinities must agree exactly; NaN only with NaN).
double relative_error(const Array& actual, const Array& expected);
/// Empty when within tolerance, else a sentence naming the tensor, the error and the worst element.
QString difference(const Array& actual, const Array& expected, double tolerance, const QString& name);

}  // namespace saccade::test

/// Compares by relative error to the largest element and says which tensor failed.
#define COMPARE_CLOSE(actual, expected, tolerance, name)                                              \
  do {                                                                                                \
    const QString difference_ = saccade::test::difference((actual), (expected), (tolerance), (name)); \
    QVERIFY2(difference_.isEmpty(), qPrintable(difference_));                                         \
  } while (false)
