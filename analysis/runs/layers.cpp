#include "analysis/runs/layers.h"

#include <algorithm>
#include <set>

#include "kernels/engine/error.h"
#include "models/architectures/stack.h"

namespace saccade {

std::vector<std::string> layer_mixers(const RunInfo& info) {
  const nlohmann::json architecture = info.config.value("architecture", nlohmann::json::object());
  if (!is_stack(architecture)) return {};
  try {
    return layer_titles(architecture);
  } catch (const UsageError&) {
    return {};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

std::vector<LayerSeries> layers_with(const Run& run, const std::string& statistic) {
  const std::string prefix = statistic + "/layer";
  std::set<int64_t> found;
  for (const Series& series : run.series())
    if (series.name.rfind(prefix, 0) == 0) found.insert(std::stoll(series.name.substr(prefix.size())));
  const std::vector<std::string> mixers = layer_mixers(run.info());
  std::vector<LayerSeries> list;
  if (run.find(statistic)) list.push_back({statistic, "whole model", 1});
  for (const int64_t layer : found) {
    const std::string number = std::to_string(layer);
    const auto index = static_cast<size_t>(layer);
    list.push_back({prefix + number, "layer " + number + (index < mixers.size() ? " (" + mixers[index] + ")" : std::string()), 1});
  }
  for (size_t i = 0; list.size() > 1 && i < list.size(); ++i) list[i].depth = static_cast<double>(i) / static_cast<double>(list.size() - 1);
  return list;
}

}  // namespace saccade
