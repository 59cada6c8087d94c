#include "ui/where_choice.h"

#include <QAbstractItemView>
#include <QEvent>
#include <QSignalBlocker>
#include <QStyleOptionComboBox>
#include <QStylePainter>
#include <algorithm>

#include "analysis/launchers/cluster_profile.h"
#include "analysis/remote/mirror.h"
#include "ui/calm_wheel.h"

namespace saccade::ui {

WhereChoice::WhereChoice(QWidget* parent, What what) : QComboBox(parent), what_(what), stands_on_(parent) {
  setAccessibleName(what == What::runs ? tr("Where its runs go") : tr("Whose queue it is"));
  setToolTip(what == What::runs ? tr("This machine, a host of the page Hosts, or a cluster that is set up with: saccade cluster add")
                                : tr("The queue of this machine, or of a host of the page Hosts"));
  setSizeAdjustPolicy(AdjustToMinimumContentsLengthWithIcon);  // however long the name of a host is, pages stay as narrow as windows
  setMinimumContentsLength(13);                                // "on this machine" goes whole
  calm_wheel(this);
  refresh();
  parent->installEventFilter(this);
}

QString WhereChoice::place() const { return currentData().toString(); }
bool WhereChoice::isHost() const { return currentData(Qt::UserRole + 1).toBool(); }

QString WhereChoice::folder(const QString& here) const {
  return isHost() ? QString::fromStdString(mirror_folder(place().toStdString()).string()) : here;
}

void WhereChoice::choose(const QString& place) { setCurrentIndex(place.isEmpty() ? 0 : std::max(0, findData(place))); }

void WhereChoice::refresh() {
  const QString before = place();
  {
    const QSignalBlocker quiet(this);
    clear();
    addItem(tr("on this machine"));
    const auto add = [&](const std::vector<std::string>& names, bool host) {
      for (const std::string& name : names) {
        addItem(tr("on %1").arg(QString::fromStdString(name)), QString::fromStdString(name));
        setItemData(count() - 1, host, Qt::UserRole + 1);
      }
    };
    add(host_names(), true);
    if (what_ == What::runs) add(cluster_names(), false);
    choose(before);
  }
  view()->setMinimumWidth(std::min(480, view()->sizeHintForColumn(0) + 24));
  setVisible(count() > 1);
  if (place() != before) Q_EMIT currentIndexChanged(currentIndex());
}

/// Qt cuts a text that is too long, without a sign that it does.
void WhereChoice::paintEvent(QPaintEvent*) {
  QStyleOptionComboBox option;
  initStyleOption(&option);
  QStylePainter painter(this);
  painter.drawComplexControl(QStyle::CC_ComboBox, option);
  const int room = style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this).width() - 4;
  option.currentText = fontMetrics().elidedText(option.currentText, Qt::ElideMiddle, room);
  painter.drawControl(QStyle::CE_ComboBoxLabel, option);
}

bool WhereChoice::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Show && watched == stands_on_) refresh();
  return QComboBox::eventFilter(watched, event);
}

}  // namespace saccade::ui
