#include "analysis/studies/same_data.h"

#include <algorithm>
#include <set>

namespace saccade {

namespace {

/// Whether two configs are evaluated on the same text.
bool same(const DataConfig& a, const DataConfig& b, const StudyEvaluation& evaluation) {
  const bool same_text = a.task == b.task && a.corpus == b.corpus && a.train == b.train && a.ood == b.ood;
  const bool cut_alike = evaluation.tokens > 0 && evaluation.length > 0;
  return same_text && a.packing == b.packing && (cut_alike || !a.task.empty() || a.sequence_length == b.sequence_length);
}

/// The labels of axes that are one in each group and not one over all of them.
std::string name_of(const StudyView& view, const std::vector<SameData>& groups, const SameData& group) {
  std::string name;
  for (size_t axis = 0; axis < view.study.axes.size(); ++axis) {
    std::set<std::string> all;
    bool one = true;
    for (const SameData& each : groups) {
      std::set<std::string> own;
      for (const size_t cell : each.cells) own.insert(view.cells[cell].labels[axis]);
      one &= own.size() == 1;
      all.insert(own.begin(), own.end());
    }
    if (one && all.size() > 1) name += (name.empty() ? "" : "_") + view.cells[group.cells.front()].labels[axis];
  }
  return name.empty() ? view.cells[group.cells.front()].name : name;
}

}  // namespace

std::vector<SameData> same_data(const StudyView& view) {
  std::vector<SameData> groups;
  std::vector<const DataConfig*> data;
  for (size_t cell = 0; cell < view.cells.size(); ++cell) {
    if (view.views[cell].wanted.empty()) continue;
    const DataConfig& own = view.wanted[view.views[cell].wanted.front()].run.config.data;
    const auto there =
        std::find_if(data.begin(), data.end(), [&](const DataConfig* other) { return same(*other, own, view.study.evaluation); });
    if (there == data.end()) {
      data.push_back(&own), groups.push_back({"", {cell}});
    } else {
      SameData& group = groups[static_cast<size_t>(there - data.begin())];
      group.cells.push_back(cell);
      group.one_tokenizer &= own.tokenizer == (*there)->tokenizer;
    }
  }
  if (groups.size() > 1)
    for (SameData& group : groups) group.name = name_of(view, groups, group);
  return groups;
}

}  // namespace saccade
