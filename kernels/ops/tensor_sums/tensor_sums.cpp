#include "kernels/ops/tensor_sums/tensor_sums.h"

#include <algorithm>

#include "kernels/engine/cuda_basic.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"

namespace saccade {
namespace {

constexpr int64_t kGrain = 1 << 15;

/// All elements' bytes, after checking that the lists are alike.
double bytes_of(const char* op, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  expect(a.size() == b.size(), op, "there are ", static_cast<int64_t>(a.size()), " and ", static_cast<int64_t>(b.size()), " tensors");
  int64_t bytes = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    expect(a[i].size() == b[i].size() && a[i].dtype() == b[i].dtype(), op, "a pair is ", a[i], " ", a[i].dtype(), " and ", b[i], " ",
           b[i].dtype());
    bytes += a[i].bytes();
  }
  return static_cast<double>(bytes);
}

template <class Action>
void each_pair(const std::vector<Tensor>& a, const std::vector<Tensor>& b, Action action) {
  for (size_t i = 0; i < a.size(); ++i)
    dispatch(a[i].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* x = a[i].data<T>();
      const T* y = b[i].data<T>();
      parallel_ranges(a[i].size(), kGrain, [&](int64_t begin, int64_t end) { action(x, y, begin, end); });
    });
}

}  // namespace

void add_all(Tape& tape, const std::vector<Tensor>& sums, const std::vector<Tensor>& terms) {
  const double bytes = bytes_of("add_all", sums, terms);
  double elements = 0;
  for (const Tensor& t : sums) elements += static_cast<double>(t.size());
  tape.run(
      "add_all", {elements, 3 * bytes},
      [&] {
        each_pair(sums, terms, [](auto* x, const auto* y, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) x[i] += y[i];
        });
      },
      [&] {
        for (size_t i = 0; i < sums.size(); ++i) cuda::add_into(tape.stream(), sums[i], terms[i]);
      });
}

void copy_all(Tape& tape, const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  const double bytes = bytes_of("copy_all", to, from);
  tape.run(
      "copy_all", {0, 2 * bytes},
      [&] { each_pair(to, from, [](auto* x, const auto* y, int64_t begin, int64_t end) { std::copy(y + begin, y + end, x + begin); }); },
      [&] {
        for (size_t i = 0; i < to.size(); ++i) cuda::copy_on_device(tape.stream(), to[i].raw(), from[i].raw(), to[i].bytes());
      });
}

}  // namespace saccade
