#include "analysis/runs/checkpoint_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <future>

#include "analysis/runs/files.h"
#include "analysis/runs/hdf5.h"
#include "models/config_text.h"
#include "models/corpus/sha256.h"

namespace saccade {
namespace {

constexpr int64_t kFormat = 1;
constexpr int kDeflate = 0;  // weights shrink by a seventh at the most, which takes some fifty times as long as to write them

constexpr const char *kWeights = "weights", *kParameters = "parameters";
constexpr const char* kChoices = "choices";
constexpr const char* kGroups = "optimizer_state";  ///< names of the optimizer's folders; files without it have those of AdamW

struct RealField {
  const char* name;
  double StepRecord::*value;
};
constexpr std::array<RealField, 6> kReals = {{{"flops", &StepRecord::flops},
                                              {"seconds", &StepRecord::seconds},
                                              {"loss", &StepRecord::loss},
                                              {"learning_rate", &StepRecord::learning_rate},
                                              {"gradient_norm", &StepRecord::gradient_norm},
                                              {"tokens_per_second", &StepRecord::tokens_per_second}}};

/// SHA-256 over all contents in a fixed order, every text and number with its length before it.
class ContentDigest {
 public:
  void add(std::string_view text) {
    sha_.update(static_cast<uint64_t>(text.size()));
    sha_.update(text);
  }
  void add_header(const Checkpoint& c) {
    for (const std::string& text : {c.config.dump(), c.corpus_hash, c.tokenizer_name, c.tokenizer_hash, c.tokenizer_model}) add(text);
    sha_.update(static_cast<uint64_t>(c.state.record.step));
    sha_.update(static_cast<uint64_t>(c.state.record.tokens));
    sha_.update(c.state.data_position);
    for (const RealField& field : kReals) sha_.update(std::bit_cast<uint64_t>(c.state.record.*field.value));
  }
  void add_tensor(std::string_view folder, const std::string& name, const Tensor& tensor) {
    add(folder);
    add(name);
    add(to_string(tensor.dtype()));
    add(to_string(tensor.shape()));
    add({static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes())});
  }
  void add_tensors(const std::vector<TensorGroup>& folders) {
    for (const TensorGroup& folder : folders)
      for (const NamedTensor& named : folder.tensors) add_tensor(folder.name, named.name, named.tensor);
  }
  void add_choices(const ProbedChoices& sequences) {
    for (const std::vector<ChosenSources>& sequence : sequences)
      for (const ChosenSources& c : sequence) {
        add("choices");
        for (const int64_t n : {c.layer, c.heads, c.queries, c.per_query}) sha_.update(static_cast<uint64_t>(n));
        add({reinterpret_cast<const char*>(c.values.data()), c.values.size() * sizeof(int32_t)});
      }
  }
  std::string finish() { return hex(sha_.finish()); }

 private:
  Sha256 sha_;
};

void write_header(const h5::Group& root, const Checkpoint& c) {
  root.set_attribute("creator", "saccade " SACCADE_VERSION);
  root.set_attribute("format_version", kFormat);
  root.set_attribute("step", c.state.record.step);
  root.set_attribute("tokens", c.state.record.tokens);
  root.set_attribute("data_position", std::bit_cast<int64_t>(c.state.data_position));
  for (const RealField& field : kReals) root.set_attribute(field.name, c.state.record.*field.value);
  root.set_attribute("corpus_hash", c.corpus_hash);
  root.set_attribute("tokenizer_name", c.tokenizer_name);
  root.set_attribute("tokenizer_hash", c.tokenizer_hash);
  root.write_text("config", c.config.dump());
  root.write("tokenizer_model", std::vector<uint8_t>(c.tokenizer_model.begin(), c.tokenizer_model.end()));
}

Checkpoint read_header(const h5::Group& root) {
  if (root.integer_attribute("format_version") != kFormat) root.fail("another format version", ".");
  Checkpoint c;
  c.state.record.step = root.integer_attribute("step");
  c.state.record.tokens = root.integer_attribute("tokens");
  c.state.data_position = std::bit_cast<uint64_t>(root.integer_attribute("data_position"));
  for (const RealField& field : kReals) c.state.record.*field.value = root.real_attribute(field.name);
  c.corpus_hash = root.text_attribute("corpus_hash");
  c.tokenizer_name = root.text_attribute("tokenizer_name");
  c.tokenizer_hash = root.text_attribute("tokenizer_hash");
  c.config = parse_json_or_discard(root.read_text("config"));
  if (c.config.is_discarded()) root.fail("damaged JSON", "config");
  const auto model = root.read<uint8_t>("tokenizer_model");
  c.tokenizer_model.assign(model.begin(), model.end());
  return c;
}

h5::Dims dims_of(const Tensor& tensor) {
  h5::Dims dims;
  for (int i = 0; i < tensor.rank(); ++i) dims.push_back(tensor.dim(i));
  return dims;
}

template <class T>
std::span<const T> values_of(const Tensor& tensor) {
  return {tensor.data<T>(), static_cast<size_t>(tensor.size())};
}

void write_tensor(const h5::Group& group, const NamedTensor& named, h5::ManySets& later) {
  const Tensor& tensor = named.tensor;
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    group.write_later<T>(named.name, values_of<T>(tensor), dims_of(tensor), kDeflate, later);
  });
}

