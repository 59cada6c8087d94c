#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/layers/block_model.h"
#include "models/mixer.h"
#include "models/settings.h"
#include "models/suggest.h"

namespace saccade {

/// One entry of the registry: a block (the pre-norm block that carries a mixer, with embedding and output), a mixer, or a whole
/// architecture, which has blocks of its own and takes no mixer. Setting "block" names an entry of the first or the last kind.
struct Architecture {
  enum class Kind { block, mixer, whole };
  Kind kind = Kind::mixer;
  std::string id;     ///< "llama", "top1_chunk", "avey"
  std::string title;  ///< "Transformer++", "Top-1 Chunk", "Avey"
  std::string paper;  ///< citation with section
  std::vector<Setting> settings;
  /// What this entry overrides among the common settings (position …), and a mixer among its block's; null: the setting has no
  /// meaning here and is left out. A whole architecture has, beyond block, width and layers, only those common settings that it
  /// names here.
  nlohmann::json defaults = nlohmann::json::object();
  bool own_head_width = false;        ///< a mixer whose heads need not divide the width
  std::string home = "llama";         ///< a mixer's usual block: where it stands unless one is chosen; its title takes it for granted
  bool blends_values = false;         ///< a mixer whose values are blended with those of the first such layer (kBlendedValues)
  bool takes_block_inputs = false;    ///< a mixer that follows the block's setting mixer_inputs (models/layers/time_mix.h)
  bool gives_attention_title = true;  ///< a block after which a model with plain attention is called
  /// What the title adds for these values ("window 64", "approx top 2"); may be empty. Sizes do not belong in it.
  std::function<std::string(const nlohmann::json& values)> variant = {};
  /// Empty: causal. Else a sentence that says where a position can see its future (Avey's published ranker), given the values.
  std::function<std::string(const nlohmann::json& values)> looks_ahead = {};
  /// Throws UsageError when settings do not fit each other or the shape (window 0, chunk longer than the sequence …).
  std::function<void(const ModelShape&, const nlohmann::json& values, const std::string& pointer)> check = {};

  /// Brings a mixer's checked values into the form that resolved configs have: mixers that it holds (settings of kind `mixer`) written out
  /// with every default. Throws UsageError.
  std::function<void(nlohmann::json& values, const ModelShape&, const std::string& pointer)> complete = {};
  /// Ids of the mixers that a mixer holds.
  std::function<std::vector<std::string>(const nlohmann::json& values)> holds = {};

  /// For whole architectures.
  std::function<std::unique_ptr<Model>(const ModelShape&, const nlohmann::json& values, ParameterMaker&)> make_model = {};
  /// For blocks: what stands around the layers, and one of them.
  using MakeMixer = std::function<std::unique_ptr<Mixer>(ParameterMaker&, int64_t layer)>;
  std::function<std::unique_ptr<Stem>(const ModelShape&, const nlohmann::json& values, ParameterMaker&)> make_stem = {};
  std::function<std::unique_ptr<Block>(const ModelShape&, const nlohmann::json& values, ParameterMaker&, int64_t layer, const MakeMixer&)>
      make_block = {};
  /// For mixers.
  std::function<std::unique_ptr<Mixer>(const ModelShape&, const nlohmann::json& values, ParameterMaker&, int64_t layer)> make_mixer = {};
};

/// All entries, sorted by kind and id. A file registers its own with a namespace-scope `const RegisterArchitecture`.
const std::vector<const Architecture*>& architectures();
/// Throws UsageError with a suggestion when there is none of that id.
const Architecture& architecture(const std::string& id);

struct RegisterArchitecture {
  explicit RegisterArchitecture(Architecture entry);
};

/// make_mixer by a constructor M(shape, settings, make, layer), make_stem by S(shape, settings, make), make_block by
/// B(shape, settings, make, layer, make_mixer).
template <class M, class Settings>
auto maker_of(const Schema<Settings>& schema) {
  return [&schema](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, int64_t layer) {
    return std::make_unique<M>(shape, schema.read(values, "/architecture"), make, layer);
  };
}
template <class S, class Settings>
auto stem_of(const Schema<Settings>& schema) {
  return [&schema](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make) {
    return std::make_unique<S>(shape, schema.read(values, "/architecture"), make);
  };
}
template <class B, class Settings>
auto block_of(const Schema<Settings>& schema) {
  return [&schema](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, int64_t layer,
                   const Architecture::MakeMixer& make_mixer) {
    return std::make_unique<B>(shape, schema.read(values, "/architecture"), make, layer, make_mixer);
  };
}

/// Settings that every architecture has: block, mixer, width, layers, heads, position, rotary_base.
std::vector<Setting> common_settings();
/// The mixer's part of them, which a group of layers or a part of a mixer may set for itself: heads, position, rotary_base.
bool is_mixer_setting(const std::string& common);
/// Everything that can be set for a block with a mixer (common, block's, mixer's), in form order, defaults adjusted.
/// `mixer` is ignored for whole architectures.
std::vector<Setting> settings_of(const std::string& block, const std::string& mixer);

/// Checks `config` ("architecture" of the run config) and fills every default in: the resolved form. "layers" may be a stack of groups
/// (models/architectures/stack.h), which then hold the settings of their layers. Throws UsageError with a JSON pointer.
nlohmann::json resolve_architecture(const nlohmann::json& config, int64_t sequence_length, const std::string& pointer = "/architecture");

/// What a layer with these values is built with; a plain architecture's values are those of all its layers.
ModelShape shape_of(const nlohmann::json& values, int64_t vocabulary, int64_t sequence_length);
/// A value of a setting, checked, in the type that resolved configs have. Throws UsageError.
nlohmann::json checked_value(const Setting& setting, const nlohmann::json& value, const std::string& pointer);
/// Completes (Architecture::complete) and checks what no single setting can tell of one layer's values. Throws UsageError.
void check_layer(nlohmann::json& values, int64_t sequence_length, const std::string& pointer);
/// Throws UsageError when heads of a mixer do not fit the width or the position encoding.
void check_heads(const ModelShape& shape, const Architecture& mixer, const std::string& pointer);

/// Whether a setting of a resolved architecture has the default that belongs to its block and mixer: what a title need not say.
bool is_usual(const nlohmann::json& values, const std::string& name);

/// "Transformer++", "Top-1 Chunk exact", "Transformer++ window 64", "Avey", "3 Gated DeltaNet : 1 Attention" (a stack with its ratio): what
/// a legend calls a resolved architecture.
std::string architecture_title(const nlohmann::json& resolved);

/// Builds a resolved architecture. On the plan device nothing is allocated.
std::unique_ptr<Model> make_model(const nlohmann::json& resolved, int64_t vocabulary, int64_t sequence_length, Arena& arena, DType dtype,
                                  uint64_t seed, bool training);

}  // namespace saccade
