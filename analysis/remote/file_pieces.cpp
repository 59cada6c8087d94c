#include "analysis/remote/file_pieces.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernels/engine/error.h"
#include "models/corpus/sha256.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFirst = 4096, kLast = 65536;
constexpr int64_t kMostInAnswer = 512 * 1024;  ///< half a second at 1 MB/s: others are not held up for longer
constexpr size_t kMostPieces = 500;

int64_t size_of(const Descriptor& file) {
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) throw DataError(std::string("cannot ask for the size of a file: ") + std::strerror(errno));
  return state.st_size;
}

/// Fewer where the file ends.
std::string bytes_at(const Descriptor& file, int64_t from, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::pread(file.get(), bytes.data() + have, bytes.size() - have, from + static_cast<int64_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(std::string("cannot read a file: ") + std::strerror(errno));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

struct Piece {
  std::string file, prefix;
  int64_t from = 0;
};

Piece piece_of(const Json& request) {
  Piece piece{request.at("file").get<std::string>(), request.value("prefix", ""), request.value("from", int64_t{0})};
  if (piece.from < 0) throw UsageError("/from is negative");
  return piece;
}

Json read_piece(const ServedFolder& folder, Piece piece, std::string& body) {
  const Descriptor file = folder.open(piece.file);
  if (piece.from > 0 && prefix_hash(file, piece.from) != piece.prefix) piece.from = 0;
  const int64_t room = kMostInAnswer - static_cast<int64_t>(body.size()), total = size_of(file);
  const std::string bytes = bytes_at(file, piece.from, std::clamp<int64_t>(total - piece.from, 0, room));
  body += bytes;
  return {{"file", piece.file}, {"from", piece.from}, {"size", bytes.size()}, {"total", total}};
}

}  // namespace

std::string prefix_hash(const Descriptor& file, int64_t size) {
  if (size_of(file) < size) return {};
  Sha256 hash;
  hash.update(bytes_at(file, 0, std::min(size, kFirst)));
  const int64_t from = std::max<int64_t>(0, size - kLast);
  hash.update(bytes_at(file, from, size - from));
  return hex(hash.finish());
}

std::string whole_hash(const Descriptor& file) {
  Sha256 hash;
  for (int64_t at = 0;;) {
    const std::string bytes = bytes_at(file, at, int64_t{1} << 20);
    if (bytes.empty()) return hex(hash.finish());
    hash.update(bytes);
    at += static_cast<int64_t>(bytes.size());
  }
}

Frame read_pieces(const ServedFolder& folder, const Json& request) {
  const Json& pieces = request.at("pieces");
  if (!pieces.is_array() || pieces.size() > kMostPieces) throw UsageError("/pieces is no list of 500 at most");
  Frame answer;
  answer.head["pieces"] = Json::array();
  for (const Json& each : pieces) {
    const Piece piece = piece_of(each);
    try {
      answer.head["pieces"].push_back(read_piece(folder, piece, answer.body));
    } catch (const DataError& error) {
      answer.head["pieces"].push_back({{"file", piece.file}, {"problem", std::string(error.what()).substr(0, 300)}});
    }
  }
  return answer;
}

}  // namespace saccade
