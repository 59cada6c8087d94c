#include "models/corpus/sha256.h"

#include <openssl/evp.h>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

void check(int result) {
  if (result != 1) throw Error("SHA-256: OpenSSL's libcrypto failed");
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { check(EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr)); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) { check(EVP_DigestUpdate(context_->md, bytes.data(), bytes.size())); }

void Sha256::update(uint64_t number) {
  std::array<char, 8> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  update(std::string_view(bytes.data(), bytes.size()));
}

Digest Sha256::finish() {
  Digest digest{};
  unsigned size = 0;
  check(EVP_DigestFinal_ex(context_->md, digest.data(), &size));
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.finish();
}

std::string hex(const Digest& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace saccade
