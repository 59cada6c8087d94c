#include "models/layers/parts_probe.h"

#include <algorithm>
#include <limits>
#include <set>

namespace saccade {
namespace {

/// Heads that a part reports; 0 where it reports nothing (a convolution).
size_t heads_of(const ProbeRecord& part) {
  for (const HeadStatistic& s : part.statistics) return s.heads.size();
  for (const CapturedMap& m : part.maps) return static_cast<size_t>(m.shape.front());
  return 0;
}

float none_of(MapKind kind) {
  if (kind == MapKind::selected) return -1;
  return kind == MapKind::score ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
}

void report_statistics(Probe& probe, const std::vector<ProbeRecord>& parts) {
  std::set<std::string> done;
  for (const ProbeRecord& part : parts)
    for (const HeadStatistic& s : part.statistics) {
      if (!done.insert(s.name).second) continue;
      HeadStatistic all{s.name, s.unit, s.layer, {}};
      const auto add = [&](const std::vector<double>& heads, const std::vector<int64_t>& counts) {
        all.heads.insert(all.heads.end(), heads.begin(), heads.end());
        all.counts.insert(all.counts.end(), counts.begin(), counts.end());
      };
      for (const ProbeRecord& other : parts) {
        const auto same = std::find_if(other.statistics.begin(), other.statistics.end(), [&](const auto& o) { return o.name == s.name; });
        if (same == other.statistics.end())
          add(std::vector<double>(heads_of(other), std::numeric_limits<double>::quiet_NaN()), std::vector<int64_t>(heads_of(other)));
        else
          add(same->heads, same->counts.empty() ? std::vector<int64_t>(same->heads.size(), 1) : same->counts);
      }
      report(probe, [all = std::move(all)](Probe& to) { to.statistic(all); });
    }
}

bool fits(const CapturedMap& a, const CapturedMap& b) {
  return a.shape.size() == b.shape.size() && std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1);
}

/// Of one kind from all parts; false when they do not go together.
bool joined(const CapturedMap& like, const std::vector<ProbeRecord>& parts, CapturedMap& all) {
  const size_t row = like.values.size() / static_cast<size_t>(like.shape.front());  // 0 where the pass only plans
  size_t heads = 0;
  all = {like.kind, like.layer, like.shape, {}};
  for (const ProbeRecord& part : parts) {
    const auto same = std::find_if(part.maps.begin(), part.maps.end(), [&](const CapturedMap& m) { return m.kind == like.kind; });
    if (same == part.maps.end()) {
      all.values.insert(all.values.end(), heads_of(part) * row, none_of(like.kind));
      heads += heads_of(part);
      continue;
    }
    if (!fits(*same, like)) return false;
    heads += static_cast<size_t>(same->shape.front());
    all.values.insert(all.values.end(), same->values.begin(), same->values.end());
  }
  all.shape.front() = static_cast<int64_t>(heads);
  return true;
}

/// What parts that choose have chosen among; `differ`: not the same.
struct Chosen {
  const Selection* selection = nullptr;
  bool differ = false;
};
Chosen chosen_by(const std::vector<ProbeRecord>& parts) {
  Chosen chosen;
  for (const ProbeRecord& part : parts)
    for (const auto& [layer, selection] : part.selections) {
      chosen.differ |= chosen.selection && !(*chosen.selection == selection);
      chosen.selection = &selection;
    }
  return chosen;
}

void report_maps(Probe& probe, const std::vector<ProbeRecord>& parts, bool weights_only) {
  std::set<MapKind> done;
  for (const ProbeRecord& part : parts)
    for (const CapturedMap& map : part.maps) {
      if (weights_only && map.kind != MapKind::weights) continue;
      CapturedMap all;
      if (done.insert(map.kind).second && joined(map, parts, all))
        report(probe, [all = std::move(all)](Probe& to) mutable { to.map(std::move(all)); });
    }
}

/// Of a sequence of all parts, where those that choose do it for as many queries as often.
void report_choices(Probe& probe, int64_t layer, const std::vector<ProbeRecord>& parts, size_t sequence) {
  const auto chosen = [&](const ProbeRecord& part) { return part.choices.empty() ? nullptr : &part.choices.at(sequence).front(); };
  const auto first = std::find_if(parts.begin(), parts.end(), chosen);
  if (first == parts.end()) return;
  ChosenSources all = *chosen(*first);
  all.layer = layer, all.heads = 0;
  all.values.clear();
  for (const ProbeRecord& part : parts) {
    const auto heads = static_cast<int64_t>(heads_of(part));
    const ChosenSources* own = chosen(part);
    if (!own) {
      all.values.insert(all.values.end(), static_cast<size_t>(heads * all.queries * all.per_query), -1);
      all.heads += heads;
      continue;
    }
    if (own->queries != all.queries || own->per_query != all.per_query) return;
    all.values.insert(all.values.end(), own->values.begin(), own->values.end());
    all.heads += own->heads;
  }
  report(probe, [sequence, all = std::move(all)](Probe& to) mutable { to.chose(static_cast<int64_t>(sequence), std::move(all)); });
}

void report_choices(Probe& probe, int64_t layer, const std::vector<ProbeRecord>& parts) {
  size_t sequences = 0;
  for (const ProbeRecord& part : parts) sequences = std::max(sequences, part.choices.size());
  for (size_t s = 0; s < sequences; ++s) report_choices(probe, layer, parts, s);
}

}  // namespace

ProbeRecord record_of_part(Probe& probe, const ProbeRecord* before) {
  ProbeRecord record;
  record.statistics_wanted = probe.wants_statistics();
  record.maps_wanted = probe.wants_maps();
  record.whole = &probe;
  if (before) record.first_head = before->first_head + static_cast<int64_t>(heads_of(*before));
  record.planned = probe.plans();
  record.longest_planned = probe.longest();
  return record;
}

void report_parts(Probe& probe, int64_t layer, const std::vector<ProbeRecord>& parts) {
  int64_t bytes = 0;  // maps of the parts, which are there beside the joined ones
  for (const ProbeRecord& part : parts) {
    for (const CapturedMap& map : part.maps) bytes += map.bytes();
    probe.needs_memory(part.host_bytes);
  }
  if (bytes > 0) probe.needs_memory(bytes);
  const Chosen chosen = chosen_by(parts);
  report_statistics(probe, parts);
  report_choices(probe, layer, parts);
  report_maps(probe, parts, chosen.differ);
  if (chosen.selection && !chosen.differ)
    report(probe, [layer, selection = *chosen.selection](Probe& to) { to.selects(layer, selection); });
}

}  // namespace saccade
