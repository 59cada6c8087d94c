#include "ui/compare/failed_items.h"

#include <QMenu>
#include <algorithm>

#include "ui/run_list.h"
#include "ui/run_selection.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

constexpr size_t kMostInMenu = 16, kMostInInspect = 500;

QString shortened(const std::string& text) {
  constexpr qsizetype kMost = 32;
  const QString line = QString::fromStdString(text).simplified();
  return line.size() <= kMost ? line : line.left(kMost - 1) + QStringLiteral("…");
}

/// "item 17, depth 20-30 %: wrote “12” for “4711”"
QString words_of(const AnsweredItem& item, Task::Kind kind) {
  QString words = FailedItemsMenu::tr("item %1").arg(item.number);
  if (!item.group.empty()) words += QStringLiteral(", ") + QString::fromStdString(item.group);
  if (kind == Task::Kind::symbols) return words + FailedItemsMenu::tr(": %1 % right").arg(QString::number(100 * item.right, 'f', 0));
  if (kind == Task::Kind::generation)
    return words + FailedItemsMenu::tr(": wrote “%1” for “%2”").arg(shortened(item.answer), shortened(item.target));
  return words + FailedItemsMenu::tr(": chose %1, right is %2").arg(item.chosen).arg(item.gold);
}

/// A menu takes “&” for a key.
QString entry(QString text) { return text.replace(QLatin1Char('&'), QStringLiteral("&&")); }

}  // namespace

FailedItemsMenu::FailedItemsMenu(Session& session, QWidget* over)
    : QObject(over), session_(session), over_(over), job_(this, [this](const Offered& offered) { show(offered); }) {}

void FailedItemsMenu::offer(const std::vector<ScoreSource>& sources, const QPoint& at) {
  std::vector<Place> places;
  for (const ScoreSource& source : sources) {
    places.push_back({directory_of(*source.run), session_.runs()->label(*source.run), source});
    places.back().source.run = nullptr;  // it may be gone by then
  }
  if (places.empty()) return;
  job_.ask(
      [places, at] {
        Offered offered{at, {}};
        for (const Place& place : places) offered.runs.push_back(read(place));
        return offered;
      },
      true);
}

FailedItemsMenu::Found FailedItemsMenu::read(const Place& place) {
  Found found{place, {}, {}};
  const ScoreSource& source = place.source;
  const std::optional<ItemGroup> group = source.group.empty() ? std::nullopt : std::optional(ItemGroup{source.group, source.number});
  try {
    found.failed = failed_items(place.directory.toStdString(), source.task, source.step, group);
  } catch (const std::exception& error) {
    found.problem = QString::fromUtf8(error.what());
  }
  return found;
}

void FailedItemsMenu::show(const Offered& offered) {
  auto* menu = new QMenu(over_);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->setToolTipsVisible(true);
  for (const Found& found : offered.runs) addItems(*menu, found, std::max<size_t>(3, kMostInMenu / offered.runs.size()));
  menu_ = menu;
  menu->popup(offered.at);
  for (QAction* action : menu->actions())
    if (action->isEnabled() && !action->isSeparator()) {
      menu->setActiveAction(action);
      break;
    }
}

void FailedItemsMenu::addItems(QMenu& menu, const Found& found, size_t most) {
  const std::vector<AnsweredItem>& items = found.failed.items;
  const QString of = QStringLiteral("%1 · %2").arg(found.place.name, QString::fromStdString(found.place.source.task));
  if (!found.problem.isEmpty()) {
    QAction* problem = menu.addAction(entry(tr("%1: the items cannot be read").arg(of)));
    problem->setToolTip(found.problem);
    connect(problem, &QAction::triggered, this, [this, reason = found.problem] { Q_EMIT session_.failed(reason); });
    return;
  }
  const QString title = items.empty() ? tr("%1: all %2 items are right").arg(of).arg(found.failed.asked)
                                      : tr("%1: %3 of %2 items failed").arg(of).arg(found.failed.asked).arg(items.size());
  menu.addAction(entry(title))->setEnabled(false);
  for (size_t i = 0; i < std::min(most, items.size()); ++i)
    connect(menu.addAction(entry(words_of(items[i], found.failed.kind))), &QAction::triggered, this, [this, found, i] { open(found, i); });
  if (items.size() > most)
    connect(menu.addAction(tr("%1 more, in Inspect …").arg(items.size() - most)), &QAction::triggered, this,
            [this, found, most] { open(found, most); });
  menu.addSeparator();
}

/// Inspect has all the failed items to choose from.
void FailedItemsMenu::open(const Found& found, size_t index) {
  nlohmann::json list = nlohmann::json::array();
  for (const AnsweredItem& item : found.failed.items) {
    if (list.size() == kMostInInspect) break;
    list.push_back({{"number", item.number}, {"words", words_of(item, found.failed.kind).toStdString()}});
  }
  const ScoreSource& source = found.place.source;
  const nlohmann::json items{
      {"run", found.place.directory.toStdString()}, {"task", source.task}, {"step", source.step}, {"items", list}, {"at", index}};
  session_.inspectItems(found.place.directory, source.step,
                        QByteArray::fromStdString(items.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

}  // namespace saccade::ui
