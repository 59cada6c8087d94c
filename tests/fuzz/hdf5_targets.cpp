#include <map>
#include <variant>

#include "analysis/runs/capture_file.h"
#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/hdf5.h"
#include "tests/fuzz/targets.h"

namespace saccade::test {
namespace {

struct Floats {
  h5::Dims dims;
  std::vector<float> values;
};
/// An attribute (text, number) or a data set.
using Value = std::variant<std::string, int64_t, double, Floats, std::vector<int64_t>, std::vector<int32_t>, std::vector<uint8_t>,
                           std::vector<std::string>>;
/// By "GROUP/NAME" of a data set and "GROUP@NAME" of an attribute.
using Contents = std::vector<std::pair<std::string, Value>>;

void write_value(const h5::Group& group, const std::string& name, bool is_attribute, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    is_attribute ? group.set_attribute(name, *text) : group.write_text(name, *text);
  else if (const auto* number = std::get_if<int64_t>(&value))
    is_attribute ? group.set_attribute(name, *number) : group.write(name, std::vector<int64_t>{*number});
  else if (const auto* real = std::get_if<double>(&value))
    is_attribute ? group.set_attribute(name, *real) : group.write(name, std::vector<double>{*real});
  else if (const auto* floats = std::get_if<Floats>(&value))
    group.write<float>(name, floats->values, floats->dims);
  else if (const auto* longs = std::get_if<std::vector<int64_t>>(&value))
    group.write(name, *longs);
  else if (const auto* integers = std::get_if<std::vector<int32_t>>(&value))
    group.write(name, *integers);
  else if (const auto* bytes = std::get_if<std::vector<uint8_t>>(&value))
    group.write(name, *bytes);
  else if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    group.write_texts(name, *texts);
}

std::filesystem::path write_file(const std::string& name, const Contents& contents) {
  const std::filesystem::path path = written(name, {});
  h5::Writer file(path);
  std::map<std::string, h5::Group> groups;
  for (const auto& [place, value] : contents) {
    const size_t at = place.find_last_of("@/");
    const std::string group = at == place.npos || at == 0 ? "" : place.substr(0, at);
    if (!group.empty() && !groups.contains(group)) groups.emplace(group, file.root().create(group));
    write_value(group.empty() ? file.root() : groups.at(group), place.substr(at + 1), place[at] == '@', value);
  }
  file.close();
  return path;
}

/// Values of the kind that the first byte says, from the others.
Value value_of(unsigned char kind, std::string_view bytes) {
  const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0; };
  int64_t number = 0;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 8); ++i)
    number = static_cast<int64_t>(static_cast<uint64_t>(number) << 8 | byte(i));
  switch (kind % 8) {
    case 0: return std::string(bytes.substr(0, bytes.find('\0')));
    case 1: return number;
    case 2: return static_cast<double>(number) / 7;
    case 3: {
      Floats floats;
      int64_t size = 1;
      for (size_t i = 1; i <= std::min<size_t>(byte(0) % 6, bytes.size()); ++i)
        if (size * byte(i) <= 4096) floats.dims.push_back(byte(i)), size *= byte(i);
      if (floats.dims.empty()) floats.dims = {size};
      floats.values.assign(static_cast<size_t>(size), static_cast<float>(byte(1)));
      return floats;
    }
    case 4: return std::vector<int64_t>(byte(0), number);
    case 5: return std::vector<int32_t>(byte(0), static_cast<int32_t>(number));
    case 6: return std::vector<uint8_t>(bytes.begin(), bytes.end());
    default: return std::vector<std::string>(byte(0) % 8, std::string(bytes.substr(0, bytes.find('\0'))));
  }
}

/// Changes of a file's contents: which (a byte), of which kind its value is then (a byte), how many bytes make it (a byte), those bytes.
/// Attributes are texts and numbers. Kind 255 leaves it out.
Contents changed(Contents contents, std::string_view bytes) {
  for (size_t at = 0; at + 3 <= bytes.size();) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    auto& [place, value] = contents[byte(0) % contents.size()];
    const bool is_attribute = place.find('@') != place.npos;
    const std::string_view payload = bytes.substr(at + 3, byte(2));
    if (byte(1) == 255)
      place.clear();
    else
      value = value_of(is_attribute ? byte(1) % 3 : byte(1), payload);
    at += 3 + payload.size();
    std::erase_if(contents, [](const auto& content) { return content.first.empty(); });
    if (contents.empty()) break;
  }
  return contents;
}

