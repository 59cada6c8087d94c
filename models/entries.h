#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade {

/// What files of one kind have registered (architectures, optimizers, schedules): entries with an `id`, in the order of `key`.
template <class Entry>
class Entries {
 public:
  /// Entries keep their address. Call before main alone: pointers that `all` has given stay right, its order may change.
  template <class Key>
  void add(Entry entry, Key key) {
    owned_.push_back(std::make_unique<Entry>(std::move(entry)));
    all_.push_back(owned_.back().get());
    std::sort(all_.begin(), all_.end(), [&](const Entry* a, const Entry* b) { return key(*a) < key(*b); });
  }
  const std::vector<const Entry*>& all() const { return all_; }
  /// Throws UsageError with a suggestion when there is none of that id; `kind` is what it then says there is none of.
  const Entry& find(const char* kind, const std::string& id) const {
    std::vector<std::string> names;
    for (const Entry* entry : all_) {
      if (entry->id == id) return *entry;
      names.push_back(entry->id);
    }
    throw UsageError(std::string("there is no ") + kind + " \"" + id + "\"" + did_you_mean(id, names));
  }

 private:
  std::vector<std::unique_ptr<Entry>> owned_;
  std::vector<const Entry*> all_;
};

}  // namespace saccade
