// Measures the table of documents seen: seen_documents_bench FOLDER MEMORY_MIB DOCUMENTS. Every tenth document is one that came before.
// Prints, ten times on the way, what the table holds, what the process took at most, and the time.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
#include "models/corpus/seen_documents.h"

using namespace saccade;

namespace {

/// The last step of MurmurHash3: different numbers give different ones.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDu;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53u;
  return x ^ (x >> 33);
}
DocumentKey key(uint64_t number) { return {mixed(number + 1), mixed(~number)}; }

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return std::fprintf(stderr, "seen_documents_bench FOLDER MEMORY_MIB DOCUMENTS\n"), 2;
  const uint64_t documents = std::strtoull(arguments[3], nullptr, 10);
  try {
    SeenDocuments seen(arguments[1], std::strtoll(arguments[2], nullptr, 10) << 20);
    std::printf("documents  held MiB  process MiB  disk MiB  files   lookups  seconds\n");
    const double start = now();
    uint64_t next = 0, wrong = 0;
    for (uint64_t i = 0; i < documents; ++i) {
      const bool again = i % 10 == 9;
      wrong += seen.insert(key(again ? mixed(i) % next : next)) == again;
      next += !again;
      if ((i + 1) % (documents / 10) != 0) continue;
      const SeenDocuments::Use use = seen.use();
      std::printf("%9llu %9.0f %12.0f %9.0f %6lld %9lld %8.1f\n", static_cast<unsigned long long>(i + 1),
                  static_cast<double>(use.memory_bytes) / (1 << 20), peak_mib(), static_cast<double>(use.disk_bytes) / (1 << 20),
                  static_cast<long long>(use.files), static_cast<long long>(use.lookups), now() - start);
      std::fflush(stdout);
    }
    std::printf("%llu wrong answers\n", static_cast<unsigned long long>(wrong));
    return wrong == 0 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "seen_documents_bench: %s\n", error.what());
    return error.exit_code();
  }
}
