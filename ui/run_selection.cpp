#include "ui/run_selection.h"

#include <QCryptographicHash>
#include <algorithm>
#include <unordered_map>

#include "analysis/comparison/group_names.h"

namespace saccade::ui {
namespace {

QString key_of(const Run& run) {
  const std::string& setting = run.setting();
  const QByteArray bytes = QByteArray::fromRawData(setting.data(), static_cast<qsizetype>(setting.size()));
  return QString::fromLatin1(QCryptographicHash::hash(bytes, QCryptographicHash::Md5).toHex());
}

}  // namespace

QString directory_of(const Run& run) { return QString::fromStdString(run.info().directory.string()); }

void RunSelection::setFilter(const QString& text) {
  if (text == filter_text_) return;
  filter_text_ = text;
  filter_ = RunFilter(text.toStdString());
  names_.clear();
}

void RunSelection::setShown(const QString& directory, bool shown) {
  shown ? static_cast<void>(hidden_.remove(directory)) : static_cast<void>(hidden_.insert(directory));
}

void RunSelection::setOpened(const QString& key, bool opened) {
  opened ? static_cast<void>(opened_.insert(key)) : static_cast<void>(opened_.remove(key));
}

bool RunSelection::shows(const Run& run) const { return passes(run) && !hidden_.contains(directory_of(run)); }

void RunSelection::arrange(const std::vector<SharedRun>& runs) {
  std::vector<const Run*> all, listed;
  std::unordered_map<const Run*, SharedRun> shared;
  for (const SharedRun& run : runs) {
    shared[run.get()] = run;
    all.push_back(run.get());
    if (passes(*run)) listed.push_back(run.get());
  }
  const std::vector<RunGroup> every = gather_runs(all), here = gather_runs(listed);
  const std::vector<RunLook> looks = group_looks(every);  // of all, so that a filter changes no colour
  const std::vector<std::string> names = group_names(here, names_);
  std::unordered_map<std::string, RunLook> of_setting;
  for (size_t i = 0; i < every.size(); ++i) {
    RunLook look = looks[i];
    look.architecture = look.label = every[i].seeds.front()->info().title;
    look.colour = colours_.value(key_of(*every[i].seeds.front()), look.colour);
    of_setting[every[i].seeds.front()->setting()] = look;
  }
  looks_.clear();
  for (const RunGroup& group : every)
    for (size_t rank = 0; rank < group.seeds.size(); ++rank)
      looks_[directory_of(*group.seeds[rank])] = seed_look(group, rank, of_setting[group.seeds.front()->setting()]);
  groups_.clear();
  for (size_t i = 0; i < here.size(); ++i) {
    names_[here[i].seeds.front()->setting()] = names[i];
    ShownGroup group{key_of(*here[i].seeds.front()), of_setting[here[i].seeds.front()->setting()], {}, {}, false};
    group.look.architecture = group.look.label = names[i];
    for (size_t rank = 0; rank < here[i].seeds.size(); ++rank) {
      const Run* run = here[i].seeds[rank];
      group.seeds.push_back(shared[run]);
      group.looks.push_back(looks_[directory_of(*run)] = seed_look(here[i], rank, group.look));
    }
    groups_.push_back(std::move(group));
  }
  choose();
}

void RunSelection::choose() {
  auto next = std::make_shared<ShownRuns>();
  next->baseline = baseline_;
  for (ShownGroup& group : groups_) {
    group.opened = opened_.contains(group.key);
    ShownGroup seen{group.key, group.look, {}, {}, group.opened};
    for (size_t rank = 0; rank < group.seeds.size(); ++rank) {
      const SharedRun& run = group.seeds[rank];
      if (run->detail().outline || hidden_.contains(directory_of(*run))) continue;
      seen.seeds.push_back(run);
      seen.looks.push_back(group.looks[rank]);
    }
    if (!seen.seeds.empty()) next->groups.push_back(std::move(seen));
  }
  shown_ = std::move(next);
}

void RunSelection::update(const std::vector<SharedRun>& read_on) {
  std::unordered_map<std::string, SharedRun> now;
  for (const SharedRun& run : read_on) now[run->info().directory.native()] = run;
  for (ShownGroup& group : groups_)
    for (SharedRun& run : group.seeds)
      if (const auto found = now.find(run->info().directory.native()); found != now.end()) run = found->second;
  choose();
}

RunLook RunSelection::look(const Run& run) const { return looks_.value(directory_of(run)); }

QString RunSelection::key(const Run& run) const { return key_of(run); }

}  // namespace saccade::ui
