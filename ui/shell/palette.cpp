#include "ui/shell/palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <optional>

namespace saccade::ui {
namespace {

constexpr int kMost = 60;

/// How well words match: 0 where each begins a word, more the further in they stand; nothing where one is missing.
std::optional<int> distance(const QString& text, const QStringList& words) {
  int sum = 0;
  for (const QString& word : words) {
    const qsizetype at = text.indexOf(word, 0, Qt::CaseInsensitive);
    if (at < 0) return {};
    const bool begins = at == 0 || !text[at - 1].isLetterOrNumber();
    sum += (at == 0 ? 0 : begins ? 1 : 4);
  }
  return sum;
}

}  // namespace

CommandPalette::CommandPalette(std::vector<Command> commands, QWidget* window)
    : QFrame(window),
      commands_(std::move(commands)),
      line_(new QLineEdit(this)),
      list_(new QListWidget(this)),
      before_(window->focusWidget()) {
  setAttribute(Qt::WA_DeleteOnClose);
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setAccessibleName(tr("Search or run a command"));
  line_->setPlaceholderText(tr("Page, action, run, preset or setting"));
  line_->setAccessibleName(tr("Search or run a command"));
  line_->installEventFilter(this);
  list_->setAccessibleName(tr("What matches"));
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setTextElideMode(Qt::ElideMiddle);
  auto* column = new QVBoxLayout(this);
  column->addWidget(line_);
  column->addWidget(list_);
  connect(line_, &QLineEdit::textChanged, this, &CommandPalette::search);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::choose);
  resize(std::min(560, window->width() - 40), std::min(400, window->height() - 80));
  move((window->width() - width()) / 2, 40);
  search({});
  show();
  raise();
  line_->setFocus(Qt::ShortcutFocusReason);
}

void CommandPalette::search(const QString& text) {
  const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  std::vector<std::pair<int, size_t>> found;
  for (size_t i = 0; i < commands_.size(); ++i)
    if (const auto away = distance(commands_[i].text + QLatin1Char(' ') + commands_[i].kind, words)) found.emplace_back(*away, i);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  list_->clear();
  for (size_t i = 0; i < std::min<size_t>(found.size(), kMost); ++i) {
    const Command& command = commands_[found[i].second];
    const QString keys = command.keys.isEmpty() ? QString() : QStringLiteral("   ") + command.keys;
    auto* item = new QListWidgetItem(QStringLiteral("%1  ·  %2%3").arg(command.text, command.kind, keys), list_);
    item->setData(Qt::UserRole, static_cast<int>(found[i].second));
  }
  if (found.empty()) (new QListWidgetItem(tr("Nothing has all these words."), list_))->setFlags(Qt::NoItemFlags);
  list_->setCurrentRow(0);
}

void CommandPalette::choose() {
  const QListWidgetItem* item = list_->currentItem();
  const QVariant which = item ? item->data(Qt::UserRole) : QVariant();
  if (!which.isValid()) return;
  const auto run = commands_[static_cast<size_t>(which.toInt())].run;
  QObject* window = parent();
  leave();
  QTimer::singleShot(0, window, run);  // once this one is gone, so that the focus can go where the command wants it
}

void CommandPalette::leave() {
  line_->removeEventFilter(this);
  if (before_ && line_->hasFocus()) before_->setFocus(Qt::OtherFocusReason);
  close();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == line_ && event->type() == QEvent::FocusOut && static_cast<QFocusEvent*>(event)->reason() != Qt::PopupFocusReason &&
      static_cast<QFocusEvent*>(event)->reason() != Qt::ActiveWindowFocusReason)
    QTimer::singleShot(0, this, &CommandPalette::leave);
  if (watched != line_ || event->type() != QEvent::KeyPress) return QFrame::eventFilter(watched, event);
  const int key = static_cast<QKeyEvent*>(event)->key(), last = list_->count() - 1;
  const int page = key == Qt::Key_PageUp || key == Qt::Key_PageDown ? 10 : 1;
  switch (key) {
    case Qt::Key_Up:
    case Qt::Key_PageUp: list_->setCurrentRow(std::max(0, list_->currentRow() - page)); return true;
    case Qt::Key_Down:
    case Qt::Key_PageDown: list_->setCurrentRow(std::min(last, list_->currentRow() + page)); return true;
    case Qt::Key_Return:
    case Qt::Key_Enter: choose(); return true;
    case Qt::Key_Escape: leave(); return true;
    default: return false;
  }
}

}  // namespace saccade::ui
