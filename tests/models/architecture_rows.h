#pragma once
#include <QtTest>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/random.h"
#include "models/architectures/stack.h"
#include "tests/models/mixed_precision.h"
#include "tests/models/model_fixture.h"
#include "tests/support/compare.h"
#include "tests/support/random_stacks.h"

namespace saccade::test {

/// Rows of a test that asks the same of everything in the registry: every block with every mixer and every whole architecture,
/// plain and with each choice of each setting; on the CPU, and on a GPU in f32 and bf16.

constexpr int64_t kLength = 24, kVocabulary = 29;

/// Sizes that fit kLength; only those that the architecture has are used.
inline nlohmann::json small_sizes() {
  return {{"width", 16}, {"layers", 2}, {"heads", 2}, {"mlp_width", 24}, {"chunk", 5}, {"split", 4}, {"top_k", 2}, {"state", 6}};
}
/// Values beside the default of settings that are no choice.
inline std::vector<nlohmann::json> other_values(const Setting& s) {
  std::vector<nlohmann::json> values;
  if (s.kind == Setting::Kind::boolean) values.push_back(!s.default_value.get<bool>());
  for (const std::string& choice : s.choices) values.push_back(choice);
  if (s.name == "window") values.push_back(7);
  if (s.name == "temperature") values.push_back(0.25);
  if (s.name == "top_k") values.push_back(1);
  return values;
}

inline bool accepted(const nlohmann::json& settings) {
  try {
    resolve_architecture(settings, kLength);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}
/// A value may need another choice beside it (Avey's positions need its processor "attention"): the first one that helps.
/// What is refused beside all of them is returned as it is.
inline nlohmann::json completed(const nlohmann::json& varied, const std::vector<Setting>& settings) {
  if (accepted(varied)) return varied;
  for (const Setting& s : settings)
    for (const nlohmann::json& value : other_values(s)) {
      nlohmann::json both = varied;
      if (s.name == "block" || s.name == "mixer" || both.contains(s.name)) continue;
      both[s.name] = value;
      if (accepted(both)) return both;
    }
  return varied;
}

/// The GPUs of this machine, looked for once.
inline const std::vector<cuda::Gpu>& gpus(std::string* why_none = nullptr) {
  static std::string why;
  static const std::vector<cuda::Gpu> found = cuda::gpus(&why);
  if (why_none) *why_none = why;
  return found;
}
/// Without a GPU there is one row for it, which tells so.
inline void add_row(const std::string& name, const nlohmann::json& settings) {
  const QString text = QString::fromStdString(settings.dump());
  QTest::newRow(name.c_str()) << text << QString("cpu") << QString("auto");
  if (gpus().empty()) return;
  for (const char* precision : {"f32", "bf16"}) QTest::newRow((name + " cuda " + precision).c_str()) << text << "cuda" << precision;
}
inline void add_rows(const std::string& block, const std::string& mixer, bool plain_only) {
  const std::vector<Setting> settings = settings_of(block, mixer);
  nlohmann::json base = {{"block", block}};
  if (!mixer.empty()) base["mixer"] = mixer;
  const nlohmann::json sizes = small_sizes();
  for (const Setting& s : settings)
    if (sizes.contains(s.name)) base[s.name] = sizes.at(s.name);
  const std::string name = block + (mixer.empty() ? "" : " " + mixer);
  add_row(name, base);
  if (plain_only) return;
  for (const Setting& s : settings) {
    if (s.name == "block" || s.name == "mixer") continue;
    for (const nlohmann::json& value : other_values(s)) {
      if (value == s.default_value) continue;
      nlohmann::json varied = base;
      varied[s.name] = value;
      varied = completed(varied, settings);
      if (accepted(varied)) add_row(name + " " + s.name + "=" + value.dump(), varied);
    }
  }
}

inline void add_all(bool plain_only = false) {
  for (const char* column : {"settings", "device", "precision"}) QTest::addColumn<QString>(column);
  if (gpus().empty())
    QTest::newRow("cuda") << ""
                          << "cuda"
                          << "";
  for (const Architecture* block : architectures()) {
    if (block->kind == Architecture::Kind::whole) add_rows(block->id, "", plain_only);
    if (block->kind != Architecture::Kind::block) continue;
    for (const Architecture* mixer : architectures())
      if (mixer->kind == Architecture::Kind::mixer) add_rows(block->id, mixer->id, plain_only);
  }
  for (const auto& [name, settings] : random_stacks(kLength)) add_row(name, settings);
}

/// The mixers of every layer, those inside others too.
inline std::vector<std::vector<std::string>> mixers_by_layer(const nlohmann::json& resolved) {
  std::vector<std::vector<std::string>> list;
  if (!resolved.contains("mixer") && !is_stack(resolved)) return list;
  for (const nlohmann::json& values : layers_of(resolved)) {
    const Architecture& mixer = architecture(values.at("mixer"));
    list.push_back(mixer.holds ? mixer.holds(values) : std::vector<std::string>{mixer.id});
  }
  return list;
}
/// The last layer with a mixer whose id begins like this; −1: none.
inline int64_t last_layer_with(const nlohmann::json& resolved, const std::string& prefix) {
  int64_t last = -1, layer = 0;
  for (const auto& mixers : mixers_by_layer(resolved)) {
    for (const std::string& id : mixers)
      if (id.rfind(prefix, 0) == 0) last = layer;
    ++layer;
  }
  return last;
}

/// What a row asks for. `dtype` is that of activations: a check for exactness on the CPU takes double instead.
struct Row {
  nlohmann::json settings;
  std::string device, precision;
  bool on_gpu() const { return device != "cpu"; }
  DType dtype() const { return precision == "bf16" ? DType::bf16 : DType::f32; }
  DType exact() const { return on_gpu() ? dtype() : DType::f64; }
  RunConfig run(const nlohmann::json& training) const { return small_run(settings, training, precision, device); }
};
/// An op without a kernel for the GPU is a reason to skip that is told, never a pass.
template <class Check>
void with_row(Check&& check) {
  QFETCH(QString, settings);
  QFETCH(QString, device);
  QFETCH(QString, precision);
  if (std::string why_none; device == "cuda" && gpus(&why_none).empty()) QSKIP(("no GPU to test on: " + why_none).c_str());
  try {
    check(Row{nlohmann::json::parse(settings.toStdString()), device.toStdString(), precision.toStdString()});
  } catch (const DeviceError& error) {
    if (!QString(error.what()).contains("has no CUDA kernel")) throw;
    QSKIP(error.what());
  }
}

inline std::vector<int32_t> random_tokens(int64_t count, const char* stream) {
  const Random random(5, stream);
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(random.below(kVocabulary, static_cast<uint64_t>(i))));
  return values;
}

struct Built {
  nlohmann::json resolved;
  DType dtype;
  mutable Arena arena;
  std::unique_ptr<Model> model;
  Built(const Row& row, DType activations, bool training)
      : resolved(resolve_architecture(row.settings, kLength)),
        dtype(activations),
        arena(parse_device(row.device)),
        model(make_model(resolved, kVocabulary, kLength, arena, accumulation_dtype(dtype), 3, training)) {}
  Tensor tokens(const std::vector<int32_t>& values) const {
    const auto size = static_cast<int64_t>(values.size());
    const Tensor x = arena.allocate({std::max<int64_t>(1, size / kLength), std::min(size, kLength)}, DType::i32);
    copy_from_host(x, values.data());
    return x;
  }
  Array logits(const std::vector<int32_t>& values) const {
    Tape tape(arena, false);
    compute_in(tape, arena, model->parameters(), dtype);
    return to_array(model->logits(tape, tokens(values)));
  }
  /// Enlarges every weight so that what a test looks for is not lost in the small numbers of the initial state.
  void enliven() const {
    for (const Parameter& p : model->parameters()) {
      const Random random(9, p.name);
      std::vector<double> values = to_doubles(p.value);
      for (size_t i = 0; i < values.size(); ++i) values[i] += (p.decay ? 0.25 : 0.1) * random.normal(i);
      from_doubles(p.value, values);
    }
  }
  /// Of the mean loss of two sequences, into the parameters' gradients.
  void differentiate(bool recompute = false) const {
    Tape tape(arena, true);
    tape.set_recompute(recompute);
    compute_in(tape, arena, model->parameters(), dtype);
    model->bind_gradients(tape);
    tape.backward(model->loss(tape, tokens(random_tokens(2 * kLength, "tokens")), tokens(random_tokens(2 * kLength, "targets"))));
  }
};

}  // namespace saccade::test
