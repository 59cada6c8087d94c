#include "kernels/engine/plain.h"

#include <cstdlib>
#include <cstring>

namespace saccade {
namespace {

bool asked_for() {
  const char* word = std::getenv("SACCADE_PLAIN");
  return word && *word && std::strcmp(word, "0") != 0;
}

bool& plain() {
  static bool on = asked_for();
  return on;
}

}  // namespace

bool plain_kernels() { return plain(); }
void set_plain_kernels(bool on) { plain() = on; }

}  // namespace saccade
