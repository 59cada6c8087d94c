#include "ui/runs/differences.h"

#include <QCoreApplication>
#include <algorithm>
#include <map>
#include <set>

#include "ui/run_list.h"

namespace saccade::ui {
namespace {

void flatten(const nlohmann::json& value, const std::string& pointer, std::map<std::string, QString>& flat) {
  const bool groups = value.is_array() && !value.empty() && value.front().is_object();  // of a hybrid stack
  for (size_t i = 0; groups && i < value.size(); ++i) flatten(value[i], pointer + "/" + std::to_string(i), flat);
  if (groups) return;
  if (!value.is_object()) {
    flat[pointer] = plainValue(value);
    return;
  }
  for (const auto& [key, child] : value.items()) flatten(child, pointer + "/" + key, flat);
}

}  // namespace

QString plainValue(const nlohmann::json& value) {
  if (value.is_string()) return QString::fromStdString(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? QStringLiteral("on") : QStringLiteral("off");
  if (value.is_array()) {
    QStringList parts;
    for (const auto& part : value) parts << plainValue(part);
    return parts.isEmpty() ? QStringLiteral("none") : parts.join(QStringLiteral(" + "));
  }
  return value.is_null() ? QStringLiteral("–") : QString::fromStdString(value.dump());
}

std::vector<Difference> differences(const std::vector<const Run*>& runs) {
  if (runs.size() < 2) return {};
  std::vector<std::map<std::string, QString>> flat(runs.size());
  std::set<std::string> pointers;
  for (size_t i = 0; i < runs.size(); ++i) {
    flatten(runs[i]->info().config, "", flat[i]);
    for (const auto& [pointer, value] : flat[i]) pointers.insert(pointer);
  }
  pointers.erase("/name");
  std::map<QString, int> words;
  std::vector<Difference> found;
  for (const std::string& pointer : pointers) {
    Difference difference{{}, QString::fromStdString(pointer), {}};
    for (const auto& values : flat) {
      const auto at = values.find(pointer);
      difference.values << (at == values.end() ? QStringLiteral("–") : at->second);
    }
    if (difference.values.count(difference.values.first()) == difference.values.size()) continue;
    difference.setting = difference.pointer.section(QLatin1Char('/'), -1);
    ++words[difference.setting];
    found.push_back(std::move(difference));
  }
  for (Difference& difference : found)
    if (words[difference.setting] > 1) difference.setting = difference.pointer.mid(1).replace(QLatin1Char('/'), QStringLiteral(" "));
  return found;
}

ComparedRuns compared_runs(const RunList& list, const QStringList& directories, size_t most) {
  ComparedRuns compared;
  const Run* baseline = list.run(list.selection().baseline());
  const auto add = [&](const Run* run) {
    if (!run || compared.runs.size() >= most || std::find(compared.runs.begin(), compared.runs.end(), run) != compared.runs.end()) return;
    compared.runs.push_back(run);
    compared.heads << (run == baseline ? QCoreApplication::translate("Differences", "%1 (baseline)").arg(list.label(*run))
                                       : list.label(*run));
  };
  if (!directories.isEmpty()) add(baseline);
  compared.with_baseline = !compared.runs.empty();
  for (const QString& directory : directories) add(list.run(directory));
  return compared;
}

std::vector<Difference> all_settings(const RunInfo& run) {
  std::vector<Difference> all;
  for (const auto& [values, prefix] : {std::pair(run.config, std::string()), std::pair(run.provenance, std::string("/provenance"))}) {
    std::map<std::string, QString> flat;
    flatten(values, prefix, flat);
    for (const auto& [pointer, value] : flat) {
      const QString path = QString::fromStdString(pointer);
      all.push_back({path.mid(1).replace(QLatin1Char('/'), QLatin1Char(' ')).replace(QLatin1Char('_'), QLatin1Char(' ')), path, {value}});
    }
  }
  return all;
}

}  // namespace saccade::ui
