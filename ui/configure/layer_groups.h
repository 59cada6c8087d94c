#pragma once
#include <string>
#include <vector>

#include "analysis/figures/figure.h"
#include "models/json.h"
#include "models/settings.h"

namespace saccade::ui {

/// The layers of an architecture as a list of groups, whichever way they are written (models/architectures/stack.h). An architecture whose
/// layers are all alike is one group.
struct LayerGroups {
  using Json = nlohmann::json;

  Json shared = Json::object();  ///< the rest of the architecture: what the groups do not set, they take from here
  std::vector<Json> groups;      ///< "repeat", "mixer" and what else is set for these layers
  int64_t depth = 0;             ///< layers in all: the groups are repeated up to here; 0: once
  std::string whole;             ///< title of a whole architecture, whose layers stand in no stack; its groups cannot be changed

  /// As a config holds it, with defaults left out. Throws UsageError where the layers cannot be read.
  static LayerGroups of(const Json& architecture);
  /// The architecture with these groups: one group is written as a plain architecture. What none of the groups takes is left out.
  Json architecture() const;

  int64_t once() const;                ///< layers of all groups, each group once
  std::vector<size_t> order() const;   ///< the group of every layer, first to last
  std::string mixer(size_t at) const;  ///< of a group
  std::string block(size_t at) const;  ///< in which it stands; as the mixer's usual one where neither names one that is known
};

/// What can be set for a group, with what it has where it sets nothing as the default. Empty where its mixer is not known.
std::vector<Setting> settings_of_group(const LayerGroups& stack, size_t at);
/// The group with another mixer or block: settings that this one does not have go.
nlohmann::json with_other(const LayerGroups& stack, size_t at, const char* key, const std::string& id);
/// "Attention" … as the registry calls its mixer.
std::string group_title(const LayerGroups& stack, size_t at);
/// What it sets itself, in words: "window 64, heads 2". May be empty.
std::string group_words(const LayerGroups& stack, size_t at);
/// The colour of the architecture whose layers are all like this group's, the same as in every chart.
Colour group_colour(const LayerGroups& stack, size_t at);
/// Why a model could not have layers like these, without the config's place; empty: it can. The group is looked at alone.
std::string group_problem(const LayerGroups& stack, size_t at, int64_t sequence_length);

}  // namespace saccade::ui
