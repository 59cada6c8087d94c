#include "ui/inspect/text_choice.h"

#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/calm_wheel.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {
namespace {

enum Source { kCaptured, kTyped, kFile, kTask, kItem };
constexpr const char* kNames[] = {"captured", "typed", "file", "task", "item"};

QHBoxLayout* row_of(QWidget* page) {
  auto* row = new QHBoxLayout(page);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  return row;
}

QSpinBox* spin(const QString& name, const QString& help, int least, int most, int value) {
  auto* box = new QSpinBox;
  box->setAccessibleName(name);
  box->setToolTip(wrapped_tip(help));
  box->setRange(least, most);
  box->setValue(value);
  box->setKeyboardTracking(false);
  return box;
}

void add_labelled(QHBoxLayout* row, const QString& name, QWidget* field) {
  auto* label = new QLabel(name);
  label->setBuddy(field);
  row->addWidget(label);
  row->addWidget(field);
}

}  // namespace

TextChoice::TextChoice(QWidget* parent) : QWidget(parent), box_(new QComboBox), pages_(new QStackedWidget(this)) {
  for (const QString& name : {tr("Captured text"), tr("Typed or pasted text"), tr("File"), tr("Generated task"), tr("Scored item")})
    box_->addItem(name);
  box_->setAccessibleName(tr("Text to inspect"));
  box_->setToolTip(wrapped_tip(tr("Captured text is read from the run. The others are run through its checkpoint by a helper process.")));
  box_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  calm_wheel(box_);
  for (QWidget* page : {new QWidget, makeTyped(), makeFile(), makeTask(), makeItems()}) pages_->addWidget(page);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(pages_);
  connect(box_, &QComboBox::activated, this, [this] {
    showChoice();
    Q_EMIT stateChanged();
    Q_EMIT chosen();
  });
  showChoice();
}

QToolButton* TextChoice::readButton() {
  auto* read = new QToolButton;
  read->setText(tr("&Read"));
  read->setAccessibleName(tr("Read this text"));
  read->setToolTip(tr("Run the text through the checkpoint (Ctrl+Return)"));
  connect(read, &QToolButton::clicked, this, &TextChoice::chosen);
  return read;
}

QWidget* TextChoice::makeTyped() {
  auto* page = new QWidget;
  typed_ = new QPlainTextEdit;
  typed_->setAccessibleName(tr("Text to type or paste"));
  typed_->setPlaceholderText(tr("Type or paste a text, then Ctrl+Return"));
  typed_->setTabChangesFocus(true);
  typed_->setFixedHeight(2 * typed_->fontMetrics().lineSpacing() + 14);
  typed_->installEventFilter(this);
  auto* row = row_of(page);
  row->addWidget(typed_, 1);
  row->addWidget(readButton());
  connect(typed_, &QPlainTextEdit::textChanged, this, &TextChoice::stateChanged);
  return page;
}

QWidget* TextChoice::makeFile() {
  auto* page = new QWidget;
  path_ = new QLineEdit;
  path_->setAccessibleName(tr("File to read"));
  path_->setPlaceholderText(tr("Path of a text file; its beginning is read"));
  auto* choose = new QToolButton;
  choose->setText(tr("&Browse…"));
  auto* row = row_of(page);
  row->addWidget(path_, 1);
  row->addWidget(choose);
  row->addWidget(readButton());
  connect(choose, &QToolButton::clicked, this, &TextChoice::browse);
  connect(path_, &QLineEdit::returnPressed, this, &TextChoice::chosen);
  connect(path_, &QLineEdit::textChanged, this, &TextChoice::stateChanged);
  return page;
}

