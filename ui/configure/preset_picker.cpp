#include "ui/configure/preset_picker.h"

#include <QFrame>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QRegularExpression>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "kernels/engine/error.h"
#include "models/architectures/registry.h"
#include "models/config/config.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

constexpr int kPath = Qt::UserRole;

/// "transformer pp" and "paper small" of "transformer pp paper small".
std::pair<QString, QString> parts_of(const QString& title) {
  static const QRegularExpression scale(QStringLiteral("^(.+?) ((?:fineweb )?paper \\w+|tiny|demo|10m)$"));
  const QRegularExpressionMatch match = scale.match(title);
  return match.hasMatch() ? std::pair{match.captured(1), match.captured(2)} : std::pair{title, title};
}

using Heads = std::map<QString, QTreeWidgetItem*>;  // by the presets' names without their scale

struct Head {
  QString title;
  bool task = false;
};

/// Where a preset stands: below what its architecture is called or, where that is not what it is for, below its task. `kin`: its name
/// without the scale, which is told where two have one architecture; all there is where it cannot be read.
Head head_of(const Preset& preset, const QString& kin, const Heads& heads) {
  try {
    QString note;
    const RunConfig config = resolve_config(read_preset(preset.path, &note), "preset");
    if (!config.data.task.empty()) return {PresetPicker::tr("Task %1").arg(kin), true};
    const QString title = QString::fromStdString(architecture_title(config.architecture));
    const bool taken = std::any_of(heads.begin(), heads.end(), [&](const auto& head) { return head.second->text(0) == title; });
    return {taken ? QStringLiteral("%1 (%2)").arg(title, kin) : title};
  } catch (const Error&) {
    return {kin};
  }
}

/// Names of files are written with hyphens, those of settings with underscores.
QString plain_words(QString text) { return text.replace(QLatin1Char('-'), QLatin1Char(' ')).replace(QLatin1Char('_'), QLatin1Char(' ')); }

QTreeWidgetItem* item(const QString& text, const QString& path) {
  auto* line = new QTreeWidgetItem({text});
  line->setData(0, kPath, path);
  return line;
}

}  // namespace

const QString PresetPicker::selected_run = QStringLiteral("selected run");

QString preset_difference(const Json& written, const Json& preset) {
  constexpr qsizetype kShown = 12;
  const Json now = to_json(resolve_config(written, "config")).flatten(), then = to_json(resolve_config(preset, "preset")).flatten();
  QStringList parts;
  const auto add = [&](const std::string& pointer) {
    if (pointer == "/name" || pointer == "/description") return;
    const auto text = [&](const Json& values) {
      return values.contains(pointer) ? QString::fromStdString(values.at(pointer).dump()) : QStringLiteral("–");
    };
    const QString name = QString::fromStdString(pointer).section(QLatin1Char('/'), 2).replace(QLatin1Char('_'), QLatin1Char(' '));
    if (text(now) != text(then)) parts << QStringLiteral("%1 %2 → %3").arg(name, text(now), text(then));
  };
  for (const auto& [pointer, value] : then.items()) add(pointer);
  for (const auto& [pointer, value] : now.items())
    if (!then.contains(pointer)) add(pointer);
  const QString more = parts.size() > kShown ? PresetPicker::tr(" and %1 more").arg(parts.size() - kShown) : QString();
  return parts.mid(0, kShown).join(QStringLiteral(", ")) + more;
}

PresetPicker::PresetPicker(QWidget* parent) : QToolButton(parent) {
  setAccessibleName(tr("Preset"));
  setToolTip(tr("A config to start from; what you change is measured against it."));
  setToolButtonStyle(Qt::ToolButtonTextOnly);
  setFocusPolicy(Qt::StrongFocus);
  setCurrent({});
  connect(this, &QToolButton::clicked, this, &PresetPicker::open);
}

void PresetPicker::setPresets(const QList<Preset>& presets) {
  presets_ = presets;
  delete std::exchange(popup_, nullptr);
}

void PresetPicker::setCurrent(const QString& path) {
  current_ = path;
  QString title = path.isEmpty() ? tr("defaults") : path == selected_run ? tr("as the selected run") : path;
  for (const Preset& preset : presets_)
    if (preset.path == path) title = preset.title;
  setText(title + QStringLiteral("  ▾"));
  setAccessibleDescription(title);
}

void PresetPicker::makePopup() {
  popup_ = new QFrame(this, Qt::Popup);
  popup_->setFrameShape(QFrame::StyledPanel);
  search_ = new QLineEdit(popup_);
  search_->setPlaceholderText(tr("Search in presets"));
  search_->setAccessibleName(tr("Search in presets"));
  search_->installEventFilter(this);
  tree_ = new QTreeWidget(popup_);
  tree_->setHeaderHidden(true);
  tree_->setAccessibleName(tr("Presets by architecture and scale"));
  tree_->setFrameShape(QFrame::NoFrame);
  tree_->installEventFilter(this);
  difference_ = new QLabel(popup_);
  difference_->setWordWrap(true);
  difference_->setForegroundRole(QPalette::PlaceholderText);
  difference_->setMinimumHeight(4 * fontMetrics().height());
  difference_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  auto* column = new QVBoxLayout(popup_);
  column->setContentsMargins(6, 6, 6, 6);
  column->addWidget(search_);
  column->addWidget(tree_, 1);
  column->addWidget(difference_);
  popup_->resize(380, 460);
  connect(search_, &QLineEdit::textChanged, this, &PresetPicker::filter);
  connect(tree_, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* now) { showDifference(now); });
  connect(tree_, &QTreeWidget::itemActivated, this, &PresetPicker::choose);
  connect(tree_, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* clicked) {
    if (clicked->childCount() == 0) choose(clicked);
  });
  fill();
}

