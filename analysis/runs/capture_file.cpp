#include "analysis/runs/capture_file.h"

#include <algorithm>
#include <bit>

#include "analysis/runs/files.h"
#include "analysis/runs/hdf5.h"

namespace saccade {
namespace {

constexpr int64_t kFormat = 1;

std::string map_group(size_t index) { return "maps/" + std::to_string(index); }

void write_map(const h5::Group& sample, size_t index, const CapturedMap& map) {
  const h5::Group group = sample.create(map_group(index));
  group.set_attribute("NX_class", "NXdata");
  group.set_attribute("signal", "values");
  group.set_attribute("title", map.name + (map.layer < 0 ? "" : ", layer " + std::to_string(map.layer)));
  group.set_attribute("name", map.name);
  group.set_attribute("layer", map.layer);
  group.write<float>("values", map.values, map.shape);
  if (map.shape.size() >= 2) group.set_attribute("interpretation", "image", "values");
}

CapturedMap read_map(const h5::Group& group) {
  CapturedMap map{group.text_attribute("name"), group.integer_attribute("layer"), group.dims("values"), group.read<float>("values")};
  return map;
}

/// Pieces are bytes, not always whole characters, so they are kept as bytes with the end of each.
void write_pieces(const h5::Group& group, const std::vector<std::string>& pieces) {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> ends;
  for (const std::string& piece : pieces) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    ends.push_back(static_cast<int64_t>(bytes.size()));
  }
  group.write("piece_bytes", bytes);
  group.write("piece_ends", ends);
}

std::vector<std::string> read_pieces(const h5::Group& group) {
  const auto bytes = group.read<uint8_t>("piece_bytes");
  std::vector<std::string> pieces;
  int64_t begin = 0;
  for (const int64_t end : group.read<int64_t>("piece_ends")) {
    if (end < begin || end > static_cast<int64_t>(bytes.size())) group.fail("ends out of order", "piece_ends");
    pieces.emplace_back(bytes.begin() + begin, bytes.begin() + end);
    begin = end;
  }
  return pieces;
}

void write_sample(const h5::Group& root, size_t index, const Capture& capture) {
  const h5::Group group = root.create("sample" + std::to_string(index));
  group.set_attribute("NX_class", "NXentry");
  group.set_attribute("domain", capture.domain);
  group.set_attribute("sample", capture.sample);
  group.set_attribute("step", capture.at.step);
  group.set_attribute("tokens", capture.at.tokens);
  group.set_attribute("flops", capture.at.flops);
  group.set_attribute("seconds", capture.at.seconds);
  group.set_attribute("map_count", static_cast<int64_t>(capture.maps.size()));
  group.write("text_tokens", capture.tokens);
  write_pieces(group, capture.pieces);
  group.write("token_losses", capture.token_losses);
  group.set_attribute("units", "nats", "token_losses");
  for (size_t i = 0; i < capture.maps.size(); ++i) write_map(group, i, capture.maps[i]);
  if (!capture.maps.empty()) group.set_attribute("default", map_group(0));
}

Capture read_sample(const h5::Group& group) {
  Capture capture;
  capture.domain = group.text_attribute("domain");
  capture.sample = group.integer_attribute("sample");
  capture.at = {group.integer_attribute("step"), group.integer_attribute("tokens"), group.real_attribute("flops"),
                group.real_attribute("seconds")};
  capture.tokens = group.read<int32_t>("text_tokens");
  capture.pieces = read_pieces(group);
  capture.token_losses = group.read<float>("token_losses");
  if (capture.pieces.size() != capture.tokens.size() || capture.token_losses.size() != capture.tokens.size())
    group.fail("tokens, pieces and losses differ in number", ".");
  const int64_t maps = group.integer_attribute("map_count");
  for (int64_t i = 0; i < maps; ++i) capture.maps.push_back(read_map(group.open(map_group(static_cast<size_t>(i)))));
  return capture;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); });
}

bool same(const Capture& a, const Capture& b) {
  const auto same_map = [](const CapturedMap& x, const CapturedMap& y) {
    return x.name == y.name && x.layer == y.layer && x.shape == y.shape && same_bits(x.values, y.values);
  };
  return a.domain == b.domain && a.sample == b.sample && a.tokens == b.tokens && a.pieces == b.pieces &&
         same_bits(a.token_losses, b.token_losses) && std::equal(a.maps.begin(), a.maps.end(), b.maps.begin(), b.maps.end(), same_map);
}

int64_t bytes_of(const std::vector<Capture>& captures) {
  size_t bytes = 1 << 16;
  for (const Capture& capture : captures) {
    bytes += capture.tokens.size() * 64;
    for (const CapturedMap& map : capture.maps) bytes += map.values.size() * sizeof(float) + 4096;
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

void write_captures(const std::filesystem::path& path, const std::vector<Capture>& captures) {
  require_free_space(path.parent_path(), bytes_of(captures), path.filename().string());
  replace_file(path, [&](const std::filesystem::path& aside) {
    h5::Writer file(aside);
    file.root().set_attribute("NX_class", "NXroot");
    file.root().set_attribute("creator", "saccade " SACCADE_VERSION);
    file.root().set_attribute("format_version", kFormat);
    file.root().set_attribute("sample_count", static_cast<int64_t>(captures.size()));
    if (!captures.empty()) file.root().set_attribute("default", "sample0");
    for (size_t i = 0; i < captures.size(); ++i) write_sample(file.root(), i, captures[i]);
    file.close();
    const auto back = read_captures(aside);
    if (!std::equal(captures.begin(), captures.end(), back.begin(), back.end(), same))
      throw DataError(path.string() + ": read back other data than written");
  });
}

std::vector<Capture> read_captures(const std::filesystem::path& path) {
  const h5::Reader file(path);
  if (file.root().integer_attribute("format_version") != kFormat) file.root().fail("another format version", ".");
  std::vector<Capture> captures;
  const int64_t count = file.root().integer_attribute("sample_count");
  for (int64_t i = 0; i < count; ++i) captures.push_back(read_sample(file.root().open("sample" + std::to_string(i))));
  return captures;
}

}  // namespace saccade