QWidget* TextChoice::makeTask() {
  auto* page = new QWidget;
  task_ = new QComboBox;
  calm_wheel(task_);
  task_->setAccessibleName(tr("Task"));
  for (const auto& [id, name, help] : {std::tuple("task-copy", tr("copy"), tr("Repeat letters.")),
                                       std::tuple("task-mqar", tr("associative recall"), tr("Values of keys that come again.")),
                                       std::tuple("task-passkey", tr("pass key"), tr("Digits hidden in a filler."))}) {
    task_->addItem(name, QString::fromLatin1(id));
    task_->setItemData(task_->count() - 1, help, Qt::ToolTipRole);
  }
  length_ = spin(tr("Length of the task in bytes"), tr("Bytes of text, at most"), 8, 1 << 20, 128);
  seed_ = spin(tr("Seed of the task"), tr("Another seed gives other texts"), 0, 1 << 30, 1);
  index_ = spin(tr("Number of the text"), tr("Another number gives another text"), 0, 1 << 30, 0);
  auto* row = row_of(page);
  add_labelled(row, tr("Task"), task_);
  add_labelled(row, tr("Bytes"), length_);
  add_labelled(row, tr("Seed"), seed_);
  add_labelled(row, tr("Number"), index_);
  row->addStretch(1);
  const auto changed = [this] {
    Q_EMIT stateChanged();
    Q_EMIT chosen();
  };
  connect(task_, &QComboBox::activated, this, changed);
  for (QSpinBox* box : {length_, seed_, index_}) {
    calm_wheel(box);
    connect(box, &QSpinBox::valueChanged, this, changed);
  }
  return page;
}

QToolButton* TextChoice::itemButton(const QString& text, const QString& name, int by) {
  auto* button = new QToolButton;
  button->setText(text);
  button->setAccessibleName(name);
  button->setToolTip(name);
  connect(button, &QToolButton::clicked, this, [this, by] {
    const int at = std::clamp(items_->currentIndex() + by, 0, std::max(0, items_->count() - 1));
    if (at == items_->currentIndex()) return;
    items_->setCurrentIndex(at);
    Q_EMIT stateChanged();
    Q_EMIT chosen();
  });
  return button;
}

QWidget* TextChoice::makeItems() {
  auto* page = new QWidget;
  of_items_ = new QLabel;
  items_ = new QComboBox;
  calm_wheel(items_);
  items_->setAccessibleName(tr("Failed item"));
  items_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  items_->setMinimumContentsLength(24);
  of_items_->setBuddy(items_);
  auto* row = row_of(page);
  row->addWidget(of_items_);
  row->addWidget(items_, 1);
  row->addWidget(itemButton(QStringLiteral("‹"), tr("The failed item before"), -1));
  row->addWidget(itemButton(QStringLiteral("›"), tr("The next failed item"), 1));
  connect(items_, &QComboBox::activated, this, [this] {
    Q_EMIT stateChanged();
    Q_EMIT chosen();
  });
  takeItems({});
  return page;
}

/// What is no such list leaves none.
void TextChoice::takeItems(const nlohmann::json& items) {
  const QSignalBlocker blocker(items_);
  items_->clear();
  scored_ = nullptr;
  try {
    for (const nlohmann::json& item : items.at("items"))
      items_->addItem(QString::fromStdString(item.at("words").get<std::string>()),
                      static_cast<qlonglong>(item.at("number").get<int64_t>()));
    scored_ = {{"run", items.at("run").get<std::string>()},
               {"task", items.at("task").get<std::string>()},
               {"step", items.at("step").get<int64_t>()}};
    items_->setCurrentIndex(std::clamp(items.at("at").get<int>(), 0, std::max(0, items_->count() - 1)));
  } catch (const nlohmann::json::exception&) {
    items_->clear();
  }
  items_->setEnabled(items_->count() > 0);
  of_items_->setText(items_->count() == 0
                         ? tr("A click on a score in Compare brings its failed items here.")
                         : tr("%1, scored at step %2").arg(QString::fromStdString(scored_["task"])).arg(scored_["step"].get<int64_t>()));
}

void TextChoice::browse() {
  auto* dialog = new QFileDialog(this, tr("Text to inspect"), path_->text());
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    path_->setText(path);
    Q_EMIT chosen();
  });
  dialog->show();  // not in front of what goes on
}

bool TextChoice::captured() const { return box_->currentIndex() == kCaptured; }

bool TextChoice::ofItems() const { return box_->currentIndex() == kItem; }