void PresetPicker::fill() {
  Heads heads;
  QList<QTreeWidgetItem*> yours, architectures, tasks;
  const auto head_for = [&](const Preset& preset, const QString& kin) {
    if (preset.own && !yours.isEmpty()) return yours.first();
    if (const auto found = heads.find(kin); !preset.own && found != heads.end()) return found->second;
    const Head head = preset.own ? Head{tr("Yours")} : head_of(preset, kin, heads);
    auto* line = new QTreeWidgetItem({head.title});
    line->setToolTip(0, kin);
    (preset.own ? yours : head.task ? tasks : architectures) << line;
    if (!preset.own) heads[kin] = line;
    return line;
  };
  for (const Preset& preset : presets_) {
    const auto [kin, scale] = parts_of(preset.title);
    auto* line = item(preset.own ? preset.title : scale, preset.path);
    line->setToolTip(0, preset.title);
    head_for(preset, kin)->addChild(line);
  }
  tree_->addTopLevelItem(item(tr("defaults"), {}));
  tree_->addTopLevelItem(item(tr("as the selected run"), selected_run));
  tree_->addTopLevelItems(yours + architectures + tasks);
  for (QTreeWidgetItemIterator at(tree_); *at; ++at) {
    if ((*at)->childCount() > 0 || (*at)->data(0, kPath).toString() != current_) continue;
    QFont bold = font();
    bold.setBold(true);
    (*at)->setFont(0, bold);
    tree_->setCurrentItem(*at);
    tree_->scrollToItem(*at);
  }
}

void PresetPicker::open() {
  delete std::exchange(popup_, nullptr);  // what it marks is of the moment
  makePopup();
  popup_->move(mapToGlobal(QPoint(0, height())));
  popup_->show();
  search_->setFocus();
}

void PresetPicker::filter(const QString& words) {
  const QStringList parts = plain_words(words).split(QLatin1Char(' '), Qt::SkipEmptyParts);
  QTreeWidgetItem* first = nullptr;
  const auto fits = [&](const QString& text) {
    const QString plain = plain_words(text);
    return std::all_of(parts.begin(), parts.end(), [&](const QString& part) { return plain.contains(part, Qt::CaseInsensitive); });
  };
  for (int row = 0; row < tree_->topLevelItemCount(); ++row) {
    QTreeWidgetItem* head = tree_->topLevelItem(row);
    bool any = head->childCount() == 0 && fits(head->text(0));
    if (any && !first) first = head;
    for (int i = 0; i < head->childCount(); ++i) {
      QTreeWidgetItem* child = head->child(i);
      const bool shown = fits(head->text(0) + QLatin1Char(' ') + child->text(0) + QLatin1Char(' ') + child->toolTip(0));
      child->setHidden(!shown);
      any |= shown;
      if (shown && !first) first = child;
    }
    head->setHidden(!any);
    head->setExpanded(any && !parts.isEmpty());
  }
  if (parts.isEmpty()) return;
  tree_->setCurrentItem(first);
  if (!first) difference_->setText(tr("No preset has these words."));
}

void PresetPicker::showDifference(QTreeWidgetItem* at) {
  difference_->clear();
  if (!at || at->childCount() > 0 || !written || at->data(0, kPath).toString() == selected_run) return;
  const QString path = at->data(0, kPath).toString();
  try {
    QString note;
    const QString text = preset_difference(written(), path.isEmpty() ? Json::object() : read_preset(path, &note));
    difference_->setText(text.isEmpty() ? tr("As it is written now.") : tr("Changes: %1").arg(text));
  } catch (const Error& error) {
    difference_->setText(QString::fromUtf8(error.what()));
  }
}

void PresetPicker::choose(QTreeWidgetItem* at) {
  if (!at || at->childCount() > 0) return;
  const QString path = at->data(0, kPath).toString();
  popup_->hide();
  Q_EMIT chosen(path);
}

/// Arrows go through the tree while one types; Return takes what is marked, Escape closes.
bool PresetPicker::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::KeyPress) return false;
  const int key = static_cast<QKeyEvent*>(event)->key();
  const bool typed = watched == search_;
  if (typed && (key == Qt::Key_Down || key == Qt::Key_Up)) {
    tree_->setFocus();
    if (!tree_->currentItem()) tree_->setCurrentItem(tree_->topLevelItem(0));
    return true;
  }
  if (key != Qt::Key_Return && key != Qt::Key_Enter) return false;
  QTreeWidgetItem* at = tree_->currentItem();
  if (!typed && at && at->childCount() > 0) at->setExpanded(!at->isExpanded());
  choose(at);
  return true;
}

}  // namespace saccade::ui