Tensor read_tensor(const h5::Group& group, const std::string& name, Arena& arena) {
  Shape shape;
  const h5::Dims dims = group.dims(name);
  if (dims.size() > 5) group.fail("more than five dimensions", name);
  for (const int64_t d : dims) shape.push_back(d);
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> values = group.read<T>(name);
    Tensor tensor = arena.allocate(shape, dtype_of<T>());
    std::copy(values.begin(), values.end(), tensor.data<T>());
    return tensor;
  };
  return group.is_double(name) ? fill(double{}) : fill(float{});
}

/// Hands every tensor of a file to `visit`, one at a time, with its folder. Only the weights are there of every parameter.
template <class Visit>
void each_tensor(const h5::Group& root, Visit visit) {
  const std::vector<std::string> names = root.read_texts(kParameters);
  std::vector<std::string> folders{kWeights, "first_moments", "second_moments"};
  if (root.contains(kGroups)) {
    const std::vector<std::string> groups = root.read_texts(kGroups);
    folders.assign({kWeights});
    folders.insert(folders.end(), groups.begin(), groups.end());
  }
  Arena arena(Device::cpu());
  for (const std::string& folder : folders) {
    const h5::Group group = root.open(folder);
    for (const std::string& name : names)
      if (folder == kWeights || !root.contains(kGroups) || group.contains(name))
        visit(folder, NamedTensor{name, read_tensor(group, name, arena)});
  }
}

/// choices/sequence-S/layer-L, [heads, queries, per query].
void write_choices(const h5::Group& root, const ProbedChoices& sequences) {
  if (sequences.empty()) return;
  const h5::Group all = root.create(kChoices);
  all.set_attribute("sequences", static_cast<int64_t>(sequences.size()));
  for (size_t s = 0; s < sequences.size(); ++s) {
    const h5::Group group = all.create("sequence-" + std::to_string(s));
    std::vector<std::string> layers;
    for (const ChosenSources& c : sequences[s]) {
      layers.push_back(std::to_string(c.layer));
      group.write<int32_t>("layer-" + layers.back(), c.values, {c.heads, c.queries, c.per_query});
    }
    group.write_texts("layers", layers);
  }
}

ProbedChoices read_choices(const h5::Group& root) {
  if (!root.contains(kChoices)) return {};
  const h5::Group all = root.open(kChoices);
  ProbedChoices sequences;
  for (int64_t s = 0; s < all.integer_attribute("sequences"); ++s) {
    const h5::Group group = all.open("sequence-" + std::to_string(s));
    std::vector<ChosenSources> layers;
    for (const std::string& layer : group.read_texts("layers")) {
      const std::string name = "layer-" + layer;
      const h5::Dims dims = group.dims(name);
      if (dims.size() != 3) group.fail("not three dimensions", name);
      layers.push_back({std::strtoll(layer.c_str(), nullptr, 10), dims[0], dims[1], dims[2], group.read<int32_t>(name)});
    }
    sequences.push_back(std::move(layers));
  }
  return sequences;
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& list) {
  std::vector<std::string> names;
  for (const Named& named : list) names.push_back(named.name);
  return names;
}

/// The tensors of a state with their folders.
std::vector<TensorGroup> folders_of(const TrainingState& state) {
  std::vector<TensorGroup> folders{{kWeights, state.weights}};
  folders.insert(folders.end(), state.optimizer.begin(), state.optimizer.end());
  return folders;
}

