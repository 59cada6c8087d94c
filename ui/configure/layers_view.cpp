#include "ui/configure/layers_view.h"

#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "kernels/engine/error.h"
#include "models/architectures/registry.h"
#include "ui/calm_wheel.h"
#include "ui/charts/colours.h"
#include "ui/configure/layer_list.h"
#include "ui/configure/layer_strip.h"
#include "ui/configure/problem_label.h"
#include "ui/configure/setting_editor.h"
#include "ui/configure/setting_group.h"
#include "ui/page_action.h"
#include "ui/plain_scroll.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

constexpr int kMostLayers = 1024;

void fill(QComboBox* combo, Architecture::Kind kind) {
  for (const Architecture* each : architectures())
    if (each->kind == kind) combo->addItem(QString::fromStdString(each->title), QString::fromStdString(each->id));
  combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  combo->setMinimumContentsLength(8);
  calm_wheel(combo);
}

QSpinBox* spin(int least, const QString& name, QWidget* parent) {
  auto* field = new QSpinBox(parent);
  field->setRange(least, kMostLayers);
  field->setAccessibleName(name);
  calm_wheel(field);
  return field;
}

QString layers_text(int64_t layers) { return layers == 1 ? LayersView::tr("1 layer") : LayersView::tr("%1 layers").arg(layers); }

}  // namespace

LayersView::LayersView(QWidget* parent)
    : QWidget(parent),
      strip_(new LayerStrip(this)),
      list_(new LayerList(this)),
      order_(new QLabel(this)),
      problem_(new ProblemLabel(this)),
      depth_(spin(0, tr("Layers in all"), this)),
      repeat_(spin(1, tr("Layers of this block in a row"), this)),
      mixer_(new QComboBox(this)),
      block_(new QComboBox(this)) {
  order_->setWordWrap(true);
  order_->setForegroundRole(QPalette::PlaceholderText);
  makeActions();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  column->addWidget(strip_);
  column->addWidget(order_);
  column->addWidget(problem_);
  column->addWidget(makeBlocks());
  column->addWidget(makeDetails(), 1);
  connect(list_, &QListWidget::currentRowChanged, this, [this](int row) {
    showBlock();
    if (row >= 0) Q_EMIT currentChanged(row);
  });
  connect(list_, &LayerList::dragged, this, &LayersView::move);
}

void LayersView::makeActions() {
  const auto action = [this](const QString& text, const QString& help, const QKeySequence& keys, auto what) {
    return addPageAction(this, text, help, keys, what);
  };
  add_ = action(tr("Add block"), tr("Attention below the marked block"), QKeySequence(Qt::Key_Insert), [this] { add(false); });
  duplicate_ = action(tr("Duplicate block"), tr("The same once more"), QKeySequence(Qt::CTRL | Qt::Key_D), [this] { add(true); });
  up_ = action(tr("Move block up"), tr("Nearer to the input; blocks can be dragged, too"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Up),
               [this] { move(current(), current() - 1); });
  down_ = action(tr("Move block down"), tr("Nearer to the output; blocks can be dragged, too"),
                 QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Down), [this] { move(current(), current() + 1); });
  remove_ = action(tr("Remove block"), tr("Takes the marked block out"), QKeySequence::Delete, [this] { remove(); });
  undo_ = action(tr("Undo the last change of blocks"), tr("Brings back what was added, removed or moved"), QKeySequence::Undo,
                 [this] { undo(); });
  more_ = action(tr("One layer more in the block"), {}, QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Right), [this] { repeat(1); });
  fewer_ = action(tr("One layer less in the block"), {}, QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Left), [this] { repeat(-1); });
}

QWidget* LayersView::makeBlocks() {
  auto* buttons = new QHBoxLayout;
  const std::pair<QAction*, QString> shown[] = {{add_, tr("+ Add")},
                                                {duplicate_, tr("Duplicate")},
                                                {up_, QStringLiteral("↑")},
                                                {down_, QStringLiteral("↓")},
                                                {remove_, tr("Remove")}};
  for (const auto& [action, text] : shown) {
    auto* button = new QToolButton(this);
    button->setText(text);
    button->setAccessibleName(action->text());
    button->setToolTip(action->toolTip());
    connect(button, &QToolButton::clicked, action, &QAction::trigger);
    connect(action, &QAction::changed, button, [button, its = action] { button->setEnabled(its->isEnabled()); });
    buttons->addWidget(button);
  }
  buttons->addStretch();
  auto* label = new QLabel(tr("Layers in all"), this);
  depth_->setSpecialValueText(tr("once"));
  depth_->setToolTip(tr("The blocks are repeated in their order up to this depth; once: as they are listed."));
  label->setBuddy(depth_);
  buttons->addWidget(label);
  buttons->addWidget(depth_);
  connect(depth_, &QSpinBox::valueChanged, this, [this](int layers) {
    if (showing_) return;
    stack_.depth = layers;
    changed();
  });
  auto* blocks = new QWidget(this);
  auto* column = new QVBoxLayout(blocks);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(buttons);
  column->addWidget(list_);
  list_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  list_->setMaximumHeight(230);
  return blocks;
}

