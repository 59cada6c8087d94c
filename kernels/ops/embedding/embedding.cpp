#include "kernels/ops/embedding/embedding.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/engine/cuda_basic.h"
#include "kernels/engine/cuda_side_stream.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/elementwise/elementwise_cuda.h"
#include "kernels/ops/embedding/embedding_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kRows = 64;

void check_tokens(const int32_t* tokens, int64_t n, int64_t vocabulary) {
  for (int64_t i = 0; i < n; ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      throw DataError("[embedding] token " + std::to_string(tokens[i]) + " at position " + std::to_string(i) +
                      " is outside the vocabulary of " + std::to_string(vocabulary));
}

template <class T>
void embedding(const Tensor& table, const Tensor& tokens, const Tensor& y) {
  const int64_t width = table.dim(1);
  const int32_t* token = tokens.data<int32_t>();
  check_tokens(token, tokens.size(), table.dim(0));
  const T* rows = table.data<T>();
  T* out = y.data<T>();
  parallel_ranges(tokens.size(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::copy_n(rows + token[i] * width, width, out + i * width);
  });
}

/// Positions of every token, ascending: those of token v are order[first[v]] … order[first[v + 1] − 1].
struct Occurrences {
  std::vector<int64_t> first, order;
  Occurrences(const int32_t* tokens, int64_t n, int64_t vocabulary)
      : first(static_cast<size_t>(vocabulary + 1)), order(static_cast<size_t>(n)) {
    for (int64_t i = 0; i < n; ++i) ++first[static_cast<size_t>(tokens[i] + 1)];
    for (size_t v = 1; v < first.size(); ++v) first[v] += first[v - 1];
    std::vector<int64_t> next = first;
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(next[static_cast<size_t>(tokens[i])]++)] = i;
  }
};

template <class T>
void embedding_backward(const Tensor& dy, const Tensor& tokens, const GradTarget& table) {
  const int64_t vocabulary = table.tensor.dim(0), width = table.tensor.dim(1);
  const Occurrences at(tokens.data<int32_t>(), tokens.size(), vocabulary);
  const T* d = dy.data<T>();
  T* sums = table.tensor.data<T>();
  parallel_ranges(vocabulary, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      T* sum = sums + v * width;
      if (!table.add) std::fill(sum, sum + width, T(0));
      for (int64_t o = at.first[static_cast<size_t>(v)]; o < at.first[static_cast<size_t>(v + 1)]; ++o) {
        const T* row = d + at.order[static_cast<size_t>(o)] * width;
        for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
      }
    }
  });
}

template <class T>
void add_positions(const Tensor& x, const Tensor& table, int64_t first, const Tensor& y) {
  const int64_t length = x.dim(1), width = x.dim(2);
  const T *a = x.data<T>(), *p = table.data<T>();
  T* out = y.data<T>();
  parallel_ranges(x.dim(0) * length, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < width; ++j) out[r * width + j] = a[r * width + j] + p[(first + r % length) * width + j];
  });
}

template <class T>
void add_positions_backward(const Tensor& dy, const GradTarget& table) {
  const int64_t batch = dy.dim(0), length = dy.dim(1), width = dy.dim(2);
  const T* d = dy.data<T>();
  T* sums = table.tensor.data<T>();
  parallel_ranges(table.tensor.dim(0), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      T* sum = sums + t * width;
      if (!table.add) std::fill(sum, sum + width, T(0));
      for (int64_t b = 0; t < length && b < batch; ++b)
        for (int64_t j = 0; j < width; ++j) sum[j] += d[(b * length + t) * width + j];
    }
  });
}

}  // namespace
}  // namespace cpu

namespace {

/// What backward needs of the tokens on a GPU, made beside the forward pass: a chain of small kernels that nobody waits for.
struct TokenOrder {
  Tensor tokens, memory;  ///< end after `ready`, which joins
  std::shared_ptr<cuda::SideWork> ready;
};

TokenOrder order_tokens(Tape& tape, const Tensor& tokens, int64_t vocabulary) {
  if (!tape.device().targets_cuda()) return {};
  TokenOrder order{tokens, tape.empty({embedding_scratch(tokens.size(), vocabulary)}, DType::i32), std::make_shared<cuda::SideWork>()};
  tape.run(
      "embedding.order", {0, static_cast<double>(4 * tokens.bytes())}, [] {},
      [&] { order.ready->start(tape.device().index, [&](cuda::Stream s) { cuda::order_by_token(s, tokens, vocabulary, order.memory); }); });
  return order;
}

}  // namespace

