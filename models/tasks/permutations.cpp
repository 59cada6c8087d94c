// The word problem of a group of permutations (arXiv:2404.08819, section 4; arXiv:2411.12537, section 5.2): each token is a permutation,
// and at each position the product of all so far is asked for. A product (a after b)(x) = a(b(x)): the newest is applied last.
#include <algorithm>
#include <array>
#include <numeric>

#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 32, moved = 5;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {1, 1 << 20}, "Permutations of an example.", "arXiv:2411.12537, section 5.2"),
    field("moved", &Settings::moved, {2, 5}, "Of five things, how many a permutation that is read moves at most (2: swaps).",
          "arXiv:2411.12537, section 5.2"),
};

using Order = std::array<int8_t, 5>;

bool is_even(const Order& p) {
  int inversions = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t j = i + 1; j < p.size(); ++j) inversions += p[i] > p[j];
  return inversions % 2 == 0;
}

/// A group's elements in lexicographic order (0 is the one that moves nothing), which of them may be read, and their products.
struct Group {
  std::vector<Order> elements;
  std::vector<int64_t> read;
  std::vector<int64_t> products;  ///< [newest, before]

  Group(bool even_only, int64_t moved) {
    Order p{0, 1, 2, 3, 4};
    do {
      if (!even_only || is_even(p)) elements.push_back(p);
    } while (std::next_permutation(p.begin(), p.end()));
    for (size_t i = 0; i < elements.size(); ++i) {
      int64_t count = 0;
      for (size_t x = 0; x < p.size(); ++x) count += elements[i][x] != static_cast<int8_t>(x);
      if (count <= moved) read.push_back(static_cast<int64_t>(i));
    }
    for (const Order& a : elements)
      for (const Order& b : elements) {
        Order both{};
        for (size_t x = 0; x < both.size(); ++x) both[x] = a[static_cast<size_t>(b[x])];
        products.push_back(std::lower_bound(elements.begin(), elements.end(), both) - elements.begin());
      }
  }
};

std::function<MakeExample(const Settings&, uint64_t)> maker_of(bool even_only) {
  return [even_only](const Settings& s, uint64_t) -> MakeExample {
    return [s, group = std::make_shared<const Group>(even_only, s.moved)](Draws& draws, bool) {
      SymbolExample e;
      int64_t product = 0;
      for (int64_t i = 0; i < s.length; ++i) {
        const int64_t next = group->read[static_cast<size_t>(draws.below(static_cast<int64_t>(group->read.size())))];
        product = group->products[static_cast<size_t>(next) * group->elements.size() + static_cast<size_t>(product)];
        e.add(next, product);
      }
      return e;
    };
  };
}

SymbolTask task(const char* id, const char* title, bool even_only) {
  return SymbolTaskOf<Settings>{.id = id,
                                .title = title,
                                .paper = "arXiv:2404.08819, section 4; arXiv:2411.12537, section 5.2",
                                .schema = schema,
                                .train = {"length-32"},
                                .test = {"length-64", "length-128", "length-256"},
                                .vocabulary = [even_only](const Settings&) { return even_only ? 60 : 120; },
                                .most_targets = [](const Settings& s) { return s.length; },
                                .chance = [even_only](const Settings&) { return 1.0 / (even_only ? 60 : 120); },
                                .maker = maker_of(even_only),
                                .check =
                                    [even_only](const Settings& s) {
                                      if (even_only && s.moved < 3) throw UsageError("no even permutation moves two things alone");
                                    }}
      .task();
}

const RegisterSymbolTask s5{task("s5", "Products of permutations of five things", false)};
const RegisterSymbolTask a5{task("a5", "Products of even permutations of five things", true)};

}  // namespace
}  // namespace saccade
