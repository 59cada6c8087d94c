#include "analysis/runs/capture_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

#include "analysis/runs/files.h"
#include "analysis/runs/hdf5.h"
#include "models/corpus/corpus.h"

namespace saccade {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMostHeads = 65536;
constexpr int kDeflate = 1;  // maps shrink by less than a hundredth further at level 4

/// Under this name a file keeps Selection::tokens, as a map of one value: of a layer, or under layer −1 of all that have no own.
constexpr const char* kCandidateTokens = "candidate_size";
constexpr const char* kLayerMixers = "layer_mixers";
constexpr const char* kTargets = "targets";  ///< of generated tasks alone

std::string map_group(size_t index) { return "maps/" + std::to_string(index); }

struct StoredMap {
  std::string name;
  int64_t layer = 0;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Maps are large: what is written is not copied, and read back one at a time.
struct MapToWrite {
  std::string name;
  int64_t layer = 0;
  std::vector<int64_t> shape;
  std::span<const float> values;
};

/// Units and dimensions of a map of models/probe.h, in its order.
struct MapWords {
  std::string unit;
  std::vector<std::string> dimensions;
};
MapWords words_of(const std::string& name, size_t rank) {
  const std::optional<MapKind> kind = parse_map_kind(name);
  if (!kind) return {"1", {}};
  switch (*kind) {
    case MapKind::weights:
    case MapKind::soft_weights: return {"1", {"head", "query (token)", "source (token)"}};
    case MapKind::score: return {"1", {"head", "query (token)", "chunk"}};
    case MapKind::selected:
      return rank == 2 ? MapWords{"index, -1: none", {"head", "query (token)"}}
                       : MapWords{"index, -1: none", {"head", "query (token)", "choice"}};
    case MapKind::captured_mass:
    case MapKind::margin: return {"1", {"head", "query (token)"}};
    case MapKind::maxsim: return {"1", {"split", "earlier split"}};
    case MapKind::chosen: return {"index, -1: none", {"split", "choice"}};
    case MapKind::split_weights: return {"1", {"split", "choice"}};
  }
  return {"1", {}};
}

void write_map(const h5::Group& sample, size_t index, const MapToWrite& map, h5::ManySets& later) {
  const h5::Group group = sample.create(map_group(index));
  group.set_attribute("NX_class", "NXdata");
  group.set_attribute("signal", "values");
  group.set_attribute("title", map.name + (map.layer < 0 ? "" : ", layer " + std::to_string(map.layer)));
  group.set_attribute("name", map.name);
  group.set_attribute("layer", map.layer);
  group.write_later<float>("values", map.values, map.shape, kDeflate, later);
  const MapWords words = words_of(map.name, map.shape.size());
  group.set_attribute("units", words.unit, "values");
  group.set_attribute("long_name", map.name, "values");
  if (words.dimensions.size() == map.shape.size()) group.set_attribute("dimensions", words.dimensions);
  if (map.shape.size() >= 2) group.set_attribute("interpretation", "image", "values");
}

/// Whether a map of that kind over T tokens may have this shape (models/probe.h).
bool fits(MapKind kind, const std::vector<int64_t>& shape, int64_t tokens) {
  if (shape.empty() || std::any_of(shape.begin(), shape.end(), [&](int64_t d) { return d < 1 || d > std::max(tokens, kMostHeads); }))
    return false;
  const bool by_query = shape.size() >= 2 && shape[1] == tokens;
  switch (kind) {
    case MapKind::weights:
    case MapKind::soft_weights: return shape.size() == 3 && by_query && shape[2] == tokens;
    case MapKind::score: return shape.size() == 3 && by_query && shape[2] <= tokens;
    case MapKind::selected: return (shape.size() == 2 || shape.size() == 3) && by_query;
    case MapKind::captured_mass:
    case MapKind::margin: return shape.size() == 2 && by_query;
    case MapKind::maxsim: return shape.size() == 2 && shape[0] == shape[1] && shape[0] <= tokens;
    case MapKind::chosen:
    case MapKind::split_weights: return shape.size() == 2 && shape[0] <= tokens;
  }
  return false;
}

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

int64_t size_of(const std::vector<int64_t>& shape) { return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()); }

/// The shape is checked before any value is read.
StoredMap read_map(const h5::Group& group, int64_t tokens, int64_t most_values) {
  StoredMap map{group.text_attribute("name"), group.integer_attribute("layer"), group.dims("values"), {}};
  const std::optional<MapKind> kind = parse_map_kind(map.name);
  if (kind && !fits(*kind, map.shape, tokens)) group.fail("a map \"" + map.name + "\" of an odd shape", "values");
  if (map.shape.size() != 3 || size_of(map.shape) <= most_values) map.values = group.read<float>("values");
  return map;
}

/// Tokens in the candidates of each layer, once where they are the same in all. Elements need no number: a candidate is one token.
std::vector<StoredMap> stored_sizes(const std::map<int64_t, Selection>& selections) {
  std::vector<StoredMap> stored;
  bool same = true;
  for (const auto& [layer, selection] : selections) {
    if (selection.unit == Selection::Unit::element) continue;
    stored.push_back({kCandidateTokens, layer, {1}, {static_cast<float>(selection.tokens)}});
    same &= stored.back().values == stored.front().values;
  }
  if (!stored.empty() && same) stored.resize(1), stored.front().layer = -1;
  return stored;
}

/// Tokens in a chunk or split, told from the maps: the first files did not keep the number.
int64_t tokens_in_candidate(const CapturedMap& scores, int64_t length) {
  if (scores.kind == MapKind::maxsim) return (length + scores.shape.front() - 1) / scores.shape.front();
  const int64_t queries = scores.shape[1], chunks = scores.shape[2];
  if (scores.values.empty()) return length;  // stays in the file, which is newer than that
  for (int64_t t = 0; t < queries; ++t)      // chunk 0 is complete, and so a candidate, from the first query behind it
    if (std::isfinite(scores.values[static_cast<size_t>(t * chunks)])) return t;
  return length;
}

/// What the queries of each layer chose among, told from the maps of it.
std::map<int64_t, Selection> selections_of(const h5::Group& sample, const Capture& capture, const std::map<int64_t, int64_t>& sizes) {
  std::map<int64_t, Selection> selections;
  const auto size_of = [&](const CapturedMap& scores) {
    for (const int64_t layer : {scores.layer, int64_t{-1}})
      if (const auto kept = sizes.find(layer); kept != sizes.end()) return kept->second;
    return tokens_in_candidate(scores, static_cast<int64_t>(capture.tokens.size()));
  };
  for (const CapturedMap& map : capture.maps) {
    const bool chunks = map.kind == MapKind::score, splits = map.kind == MapKind::maxsim;
    if (map.kind == MapKind::selected) selections.emplace(map.layer, Selection{});
    if (!chunks && !splits) continue;
    if (map.shape.size() != (chunks ? 3 : 2)) sample.fail("scores of " + std::to_string(map.shape.size()) + " dimensions", "maps");
    selections[map.layer] = {chunks ? Selection::Unit::chunk : Selection::Unit::split, size_of(map)};
  }
  return selections;
}

/// Returns the sizes of candidates by layer.
std::map<int64_t, int64_t> read_maps(const h5::Group& sample, int64_t tokens, int64_t most_values,
                                     const std::function<void(int64_t index, CapturedMap)>& visit) {
  std::map<int64_t, int64_t> sizes;
  const int64_t count = sample.integer_attribute("map_count");
  for (int64_t i = 0; i < count; ++i) {
    const h5::Group group = sample.open(map_group(static_cast<size_t>(i)));
    StoredMap map = read_map(group, tokens, most_values);
    if (map.name == kCandidateTokens) {
      if (map.values.size() != 1 || !(map.values[0] >= 1)) group.fail("no number of tokens", "values");
      sizes[map.layer] = std::lround(map.values[0]);
      continue;
    }
    const std::optional<MapKind> kind = parse_map_kind(map.name);
    if (!kind) group.fail("a map of an unknown kind, \"" + map.name + "\"", "values");
    visit(i, {*kind, map.layer, std::move(map.shape), std::move(map.values)});
  }
  return sizes;
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

/// One target of every query, kNoTarget where nothing is asked.
void write_asked(const h5::Group& group, const Capture& capture) {
  std::vector<int32_t> targets(capture.tokens.size(), kNoTarget);
  for (const auto& [query, token] : *capture.asked) targets.at(static_cast<size_t>(query)) = token;
  group.write(kTargets, targets);
  group.set_attribute("units", "token, -1: nothing is asked", kTargets);
}

std::map<int64_t, int32_t> read_asked(const h5::Group& group, size_t tokens) {
  std::map<int64_t, int32_t> asked;
  const auto targets = group.read<int32_t>(kTargets);
  if (targets.size() != tokens) group.fail("tokens and targets differ in number", kTargets);
  for (size_t t = 0; t < targets.size(); ++t)
    if (targets[t] != kNoTarget) asked[static_cast<int64_t>(t)] = targets[t];
  return asked;
}

void write_sample(const h5::Group& root, size_t index, const Capture& capture, h5::ManySets& later) {
  const h5::Group group = root.create("sample" + std::to_string(index));
  group.set_attribute("NX_class", "NXentry");
  group.set_attribute("domain", capture.domain);
  group.set_attribute("sample", capture.sample);
  group.set_attribute("step", capture.at.step);
  group.set_attribute("tokens", capture.at.tokens);
  group.set_attribute("flops", capture.at.flops);
  group.set_attribute("seconds", capture.at.seconds);
  std::vector<MapToWrite> maps;
  const std::vector<StoredMap> sizes = stored_sizes(capture.selections);
  for (const CapturedMap& map : capture.maps) maps.push_back({to_string(map.kind), map.layer, map.shape, map.values});
  for (const StoredMap& size : sizes) maps.push_back({size.name, size.layer, size.shape, size.values});
  group.set_attribute("map_count", static_cast<int64_t>(maps.size()));
  group.write("text_tokens", capture.tokens);
  write_pieces(group, capture.pieces);
  if (!capture.layer_mixers.empty()) group.write_texts(kLayerMixers, capture.layer_mixers);
  if (capture.asked) write_asked(group, capture);
  group.write("token_losses", capture.token_losses);
  group.set_attribute("units", "nats", "token_losses");
  for (size_t i = 0; i < maps.size(); ++i) write_map(group, i, maps[i], later);
  if (!maps.empty()) group.set_attribute("default", map_group(0));
}

/// All but the maps and what they tell.
Capture read_text(const h5::Group& group) {
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
  if (group.contains(kTargets)) capture.asked = read_asked(group, capture.tokens.size());
  if (group.contains(kLayerMixers)) capture.layer_mixers = group.read_texts(kLayerMixers);
  return capture;
}

/// Where the maps of a sample stand in its file.
using MapPlaces = std::map<std::pair<MapKind, int64_t>, int64_t>;

Capture read_sample(const h5::Group& group, int64_t most_values = kAll, MapPlaces* places = nullptr) {
  Capture capture = read_text(group);
  const std::map<int64_t, int64_t> sizes =
      read_maps(group, static_cast<int64_t>(capture.tokens.size()), most_values, [&](int64_t index, CapturedMap map) {
        if (places) (*places)[{map.kind, map.layer}] = index;
        capture.maps.push_back(std::move(map));
      });
  capture.selections = selections_of(group, capture, sizes);
  return capture;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); });
}