QWidget* LayersView::makeDetails() {
  fill(mixer_, Architecture::Kind::mixer);
  block_->addItem(tr("the model's, or the mixer's usual one"), QString());
  fill(block_, Architecture::Kind::block);
  mixer_->setAccessibleName(tr("Mixer of this block"));
  block_->setAccessibleName(tr("Block that carries the mixer"));
  block_->setToolTip(tr("Norms and MLP around the mixer."));
  auto* rows = new QFormLayout;
  rows->addRow(tr("Mixer"), mixer_);
  rows->addRow(tr("Repeat"), repeat_);
  rows->addRow(tr("In"), block_);
  details_ = new QWidget(this);
  column_ = new QVBoxLayout(details_);
  column_->setContentsMargins(0, 6, 8, 0);
  column_->addLayout(rows);
  column_->addStretch();
  connect(mixer_, &QComboBox::activated, this, [this] {
    setGroup(with_other(stack_, static_cast<size_t>(current()), "mixer", mixer_->currentData().toString().toStdString()));
  });
  connect(block_, &QComboBox::activated, this, [this] {
    Json group = with_other(stack_, static_cast<size_t>(current()), "block", block_->currentData().toString().toStdString());
    if (block_->currentIndex() == 0) group.erase("block");
    setGroup(group);
  });
  connect(repeat_, &QSpinBox::valueChanged, this, [this](int layers) {
    if (showing_ || current() < 0) return;
    stack_.groups[static_cast<size_t>(current())]["repeat"] = layers;
    changed();
  });
  return new PlainScroll(details_, this);
}

void LayersView::setArchitecture(const Json& architecture, int64_t sequence_length) {
  sequence_length_ = sequence_length;
  try {
    if (!readable_ || stack_.architecture() != architecture) {
      stack_ = LayerGroups::of(architecture);
      before_.clear();
    }
    readable_ = true;
  } catch (const Error&) {  // the config's problem says why
    readable_ = false;
    stack_ = {};
    before_.clear();
  }
  showStack();
}

void LayersView::setProblem(const QString& problem) { problem_->say(faulty_ ? QString() : problem); }

int LayersView::current() const { return list_->currentRow(); }

void LayersView::setCurrent(int block) {
  if (block >= 0 && block < list_->count()) list_->setCurrentRow(block);
}

void LayersView::showStack() {
  showing_ = true;
  faulty_ = false;
  QList<LayerList::Block> blocks;
  QList<QColor> colours;
  QStringList titles, parts;
  for (size_t at = 0; at < stack_.groups.size(); ++at) {
    const QString title = QString::fromStdString(group_title(stack_, at));
    const QString repeat = QString::fromStdString(stack_.groups[at].value("repeat", Json(1)).dump());
    const QString problem = QString::fromStdString(group_problem(stack_, at, sequence_length_));
    faulty_ |= !problem.isEmpty();
    const QColor colour = seen_colour(group_colour(stack_, at), isDark(palette()));
    blocks << LayerList::Block{QStringLiteral("%1 × %2").arg(repeat, title), QString::fromStdString(group_words(stack_, at)), problem,
                               colour};
    colours << colour;
    titles << title;
    parts << QStringLiteral("%1 %2").arg(repeat, title);
  }
  list_->setBlocks(blocks);
  const std::vector<size_t> order = stack_.order();
  strip_->setLayers(order, colours, titles);
  QString text = layers_text(static_cast<int64_t>(order.size())) + QStringLiteral(": ") + parts.join(QStringLiteral(", "));
  if (stack_.depth > stack_.once()) text += tr(", repeated in this order");
  if (!stack_.whole.empty())
    text = tr("%1. %2 is a whole architecture, whose layers stand in no stack with others; choose a mixer in the form to build one.")
               .arg(layers_text(static_cast<int64_t>(order.size())), QString::fromStdString(stack_.whole));
  order_->setText(readable_ ? text : tr("The layers cannot be read as they are written."));
  depth_->setValue(static_cast<int>(stack_.depth));
  showing_ = false;
  showBlock();
}

