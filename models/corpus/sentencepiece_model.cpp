#include "models/corpus/sentencepiece_model.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "kernels/engine/error.h"
#include "models/corpus/utf8.h"

namespace saccade {
namespace {

/// Protocol Buffers wire format: a field is a key (number << 3 | type) and a value.
struct Field {
  uint64_t number = 0, value = 0;  ///< value: of types varint, 32 and 64 bits
  std::string_view bytes;          ///< of type length-delimited
  enum Type { varint = 0, bits64 = 1, delimited = 2, bits32 = 5 } type = varint;
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  /// Empty at the end; throws DataError when the bytes are no message.
  std::optional<Field> next() {
    if (rest_.empty()) return {};
    Field field;
    const uint64_t key = varint();
    field.number = key >> 3;
    field.type = static_cast<Field::Type>(key & 7);
    if (field.number == 0) throw DataError("a field has number 0");
    switch (field.type) {
      case Field::varint: field.value = varint(); break;
      case Field::bits64: field.value = fixed(8); break;
      case Field::bits32: field.value = fixed(4); break;
      case Field::delimited: field.bytes = take(varint()); break;
      default: throw DataError("a field has the unknown type " + std::to_string(key & 7));
    }
    return field;
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) throw DataError("it is cut short");
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw DataError("a number has more than ten bytes");
  }

  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, take(size).data(), size);
    return value;
  }

  std::string_view rest_;
};

PieceEntry read_piece(std::string_view bytes) {
  PieceEntry piece;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->type == Field::delimited) piece.text = field->bytes;
    if (field->number == 2 && field->type == Field::bits32) std::memcpy(&piece.score, &field->value, sizeof piece.score);
    if (field->number == 3 && field->type == Field::varint) {
      if (field->value < 1 || field->value > 6) throw DataError("a piece has the unknown type " + std::to_string(field->value));
      piece.type = static_cast<PieceEntry::Type>(field->value);
    }
  }
  return piece;
}

uint64_t trained_vocabulary(std::string_view trainer_spec) {
  Message message(trainer_spec);
  uint64_t size = 0;
  while (const auto field = message.next())
    if (field->number == 4 && field->type == Field::varint) size = field->value;
  return size;
}

void check_piece(const PieceEntry& piece, size_t number, std::unordered_set<std::string>& seen) {
  const std::string where = "piece " + std::to_string(number);
  if (piece.text.empty()) throw DataError(where + " is empty");
  if (valid_utf8(piece.text) != piece.text.size()) throw DataError(where + " is not valid UTF-8");
  if (!std::isfinite(piece.score)) throw DataError(where + " has no finite score");
  if (!seen.insert(piece.text).second) throw DataError(where + " (" + piece.text + ") stands there twice");
}

std::vector<PieceEntry> read_checked(std::string_view content) {
  std::vector<PieceEntry> pieces;
  std::unordered_set<std::string> seen;
  std::optional<uint64_t> trained;
  bool normalizer = false;
  Message message(content);
  while (const auto field = message.next()) {
    if (field->type != Field::delimited) throw DataError("field " + std::to_string(field->number) + " is no message");
    if (field->number == 1) {
      pieces.push_back(read_piece(field->bytes));
      check_piece(pieces.back(), pieces.size() - 1, seen);
    }
    if (field->number == 2) trained = trained_vocabulary(field->bytes);
    if (field->number == 3) normalizer = true;
  }
  if (pieces.empty()) throw DataError("it has no pieces");
  if (!trained || !normalizer) throw DataError("it is cut short: the trainer's or the normalizer's settings are missing");
  if (pieces.size() < *trained)
    throw DataError("it has " + std::to_string(pieces.size()) + " pieces, its settings say " + std::to_string(*trained));
  return pieces;
}

}  // namespace

std::vector<PieceEntry> read_pieces(std::string_view content, const std::string& name) {
  try {
    return read_checked(content);
  } catch (const DataError& error) {
    throw DataError(name + ": no usable SentencePiece model: " + error.what());
  }
}

}  // namespace saccade
