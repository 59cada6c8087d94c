#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace saccade {

using Digest = std::array<uint8_t, 32>;

/// SHA-256 (FIPS 180-4) of what is fed piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  /// Little-endian, so that lengths and counts can stand between texts.
  void update(uint64_t number);
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest sha256(std::string_view bytes);
std::string hex(const Digest& digest);

}  // namespace saccade