/// But for the values of maps, which are compared later.
bool holds(const h5::Group& group, const Capture& written, h5::ManySets& later) {
  const Capture text = read_text(group);
  size_t maps = 0, equal = 0;
  const std::map<int64_t, int64_t> sizes =
      read_maps(group, static_cast<int64_t>(text.tokens.size()), 0, [&](int64_t index, const CapturedMap& map) {
        if (maps < written.maps.size()) {
          const CapturedMap& wanted = written.maps[maps];
          equal += map.kind == wanted.kind && map.layer == wanted.layer && map.shape == wanted.shape;
          group.open(map_group(static_cast<size_t>(index))).compare_later<float>("values", wanted.values, later);
        }
        ++maps;
      });
  return maps == written.maps.size() && equal == maps && selections_of(group, written, sizes) == written.selections &&
         text.domain == written.domain && text.sample == written.sample && text.layer_mixers == written.layer_mixers &&
         text.tokens == written.tokens && text.asked == written.asked && text.pieces == written.pieces &&
         same_bits(text.token_losses, written.token_losses);
}

int64_t bytes_of(const std::vector<Capture>& captures) {
  size_t bytes = 1 << 16;
  for (const Capture& capture : captures) {
    bytes += capture.tokens.size() * 64;
    for (const CapturedMap& map : capture.maps) bytes += map.values.size() * sizeof(float) + 4096;
  }
  return static_cast<int64_t>(bytes);
}

