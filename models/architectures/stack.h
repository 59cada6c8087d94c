#pragma once
#include <string>
#include <vector>

#include "models/json.h"
#include "models/mixer.h"
#include "models/settings.h"

namespace saccade {

/// Hybrid stacks: "layers" of an architecture as groups of layers with mixers (and blocks) of their own, in order, repeated to "depth"
/// layers, the last time as far as they are needed; once where no depth is given.
///
///     "layers": [{"repeat": 3, "mixer": "gated_deltanet"}, {"repeat": 1, "mixer": "attention", "window": 64}], "depth": 8
///     "layers": "3 gated_deltanet, 1 attention(window=64)", "depth": 8        the same in short form
///
/// A group may set everything that belongs to its layers: mixer, block (else the architecture's, else the mixer's usual one), heads,
/// position, rotary_base and the settings of block and mixer. What it does not set it takes from the architecture, else it has the default.
/// Settings of the stem (embedding, final norm, output) stand in the architecture; its block is "block", else that of the first group.
/// In the resolved form every group has all its settings, and a stack of one group is a plain architecture.

/// Whether "layers" of an architecture, resolved or not, is a stack.
bool is_stack(const nlohmann::json& architecture);
/// As resolve_architecture, for a stack. Throws UsageError with a JSON pointer.
nlohmann::json resolve_stack(const nlohmann::json& config, int64_t sequence_length, const std::string& pointer);
/// "3 Gated DeltaNet : 1 Attention window 64" of a resolved stack.
std::string stack_title(const nlohmann::json& resolved);

/// Values of every layer of a resolved architecture, first to last, each as if all layers were like it; a plain architecture's own.
std::vector<nlohmann::json> layers_of(const nlohmann::json& resolved);
/// What each layer of a resolved stack is called: "Gated DeltaNet", "Attention window 64", "Mamba-2 in Transformer++". Empty for a plain
/// architecture, whose title says it.
std::vector<std::string> layer_titles(const nlohmann::json& resolved);

/// The groups as objects, of a short form or as they are. Throws UsageError with the place of the fault.
nlohmann::json stack_groups(const nlohmann::json& layers, const std::string& pointer);
/// The short form of an architecture's groups, without what they would take from the architecture or the defaults. Reads the same.
/// Throws UsageError.
std::string stack_text(const nlohmann::json& architecture);
/// The short form of one mixer with its settings (Setting::Kind::mixer).
std::string mixer_text(const nlohmann::json& mixer);

/// Everything that can be set beside the groups of a stack, resolved or not: block, mixer, width, layers, depth, what the stem reads, and
/// what any group takes from here. `shared`: whether the default is the same for all groups.
struct StackSetting {
  Setting setting;
  bool shared = true;
};
std::vector<StackSetting> stack_settings(const nlohmann::json& config, const std::string& pointer = "/architecture");

/// Everything that a group of layers may set beside mixer, block and repeat, in form order. Throws UsageError for an unknown id.
std::vector<Setting> layer_settings(const std::string& block, const std::string& mixer);

/// A mixer that stands inside the mixer of a layer (Setting::Kind::mixer): settings of its own beside the heads, the position and the
/// rotary base of the layer. The written-out form. Throws UsageError.
nlohmann::json resolve_part(const nlohmann::json& part, const nlohmann::json& layer, const ModelShape& shape, const std::string& pointer);
/// What a resolved part is built with.
ModelShape shape_of_part(const ModelShape& layer, const nlohmann::json& part);

}  // namespace saccade