Tensor embedding(Tape& tape, const Tensor& table, const Tensor& tokens) {
  expect(table.rank() == 2 && tokens.rank() == 2 && tokens.dtype() == DType::i32, "embedding", "table is ", table, ", tokens are ", tokens,
         " ", tokens.dtype(), "; expected [V, D] and i32 [B, T]");
  Tensor y = tape.empty({tokens.dim(0), tokens.dim(1), table.dim(1)}, tape.activation_dtype(table));
  tape.run(
      "embedding", {0, static_cast<double>(tokens.bytes() + 2 * y.bytes())},
      [&] { dispatch(table.dtype(), [&](auto zero) { cpu::embedding<decltype(zero)>(table, tokens, y); }); },
      [&] { cuda::embedding(tape.stream(), table, tokens, y); });
  const TokenOrder order = tape.recording() && table.differentiable() ? order_tokens(tape, tokens, table.dim(0)) : TokenOrder();
  tape.record({table}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget d_table = t.grad_target(table);
    if (!d_table) return;
    t.run(
        "embedding.backward", {static_cast<double>(dy.size()), static_cast<double>(tokens.bytes() + dy.bytes() + table.bytes())},
        [&] { dispatch(dy.dtype(), [&](auto zero) { cpu::embedding_backward<decltype(zero)>(dy, tokens, d_table); }); },
        [&] {
          order.ready->join();
          cuda::embedding_backward(t.stream(), dy, order.memory, d_table.tensor, d_table.add);
        });
  });
  return y;
}

Tensor add_positions(Tape& tape, const Tensor& x, const Tensor& table, const TokenPosition& position) {
  expect(x.rank() == 3 && table.rank() == 2 && x.dim(2) == table.dim(1) && position.first + x.dim(1) <= table.dim(0) &&
             accumulation_dtype(x.dtype()) == table.dtype(),
         "add_positions", "x is ", x, ", table is ", table, ", first position ", position.first,
         "; expected [B, T, D] and [Tmax, D] with Tmax >= p + T");
  Tensor y = tape.empty(x.shape(), x.dtype());
  const int64_t row = x.dim(2) * byte_size(x.dtype());
  tape.run(
      "add_positions", {static_cast<double>(x.size()), static_cast<double>(2 * x.bytes() + x.dim(1) * row)},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          for_positions(position, x.dim(0), [&](int64_t b, int64_t n, int64_t first) {
            cpu::add_positions<decltype(zero)>(x.slice(b, b + n), table, first, y.slice(b, b + n));
          });
        });
      },
      [&] { cuda::add_positions(tape.stream(), x, table, position, y); });
  tape.record({x, table}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    if (const GradTarget d_table = t.grad_target(table)) {
      t.run(
          "add_positions.backward", {static_cast<double>(dy.size()), static_cast<double>(dy.bytes() + table.bytes())},
          [&] { dispatch(dy.dtype(), [&](auto zero) { cpu::add_positions_backward<decltype(zero)>(dy, d_table); }); },
          [&] { cuda::add_positions_backward(t.stream(), dy, d_table.tensor, d_table.add); });
    }
    t.add_grad(x, dy);
  });
  return y;
}

Tensor position_numbers(Tape& tape, int64_t n, const TokenPosition& position) {
  const Tensor numbers = tape.empty({position.differs() ? position.on_device.size() : 1, n}, DType::i32);
  tape.run(
      "row_numbers", {0, static_cast<double>(numbers.bytes())},
      [&] {
        for (int64_t b = 0; b < numbers.dim(0); ++b)
          std::iota(numbers.data<int32_t>() + b * n, numbers.data<int32_t>() + (b + 1) * n, static_cast<int32_t>(position.of(b)));
      },
      [&] { cuda::count_up(tape.stream(), numbers, position); });
  return numbers;
}

}  // namespace saccade
