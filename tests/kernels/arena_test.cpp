#include "kernels/engine/arena.h"

#include <sys/resource.h>

#include <QtTest>
#include <cmath>
#include <fstream>
#include <vector>

#include "kernels/engine/error.h"
#include "kernels/engine/random.h"

namespace saccade::test {

class ArenaTest : public QObject {
  Q_OBJECT

  static Tensor floats(Arena& arena, int64_t n) { return arena.allocate({n}, DType::f32); }

  /// A fixed, irregular sequence of requests and releases.
  static std::vector<void*> irregular(Arena& arena) {
    const Random random(7, "arena");
    std::vector<Tensor> live;
    std::vector<void*> addresses;
    for (uint64_t i = 0; i < 500; ++i) {
      if (live.size() > 20 || (!live.empty() && random.uniform(2 * i) < 0.45)) {
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(random.below(live.size(), 2 * i + 1)));
      } else {
        live.push_back(floats(arena, 1 + static_cast<int64_t>(random.below(5000, 2 * i + 1))));
        addresses.push_back(live.back().raw());
      }
    }
    return addresses;
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(false); }
  void cleanup() { Arena::set_poison(false); }

  void same_requests_same_addresses() {
    Arena arena(Device::cpu());
    const Tensor parameter = floats(arena, 1000);
    const std::vector<void*> first = irregular(arena);
    QCOMPARE(arena.used(), int64_t{4096});
    for (int step = 0; step < 3; ++step) QCOMPARE(irregular(arena), first);
  }

  /// Where the system limits a process' data, an arena takes of that what it uses and leaves the rest to others.
  void a_limit_counts_what_is_used() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    QSKIP("a sanitizer's own memory counts too");
#endif
    std::ifstream status("/proc/self/status");
    int64_t data = -1;
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmData:")) data = std::stoll(line.substr(7)) * 1024;
    QVERIFY(data > 0);
    rlimit before{};
    QCOMPARE(::getrlimit(RLIMIT_DATA, &before), 0);
    const rlimit limited{static_cast<rlim_t>(data) + (256 << 20), before.rlim_max};
    QCOMPARE(::setrlimit(RLIMIT_DATA, &limited), 0);
    bool others_fit = true, too_much_is_refused = false;
    try {
      Arena arena(Device::cpu());
      Tensor small = floats(arena, 1 << 20);
      small.data<float>()[(1 << 20) - 1] = 1;
      std::vector<char> others(size_t{100} << 20);
      others_fit = others.size() == size_t{100} << 20;
      try {
        floats(arena, 1 << 27);
      } catch (const DeviceError& error) {
        too_much_is_refused = QString(error.what()).contains("what the system allows this process");
      }
      QCOMPARE(arena.used(), int64_t{4} << 20);
    } catch (const std::bad_alloc&) {
      others_fit = false;
    }
    ::setrlimit(RLIMIT_DATA, &before);
    QVERIFY(others_fit);
    QVERIFY(too_much_is_refused);
  }

  void live_tensors_do_not_overlap() {
    Arena arena(Device::cpu());
    const Random random(9, "arena");
    std::vector<Tensor> live;
    for (uint64_t i = 0; i < 300; ++i) {
      if (live.size() > 10) live.erase(live.begin() + static_cast<std::ptrdiff_t>(random.below(live.size(), i)));
      live.push_back(floats(arena, 1 + static_cast<int64_t>(random.below(3000, 1000 + i))));
      const Tensor& added = live.back();
      for (int64_t j = 0; j < added.size(); ++j) added.data<float>()[j] = static_cast<float>(i);
      live.back().set_differentiable(false);
    }
    std::vector<std::pair<char*, int64_t>> ranges;
    for (const Tensor& x : live) ranges.emplace_back(static_cast<char*>(x.raw()), x.bytes());
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) QVERIFY(ranges[i - 1].first + ranges[i - 1].second <= ranges[i].first);
    for (const Tensor& x : live)
      for (int64_t j = 0; j < x.size(); ++j) QCOMPARE(x.data<float>()[j], x.data<float>()[0]);
  }

  void neighbours_grow_together() {
    Arena arena(Device::cpu());
    Tensor a = floats(arena, 64), b = floats(arena, 64), c = floats(arena, 64);
    const Tensor end = floats(arena, 64);
    void* const start = a.raw();
    const int64_t extent = arena.peak_extent();
    a = {};
    c = {};
    b = {};
    const Tensor all = floats(arena, 3 * 64);
    QCOMPARE(all.raw(), start);
    QCOMPARE(arena.peak_extent(), extent);
  }

  void lowest_gap_that_fits() {
    Arena arena(Device::cpu());
    Tensor large = floats(arena, 640), keep1 = floats(arena, 64), small = floats(arena, 64), keep2 = floats(arena, 64);
    void* const low = large.raw();
    large = {};
    small = {};
    QCOMPARE(floats(arena, 64).raw(), low);
  }

  void counters() {
    Arena arena(Device::cpu());
    QCOMPARE(arena.used(), int64_t{0});
    {
      const Tensor a = floats(arena, 64);
      {
        const Tensor b = floats(arena, 65);
        QCOMPARE(arena.used(), int64_t{256 + 512});
      }
      QCOMPARE(arena.used(), int64_t{256});
    }
    QCOMPARE(arena.used(), int64_t{0});
    QCOMPARE(arena.peak_used(), int64_t{768});
    QCOMPARE(arena.peak_extent(), int64_t{768});
    arena.reset_peak();
    QCOMPARE(arena.peak_used(), int64_t{0});
  }

  void plan_is_the_same_bookkeeping() {
    Arena cpu(Device::cpu()), plan(Device::plan());
    const std::vector<void*> addresses = irregular(plan);
    irregular(cpu);
    QVERIFY(std::all_of(addresses.begin(), addresses.end(), [](void* p) { return p == nullptr; }));
    QCOMPARE(plan.peak_used(), cpu.peak_used());
    QCOMPARE(plan.peak_extent(), cpu.peak_extent());
    QCOMPARE(plan.used(), int64_t{0});
    const Tensor huge = floats(plan, int64_t{1} << 50);  // no memory behind it
    QCOMPARE(plan.used(), int64_t{1} << 52);
  }

  void tensors_outlive_the_arena() {
    Tensor x;
    {
      Arena arena(Device::cpu());
      x = floats(arena, 100);
    }
    x.data<float>()[99] = 3;
    QCOMPARE(x.data<float>()[99], 3.0f);
  }

  void poison() {
    Arena::set_poison(true);
    Arena arena(Device::cpu());
    const Tensor f = floats(arena, 37), d = arena.allocate({37}, DType::f64);
    QVERIFY(std::isnan(f.data<float>()[36]) && std::isnan(d.data<double>()[36]));
  }

  void empty_tensor() {
    Arena arena(Device::cpu());
    const Tensor none = floats(arena, 0), one = floats(arena, 1);
    QVERIFY(none.raw() != one.raw());
  }

  void more_than_there_is() {
    Arena arena(Device::cpu());
    const int64_t used = arena.used();
    QVERIFY_THROWS_EXCEPTION(DeviceError, floats(arena, int64_t{1} << 50));
    QCOMPARE(arena.used(), used);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ArenaTest)
#include "arena_test.moc"
