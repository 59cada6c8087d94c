#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saccade {

/// What a SentencePiece model file (protobuf message ModelProto) says about its pieces, read from the wire format, because the
/// library loads nearly any damaged file without an error and does not install the message's header.
struct PieceEntry {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string text;
  float score = 0;
  Type type = Type::normal;
};

/// Throws DataError "NAME: …" when the file is cut short, malformed or inconsistent in itself.
std::vector<PieceEntry> read_pieces(std::string_view content, const std::string& name);

}  // namespace saccade