void each_sample(const std::filesystem::path& path, h5::Origin origin, const std::function<void(const h5::Group&)>& visit) {
  const h5::Reader file(path, origin);
  if (file.root().integer_attribute("format_version") != kFormat) file.root().fail("another format version", ".");
  const int64_t count = file.root().integer_attribute("sample_count");
  for (int64_t i = 0; i < count; ++i) visit(file.root().open("sample" + std::to_string(i)));
}

/// Opens the file anew for every kBytesAtOnce that are read: what one reader may read of a file is bounded (h5::Budget, h5::Helper).
class MapsOfFile : public StoredMaps {
 public:
  MapsOfFile(std::filesystem::path path, std::string sample, MapPlaces places)
      : path_(std::move(path)), sample_(std::move(sample)), places_(std::move(places)) {}

  std::vector<float> rows(const CapturedMap& map, int64_t head, int64_t first, int64_t count) const override {
    const std::lock_guard lock(mutex_);
    const int64_t bytes = count * map.shape.at(2) * static_cast<int64_t>(sizeof(float));
    if (!file_ || read_ + bytes > kBytesAtOnce) file_ = std::make_unique<h5::Reader>(path_), read_ = 0;
    read_ += bytes;
    try {
      return file_->root().open(sample_).read_part<float>(map_group(static_cast<size_t>(places_.at({map.kind, map.layer}))) + "/values",
                                                          {head, first, 0}, {1, count, map.shape[2]});
    } catch (...) {
      file_.reset();
      throw;
    }
  }