/// The marked block's own settings.
void LayersView::showBlock() {
  const int row = current();
  strip_->setCurrent(stack_.groups.size() > 1 ? row : -1);
  enableActions();
  const bool any = row >= 0 && row < static_cast<int>(stack_.groups.size()) && stack_.whole.empty();
  details_->setVisible(any);
  if (!any) return;
  const auto at = static_cast<size_t>(row);
  const Json& group = stack_.groups[at];
  showing_ = true;
  mixer_->setCurrentIndex(mixer_->findData(QString::fromStdString(stack_.mixer(at))));
  const Json block = group.value("block", Json(""));
  block_->setCurrentIndex(block.is_string() ? block_->findData(QString::fromStdString(block.get<std::string>())) : -1);
  repeat_->setValue(whole_number<int>(group.value("repeat", Json(1))).value_or(1));
  showing_ = false;
  const std::vector<Setting> settings = settings_of_group(stack_, at);
  const std::string wanted = stack_.block(at) + "/" + stack_.mixer(at);
  if (wanted != built_for_ || settings.size() != editors_.size()) buildEditors(settings);
  built_for_ = wanted;
  for (size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    const Json value = group.value(setting.name, setting.default_value);
    editors_[i]->setValue(value, value != setting.default_value, setting.default_value);
  }
}

void LayersView::buildEditors(const std::vector<Setting>& settings) {
  editors_.clear();
  delete std::exchange(settings_, nullptr);
  for (const Setting& setting : settings) {
    auto* editor = new SettingEditor({setting, "/architecture/layers/" + setting.name, {}});
    const auto put = [this, name = setting.name](const std::optional<Json>& value) {
      Json group = stack_.groups[static_cast<size_t>(current())];
      if (value)
        group[name] = *value;
      else
        group.erase(name);
      setGroup(group);
    };
    connect(editor, &SettingEditor::edited, this, [put](const Json& value) { put(value); });
    connect(editor, &SettingEditor::resetWanted, this, [put] { put({}); });
    editors_.push_back(editor);
  }
  settings_ = new SettingGroup(tr("Settings of this block"), editors_, true, details_);
  column_->insertWidget(1, settings_);
  settings_->show();
}

void LayersView::enableActions() {
  const bool any = isVisible() && readable_ && stack_.whole.empty() && current() >= 0;
  const int last = static_cast<int>(stack_.groups.size()) - 1;
  for (QAction* action : {add_, duplicate_, more_}) action->setEnabled(any);
  up_->setEnabled(any && current() > 0);
  down_->setEnabled(any && current() < last);
  remove_->setEnabled(any && last > 0);
  fewer_->setEnabled(any && repeat_->value() > 1);
  undo_->setEnabled(isVisible() && !before_.empty());
  depth_->setEnabled(readable_ && stack_.groups.size() > 1);
}

void LayersView::add(bool same) {
  const auto at = static_cast<size_t>(current());
  remember();
  const Json group = same ? stack_.groups[at] : Json{{"repeat", 1}, {"mixer", "attention"}};
  stack_.groups.insert(stack_.groups.begin() + static_cast<std::ptrdiff_t>(at) + 1, group);
  changed();
  setCurrent(static_cast<int>(at) + 1);
}

void LayersView::remove() {
  const int at = current();
  remember();
  stack_.groups.erase(stack_.groups.begin() + at);
  if (stack_.groups.size() == 1) stack_.depth = 0;
  changed();
  setCurrent(std::min(at, static_cast<int>(stack_.groups.size()) - 1));
}

void LayersView::move(int from, int to) {
  remember();
  const Json group = stack_.groups[static_cast<size_t>(from)];
  stack_.groups.erase(stack_.groups.begin() + from);
  stack_.groups.insert(stack_.groups.begin() + to, group);
  changed();
  setCurrent(to);
}

void LayersView::remember() {
  constexpr size_t kMost = 100;
  before_.push_back(stack_);
  if (before_.size() > kMost) before_.erase(before_.begin());
}

void LayersView::undo() {
  const int at = current();
  stack_ = before_.back();
  before_.pop_back();
  changed();
  setCurrent(std::min(at, static_cast<int>(stack_.groups.size()) - 1));
}

void LayersView::repeat(int by) { repeat_->setValue(repeat_->value() + by); }

void LayersView::setGroup(const Json& group) {
  stack_.groups[static_cast<size_t>(current())] = group;
  changed();
}

void LayersView::changed() {
  showStack();
  Q_EMIT edited(stack_.architecture());
}

void LayersView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  enableActions();
}

/// The blocks' colours are other ones on a dark ground.
void LayersView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showStack();
}

void LayersView::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  enableActions();
}

}  // namespace saccade::ui
