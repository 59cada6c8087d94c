// encode_strings TOKENIZER STRINGS TOKENS: encodes strings for tokenizer_agreement.py, which compares the tokens with other programs'.
// STRINGS is a list of (length u32, bytes), TOKENS one of (count u32, tokens i32), both little-endian. Prints, as JSON, the seconds that
// encoding took of the processor, on one thread, and how many strings decoding did not give back.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/corpus/tokenizer.h"

using namespace saccade;

namespace {

std::vector<std::string> read_strings(const std::string& path) {
  const std::string all = read_file(path);
  std::vector<std::string> strings;
  for (size_t at = 0; at < all.size();) {
    uint32_t size = 0;
    std::memcpy(&size, all.data() + at, sizeof size);
    strings.push_back(all.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return strings;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) return std::fputs("usage: encode_strings TOKENIZER STRINGS TOKENS\n", stderr), 2;
  const auto tokenizer = open_tokenizer_file(argv[1]);
  const std::vector<std::string> strings = read_strings(argv[2]);
  std::vector<std::vector<int32_t>> encoded;
  const std::clock_t start = std::clock();
  for (const std::string& text : strings) encoded.push_back(tokenizer->encode(text));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::ofstream out(argv[3], std::ios::binary);
  size_t others = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    others += tokenizer->decode(encoded[i]) != strings[i];
    const auto count = static_cast<uint32_t>(encoded[i].size());
    out.write(reinterpret_cast<const char*>(&count), sizeof count);
    out.write(reinterpret_cast<const char*>(encoded[i].data()), static_cast<std::streamsize>(encoded[i].size() * sizeof(int32_t)));
  }
  out.close();
  std::printf("{\"seconds\": %.4f, \"decoded_otherwise\": %zu, \"vocabulary\": %lld}\n", seconds, others,
              static_cast<long long>(tokenizer->vocabulary()));
  return out ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
