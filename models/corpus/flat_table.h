#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace saccade {

/// 64-bit keys (any but the largest) to 64-bit values by open addressing: filled once, then read by any number of threads.
class FlatTable {
 public:
  explicit FlatTable(size_t entries = 0) {
    size_t places = 16;
    while (places < 2 * entries) places *= 2;
    places_.assign(places, {kEmpty, 0});
  }

  /// The value of a key, 0 where there was none. Not for one that is read elsewhere meanwhile.
  uint64_t& operator[](uint64_t key) {
    if (2 * (used_ + 1) > places_.size()) grow();
    Place& place = places_[place_of(key)];
    used_ += place.key == kEmpty;
    place.key = key;
    return place.value;
  }

  /// Null where there is none.
  const uint64_t* find(uint64_t key) const {
    const Place& place = places_[place_of(key)];
    return place.key == key ? &place.value : nullptr;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Place {
    uint64_t key, value;
  };

  static uint64_t mixed(uint64_t x) {  // the last step of MurmurHash3
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDu;
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53u;
    return x ^ (x >> 33);
  }

  size_t place_of(uint64_t key) const {
    size_t at = mixed(key) & (places_.size() - 1);
    while (places_[at].key != key && places_[at].key != kEmpty) at = (at + 1) & (places_.size() - 1);
    return at;
  }

  void grow() {
    std::vector<Place> old(2 * places_.size(), {kEmpty, 0});
    old.swap(places_);
    for (const Place& place : old)
      if (place.key != kEmpty) places_[place_of(place.key)] = place;
  }

  std::vector<Place> places_;
  size_t used_ = 0;
};

}  // namespace saccade