void captures(std::string_view bytes) {
  const Contents valid{{"@format_version", int64_t{1}},
                       {"@sample_count", int64_t{1}},
                       {"sample0@domain", "prose"},
                       {"sample0@sample", int64_t{0}},
                       {"sample0@step", int64_t{4}},
                       {"sample0@tokens", int64_t{512}},
                       {"sample0@flops", 1e6},
                       {"sample0@seconds", 0.5},
                       {"sample0@map_count", int64_t{3}},
                       {"sample0/text_tokens", std::vector<int32_t>{1, 2, 3, 4}},
                       {"sample0/piece_bytes", std::vector<uint8_t>{'a', 'b', 'c', 'd'}},
                       {"sample0/piece_ends", std::vector<int64_t>{1, 2, 3, 4}},
                       {"sample0/token_losses", Floats{{4}, {1, 2, 3, 4}}},
                       {"sample0/layer_mixers", std::vector<std::string>{"attention"}},
                       {"sample0/targets", std::vector<int32_t>{-1, 3, -1, 2}},
                       {"sample0/maps/0@name", "weights"},
                       {"sample0/maps/0@layer", int64_t{0}},
                       {"sample0/maps/0/values", Floats{{1, 4, 4}, std::vector<float>(16, 0.25f)}},
                       {"sample0/maps/1@name", "score"},
                       {"sample0/maps/1@layer", int64_t{1}},
                       {"sample0/maps/1/values", Floats{{1, 4, 2}, std::vector<float>(8, 0.5f)}},
                       {"sample0/maps/2@name", "candidate_size"},
                       {"sample0/maps/2@layer", int64_t{-1}},
                       {"sample0/maps/2/values", Floats{{1}, {2}}}};
  const std::filesystem::path path = write_file("captures.h5", changed(valid, bytes));
  for (const Capture& capture : open_captures(path, 8)) {
    require(capture.pieces.size() == capture.tokens.size(), "pieces for other tokens");
    for (const CapturedMap& map : capture.maps)
      if (map.shape.size() == 3 && map.values.empty() && map.shape[0] > 0) capture.stored->rows(map, 0, 0, map.shape[1]);
  }
}

/// The sum of what is in the file is that of nothing, so that all is read and then refused.
void checkpoint(std::string_view bytes) {
  const Contents valid{{"@format_version", int64_t{1}},
                       {"@step", int64_t{4}},
                       {"@tokens", int64_t{512}},
                       {"@data_position", int64_t{8}},
                       {"@flops", 1e6},
                       {"@seconds", 0.5},
                       {"@loss", 2.5},
                       {"@learning_rate", 0.001},
                       {"@gradient_norm", 1.0},
                       {"@tokens_per_second", 100.0},
                       {"@corpus_hash", "c"},
                       {"@tokenizer_name", "bytes"},
                       {"@tokenizer_hash", "t"},
                       {"@sha256", "0"},
                       {"/config", "{\"name\": \"tiny\"}"},
                       {"/tokenizer_model", std::vector<uint8_t>{}},
                       {"/parameters", std::vector<std::string>{"w"}},
                       {"/optimizer_state", std::vector<std::string>{"first_moments"}},
                       {"weights/w", Floats{{2, 3}, std::vector<float>(6, 0.5f)}},
                       {"first_moments/w", Floats{{2, 3}, std::vector<float>(6, 0.5f)}}};
  const std::filesystem::path path = write_file("checkpoint.h5", changed(valid, bytes));
  checkpoint_hash(path);
  read_checkpoint(path);
  require(false, "a checkpoint with a wrong sum was accepted");
}

}  // namespace

std::vector<FuzzTarget> hdf5_targets() { return {{"captures", captures, 100}, {"checkpoint", checkpoint, 100}}; }

}  // namespace saccade::test