 private:
  static constexpr int64_t kBytesAtOnce = h5::Budget::kLeastBudget;
  std::filesystem::path path_;
  std::string sample_;
  MapPlaces places_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<h5::Reader> file_;
  mutable int64_t read_ = 0;
};

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
    h5::ManySets maps;
    for (size_t i = 0; i < captures.size(); ++i) write_sample(file.root(), i, captures[i], maps);
    maps.write();
    file.begin_write_back();
    file.close();
    size_t samples = 0, equal = 0;
    bool same = true;
    each_sample(aside, h5::Origin::this_process, [&](const h5::Group& group) {
      h5::ManySets written;
      equal += samples < captures.size() && holds(group, captures[samples], written);
      same = written.same() && same;
      ++samples;
    });
    if (samples != captures.size() || equal != samples || !same) throw DataError(path.string() + ": read back other data than written");
  });
}

std::vector<Capture> open_captures(const std::filesystem::path& path, int64_t most_values) {
  std::vector<Capture> captures;
  each_sample(path, h5::Origin::anyone, [&](const h5::Group& group) {
    MapPlaces places;
    Capture capture = read_sample(group, most_values, &places);
    capture.stored = std::make_shared<MapsOfFile>(path, "sample" + std::to_string(captures.size()), std::move(places));
    captures.push_back(std::move(capture));
  });
  return captures;
}

std::vector<Capture> read_captures(const std::filesystem::path& path) {
  std::vector<Capture> captures;
  each_sample(path, h5::Origin::anyone, [&](const h5::Group& group) { captures.push_back(read_sample(group)); });
  return captures;
}

}  // namespace saccade