bool TextChoice::complete() const {
  if (box_->currentIndex() == kTyped) return !typed_->toPlainText().isEmpty();
  if (box_->currentIndex() == kItem) return items_->count() > 0;
  return box_->currentIndex() != kFile || !path_->text().trimmed().isEmpty();
}

nlohmann::json TextChoice::source() const {
  nlohmann::json source{{"source", kNames[box_->currentIndex()]}};
  switch (box_->currentIndex()) {
    case kTyped: source["text"] = typed_->toPlainText().toStdString(); break;
    case kFile: source["path"] = path_->text().trimmed().toStdString(); break;
    case kTask:
      source["task"] = task_->currentData().toString().toStdString();
      source["length"] = length_->value(), source["seed"] = seed_->value(), source["index"] = index_->value();
      break;
    case kItem:
      if (items_->count() == 0) break;
      source.update(scored_);
      source["item"] = items_->currentData().toLongLong();
      break;
    default: break;
  }
  return source;
}

QByteArray TextChoice::state() const {
  nlohmann::json state{{"choice", kNames[box_->currentIndex()]},
                       {"typed", typed_->toPlainText().left(1 << 16).toStdString()},
                       {"file", path_->text().toStdString()},
                       {"task", task_->currentData().toString().toStdString()},
                       {"length", length_->value()},
                       {"seed", seed_->value()},
                       {"index", index_->value()}};
  if (items_->count() > 0) {
    nlohmann::json items = nlohmann::json::array();
    for (int i = 0; i < items_->count(); ++i)
      items.push_back({{"number", items_->itemData(i).toLongLong()}, {"words", items_->itemText(i).toStdString()}});
    state["scored"] = scored_;
    state["scored"]["items"] = items, state["scored"]["at"] = items_->currentIndex();
  }
  return QByteArray::fromStdString(state.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void TextChoice::restore(const QByteArray& state) {
  const nlohmann::json kept = nlohmann::json::parse(state.constBegin(), state.constEnd(), nullptr, false);
  if (!kept.is_object()) return;
  const QSignalBlocker blocker(this);
  const auto text = [&](const char* key) {
    const auto found = kept.find(key);
    return found != kept.end() && found->is_string() ? QString::fromStdString(found->get<std::string>()) : QString();
  };
  const auto number = [&](const char* key, QSpinBox* box) {
    const auto found = kept.find(key);
    const QSignalBlocker quiet(box);
    if (found == kept.end()) return;
    if (const auto kept_number = whole_number<int64_t>(*found))
      box->setValue(static_cast<int>(std::clamp<int64_t>(*kept_number, box->minimum(), box->maximum())));
  };
  typed_->setPlainText(text("typed"));
  path_->setText(text("file"));
  task_->setCurrentIndex(std::max(0, task_->findData(text("task"))));
  takeItems(kept.value("scored", nlohmann::json()));
  number("length", length_), number("seed", seed_), number("index", index_);
  for (int i = 0; i < box_->count(); ++i)
    if (text("choice") == QLatin1String(kNames[i])) box_->setCurrentIndex(i);
  showChoice();
}

void TextChoice::setTyped(const QString& text) {
  box_->setCurrentIndex(kTyped);
  typed_->setPlainText(text);
  showChoice();
  Q_EMIT chosen();
}

void TextChoice::setItems(const QByteArray& items) {
  takeItems(nlohmann::json::parse(items.constBegin(), items.constEnd(), nullptr, false));
  box_->setCurrentIndex(kItem);
  showChoice();
  Q_EMIT stateChanged();
  Q_EMIT chosen();
}

void TextChoice::showChoice() {
  pages_->setCurrentIndex(box_->currentIndex());
  for (int i = 0; i < pages_->count(); ++i)  // as high as what is shown
    pages_->widget(i)->setSizePolicy(QSizePolicy::Preferred, i == pages_->currentIndex() ? QSizePolicy::Preferred : QSizePolicy::Ignored);
  setVisible(!captured());
  adjustSize();
}

bool TextChoice::eventFilter(QObject* watched, QEvent* event) {
  if (watched == typed_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if ((key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) && key->modifiers() & Qt::ControlModifier) {
      Q_EMIT chosen();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace saccade::ui