Checkpoint read_checked(const std::filesystem::path& path) {
  const h5::Reader file(path);
  Checkpoint checkpoint = read_header(file.root());
  ContentDigest digest;
  digest.add_header(checkpoint);
  std::vector<TensorGroup>& groups = checkpoint.state.optimizer;
  each_tensor(file.root(), [&](const std::string& folder, NamedTensor named) {
    digest.add_tensor(folder, named.name, named.tensor);
    if (folder != kWeights && (groups.empty() || groups.back().name != folder)) groups.push_back({folder, {}});
    (folder == kWeights ? checkpoint.state.weights : groups.back().tensors).push_back(std::move(named));
  });
  checkpoint.choices = read_choices(file.root());
  digest.add_choices(checkpoint.choices);
  if (digest.finish() != file.root().text_attribute("sha256")) file.root().fail("the contents differ from their SHA-256", ".");
  return checkpoint;
}

std::string digest_of(const Checkpoint& checkpoint, const std::vector<TensorGroup>& folders) {
  ContentDigest digest;
  digest.add_header(checkpoint);
  digest.add_tensors(folders);
  digest.add_choices(checkpoint.choices);
  return digest.finish();
}

/// The SHA-256 that was written, which is made beside.
std::string write_file(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  const std::vector<TensorGroup> folders = folders_of(checkpoint.state);
  auto digest = std::async([&] { return digest_of(checkpoint, folders); });  // here, in the end, where no thread can be started
  h5::Writer file(path);
  write_header(file.root(), checkpoint);
  file.root().write_texts(kParameters, names_of(checkpoint.state.weights));
  file.root().write_texts(kGroups, names_of(checkpoint.state.optimizer));
  for (const TensorGroup& folder : folders) {
    const h5::Group group = file.root().create(folder.name);
    h5::ManySets later;
    for (const NamedTensor& named : folder.tensors) write_tensor(group, named, later);
    later.write();
    file.begin_write_back();
  }
  write_choices(file.root(), checkpoint.choices);
  std::string sha256 = digest.get();
  file.root().set_attribute("sha256", sha256);
  file.close();
  return sha256;
}

/// Whether a file has these tensors and no others, value for value.
bool holds(const h5::Group& root, const TrainingState& state) {
  if (root.read_texts(kParameters) != names_of(state.weights) || root.read_texts(kGroups) != names_of(state.optimizer)) return false;
  h5::ManySets later;
  for (const TensorGroup& folder : folders_of(state)) {
    const h5::Group group = root.open(folder.name);
    if (group.names().size() != folder.tensors.size()) return false;
    for (const NamedTensor& named : folder.tensors) {
      const Tensor& tensor = named.tensor;
      if (group.dims(named.name) != dims_of(tensor) || group.is_double(named.name) != (tensor.dtype() == DType::f64)) return false;
      dispatch(tensor.dtype(), [&](auto zero) { group.compare_later(named.name, values_of<decltype(zero)>(tensor), later); });
    }
  }
  return later.same();
}

/// Reads a file back, which has to hold what was written, value for value.
void require_written(const std::filesystem::path& path, const Checkpoint& written, const std::string& sha256) {
  const h5::Reader file(path, h5::Origin::this_process);
  Checkpoint back = read_header(file.root());
  back.choices = read_choices(file.root());
  const bool rest = digest_of(back, {}) == digest_of(written, {}) && file.root().text_attribute("sha256") == sha256;
  if (!rest || !holds(file.root(), written.state)) throw DataError(path.string() + ": read back another checkpoint than written");
}

int64_t bytes_of(const Checkpoint& checkpoint) {
  int64_t bytes = (int64_t{1} << 20) + static_cast<int64_t>(checkpoint.tokenizer_model.size());
  for (const TensorGroup& folder : folders_of(checkpoint.state))
    for (const NamedTensor& named : folder.tensors) bytes += named.tensor.bytes();
  for (const std::vector<ChosenSources>& sequence : checkpoint.choices)
    for (const ChosenSources& c : sequence) bytes += static_cast<int64_t>(c.values.size() * sizeof(int32_t));
  return bytes;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  require_free_space(path.parent_path(), bytes_of(checkpoint), "checkpoint " + path.filename().string());
  replace_file(path, [&](const std::filesystem::path& aside) { require_written(aside, checkpoint, write_file(aside, checkpoint)); });
}

std::string checkpoint_hash(const std::filesystem::path& path) { return h5::Reader(path).root().text_attribute("sha256"); }

Checkpoint read_checkpoint(const std::filesystem::path& path) { return read_checked(path); }

}  // namespace saccade
