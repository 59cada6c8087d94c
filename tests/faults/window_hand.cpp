// The hand that drives the window: a generic plugin of Qt, which the real program loads by QT_QPA_GENERIC_PLUGINS=window_hand:FIFO. It
// reads lines of JSON from that pipe and does one after the other in the event loop, waiting for what is to be touched until it is there;
// FIFO.did gets a line for each: its number, and "done" or "not found".
//
//   {"do": "key", "keys": "Ctrl+7"}                    a shortcut of the window
//   {"do": "type", "text": "dark"}                     into what has the focus
//   {"do": "press", "name": "Start run"}               a button, by its name for screen readers or its words
//   {"do": "write", "name": "Study to begin", "text": …}   the whole text of an editor, or of the line of a choice
//   {"do": "choose", "name": "Whose queue it is", "text": "on server"}
//   {"do": "mark", "name": "Queue", "row": 1}          a row of a table
//   {"do": "see", "name": "Start run"}                 waits until it is to be seen
//   {"do": "picture", "name": "FILE.png"}              of the window, for those who look for a fault
#include <fcntl.h>
#include <unistd.h>

#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QElapsedTimer>
#include <QGenericPlugin>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPointer>
#include <QSocketNotifier>
#include <QTimer>
#include <QTreeView>
#include <QtTest>
#include <deque>

namespace {

constexpr int kPatience = 4000;  // ms for what is to be touched to be there

QWidget* main_window() {
  for (QWidget* each : QApplication::topLevelWidgets())
    if (each->inherits("QMainWindow") && each->isVisible()) return each;
  return nullptr;
}

/// What is seen and bears the name.
template <class T>
T* named(const QString& name, bool enabled = true) {
  for (QWidget* each : QApplication::allWidgets()) {
    auto* found = qobject_cast<T*>(each);
    if (!found || !found->isVisible() || (enabled && !found->isEnabled())) continue;
    if (found->accessibleName() == name) return found;
    if (auto* button = qobject_cast<QAbstractButton*>(found); button && button->text() == name) return found;
  }
  return nullptr;
}

bool write(const QString& name, const QString& text) {
  if (auto* editor = named<QPlainTextEdit>(name)) {
    editor->setFocus();
    editor->selectAll();
    editor->insertPlainText(text);
    return true;
  }
  QLineEdit* line = named<QLineEdit>(name);
  if (auto* box = named<QComboBox>(name)) line = box->lineEdit();
  if (!line) return false;
  line->setFocus();
  line->selectAll();
  line->insert(text);
  return true;
}

bool choose(const QString& name, const QString& text) {
  auto* box = named<QComboBox>(name);
  const int at = box ? box->findText(text) : -1;
  if (at < 0) return false;
  box->setCurrentIndex(at);
  Q_EMIT box->activated(at);
  return true;
}

/// False: not yet.
bool perform(const QJsonObject& order) {
  const QString what = order[QStringLiteral("do")].toString(), name = order[QStringLiteral("name")].toString();
  const QString text = order[QStringLiteral("text")].toString();
  QWidget* window = main_window();
  if (!window) return false;
  if (what == QStringLiteral("key")) {
    QWidget* focus = QApplication::focusWidget();
    QTest::keySequence(focus ? focus->window() : window, QKeySequence(order[QStringLiteral("keys")].toString()));
    return true;
  }
  if (what == QStringLiteral("type")) {
    if (!QApplication::focusWidget()) return false;
    QTest::keyClicks(QApplication::focusWidget(), text);
    return true;
  }
  if (what == QStringLiteral("press")) {
    auto* button = named<QAbstractButton>(name);
    if (button) button->click();
    return button;
  }
  if (what == QStringLiteral("write")) return write(name, text);
  if (what == QStringLiteral("choose")) return choose(name, text);
  if (what == QStringLiteral("mark")) {
    auto* table = named<QTreeView>(name);
    const QModelIndex index = table ? table->model()->index(order[QStringLiteral("row")].toInt(), 0) : QModelIndex();
    if (index.isValid()) table->setCurrentIndex(index);
    return index.isValid();
  }
  if (what == QStringLiteral("picture")) return window->grab().save(name);
  return what == QStringLiteral("see") && named<QWidget>(name, false);
}

}  // namespace

class WindowHand : public QObject {
  Q_OBJECT
 public:
  explicit WindowHand(const QString& fifo)
      : orders_(::open(fifo.toUtf8().constData(), O_RDWR | O_NONBLOCK | O_CLOEXEC)),
        did_(::open((fifo + QStringLiteral(".did")).toUtf8().constData(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
        notifier_(orders_, QSocketNotifier::Read) {
    if (orders_ < 0 || did_ < 0) qFatal("window_hand: cannot open %s", qPrintable(fifo));
    connect(&notifier_, &QSocketNotifier::activated, this, &WindowHand::read);
    timer_.setInterval(20);
    connect(&timer_, &QTimer::timeout, this, &WindowHand::next);
  }

 private:
  void read() {
    char block[4096];
    for (ssize_t count; (count = ::read(orders_, block, sizeof block)) > 0;) bytes_.append(block, count);
    for (qsizetype end; (end = bytes_.indexOf('\n')) >= 0; bytes_.remove(0, end + 1))
      waiting_.push_back(QJsonDocument::fromJson(bytes_.left(end)).object());
    if (!timer_.isActive() && !waiting_.empty()) waits_.start(), timer_.start();
  }
  /// One order a turn of the event loop, so that what follows from it is done before the next one.
  void next() {
    if (busy_) return;  // keys may start a loop of their own
    busy_ = true;
    const bool done = perform(waiting_.front());
    busy_ = false;
    if (!done && waits_.elapsed() < kPatience) return;
    tell(done ? "done" : "not found");
    waiting_.pop_front();
    waits_.start();
    if (waiting_.empty()) timer_.stop();
  }
  void tell(const char* what) {
    const QByteArray line =
        QByteArray::number(++number_) + ' ' + what + ' ' + QJsonDocument(waiting_.front()).toJson(QJsonDocument::Compact) + '\n';
    if (::write(did_, line.constData(), static_cast<size_t>(line.size())) != line.size()) qFatal("window_hand: cannot tell");
  }

  int orders_, did_, number_ = 0;
  QSocketNotifier notifier_;
  QByteArray bytes_;
  std::deque<QJsonObject> waiting_;
  QElapsedTimer waits_;
  QTimer timer_;
  bool busy_ = false;
};

class WindowHandPlugin : public QGenericPlugin {
  Q_OBJECT
  Q_PLUGIN_METADATA(IID QGenericPluginFactoryInterface_iid FILE "window_hand.json")
 public:
  QObject* create(const QString& key, const QString& fifo) override {
    return key.compare(QStringLiteral("window_hand"), Qt::CaseInsensitive) == 0 ? new WindowHand(fifo) : nullptr;
  }
};

#include "window_hand.moc"
