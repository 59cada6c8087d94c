#include "ui/studies/queue_view.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/charts/figure_view.h"
#include "ui/page_action.h"
#include "ui/program_call.h"
#include "ui/queue_calls.h"
#include "ui/session.h"
#include "ui/studies/lines_table.h"
#include "ui/studies/study_words.h"
#include "ui/where_choice.h"

namespace saccade::ui {
namespace {

constexpr qint64 kAskedEvery = 3000;  ///< ms between two questions to a host

LinesModel::Line line_of(const QueueLine& entry, int place) {
  return {QStringLiteral("%1 %2").arg(entry.device).arg(entry.id),
          {{QString::number(place)},
           {entry.name, {}, -1, false, entry.directory},
           {entry.study ? QueueView::tr("study") : QueueView::tr("run")},
           {entry.state},
           {QStringLiteral("%1 %").arg(static_cast<int>(std::floor(100 * entry.share))), entry.share, entry.share},
           {left_of(entry.seconds_left)},
           {entry.device}}};
}

QString head_text(const QueueHead& head, qsizetype entries) {
  const QString state = head.paused    ? QueueView::tr("paused")
                        : head.worked  ? QueueView::tr("at work")
                        : entries == 0 ? QueueView::tr("at rest")
                                       : QueueView::tr("⚠ nobody works it off (was the machine restarted?); Go on starts it");
  QString text = QueueView::tr("%1: %2").arg(head.device, state);
  if (entries == 0) return text;
  text += QStringLiteral(" · ") +
          (head.jobs == kJobsAsPays ? QueueView::tr("as many at a time as pay") : QueueView::tr("%1 at a time").arg(head.jobs));
  text += QueueView::tr(" · %1 % done").arg(static_cast<int>(std::floor(100 * head.share)));
  if (head.paused || head.seconds_left <= 0) return text;
  return text + QStringLiteral(" · ") + (head.at_least ? QueueView::tr("at least ") : QString()) + left_of(head.seconds_left);
}

}  // namespace

QueueView::QueueView(Session& session, QWidget* page)
    : QWidget(page), session_(session), calls_(new QueueCalls(session, this)), where_(new WhereChoice(this, WhereChoice::What::queues)) {
  makeActions(page);
  table_ =
      new LinesTable(tr("Queue"), {QString(), tr("Name"), tr("Kind"), tr("State"), tr("Done"), tr("Time"), tr("Device")}, {}, false, this);
  text_ = new QLabel(this);
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);  // what hosts say is in it
  text_->setAccessibleName(tr("State of the queue"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  auto* head = new QHBoxLayout;  // among the buttons it would make the page too wide for a small window
  head->addWidget(where_, 0, Qt::AlignTop);
  head->addWidget(text_, 1);
  column->addLayout(head);
  column->addWidget(table_, 1);
  where_->choose(session_.place().value("studies/queue").toString());
  connect(where_, &QComboBox::currentIndexChanged, this, &QueueView::chooseHost);
  connect(where_, &QComboBox::activated, this, [this] { session_.place().set("studies/queue", place()); });
  connect(calls_, &QueueCalls::done, this, [this] {
    since_.invalidate();
    Q_EMIT stale();
  });
  connect(table_, &LinesTable::chosen, this, &QueueView::enableActions);
}

void QueueView::makeActions(QWidget* page) {
  const auto add = [page](const QString& text, const QString& help, const QKeySequence& keys, auto what) {
    return addPageAction(page, text, help, keys, what);
  };
  const auto queue = [this](auto what) {
    return [this, what] {
      if (!device().isEmpty()) what({device(), host_});
    };
  };
  actions_.pause = add(tr("Pause"), tr("Nothing more is started; runs at work go on"), {},
                       queue([this](const QueueOf& of) { calls_->pause(of, false); }));
  actions_.pause_now =
      add(tr("Pause now"), tr("Runs at work stop at a checkpoint, too"), {}, queue([this](const QueueOf& of) { calls_->pause(of, true); }));
  actions_.work = add(tr("Go on"), tr("Work the queue off"), {}, queue([this](const QueueOf& of) { calls_->goOn(of); }));
  actions_.work->setIconText(tr("Go on with the queue"));
  actions_.up = add(tr("Up"), tr("Earlier in the order"), QKeySequence(Qt::ALT | Qt::Key_Up), [this] { move(-1); });
  actions_.down = add(tr("Down"), tr("Later in the order"), QKeySequence(Qt::ALT | Qt::Key_Down), [this] { move(1); });
  actions_.remove = add(tr("Take out"), tr("Out of the queue; runs at work go on"), {}, [this] {
    if (const QueueLine* line = entry()) calls_->takeOut({line->device, host_}, line->id, line->name);
  });
}

void QueueView::addControls(Card& card) {
  for (QAction* action : {actions_.pause, actions_.pause_now, actions_.work, actions_.up, actions_.down, actions_.remove})
    card.addControl(button_of(action, &card));
}

QString QueueView::place() const { return where_->place(); }

QueuesAsked QueueView::asked() const { return said_.host == place() ? said_ : QueuesAsked{.host = place()}; }

/// What was said by another host is of no use.
void QueueView::chooseHost() {
  if (said_.host == place()) return;
  said_ = {.host = place()};
  if (call_) call_->cancel();
  call_ = nullptr;
  since_.invalidate();
  Q_EMIT stale();
}

void QueueView::askHost() {
  if (host_.isEmpty() || host_ != place() || !reached_ || call_ || !isVisible()) return;
  if (since_.isValid() && since_.elapsed() < kAskedEvery) return;
  since_.start();
  call_ = new ProgramCall(
      {QStringLiteral("queue"), QStringLiteral("list"), QStringLiteral("--on"), host_}, false,
      [this, host = host_](const ProgramCall::Answer& answer) {
        call_ = nullptr;
        if (host != place()) return;
        said_.host = host;
        said_.problem = answer.ok ? QString() : answer.reason;
        if (answer.ok) said_.told = answer.output;
        Q_EMIT stale();
      },
      this);
}

void QueueView::showState(const StudiesState& state) {
  if (state.host != place()) return Q_EMIT stale();  // another one was chosen meanwhile
  host_ = state.host, host_text_ = state.host_text, reached_ = state.reached, told_ = state.told;
  queues_ = state.queues, entries_ = state.entries;
  std::vector<LinesModel::Line> lines;
  for (const QueueHead& head : queues_) {
    int place = 0;
    for (const QueueLine& line : entries_)
      if (line.device == head.device) lines.push_back(line_of(line, ++place));
  }
  table_->setVisible(!lines.empty());
  text_->setAlignment(lines.empty() ? Qt::AlignCenter : Qt::AlignTop | Qt::AlignLeft);  // as other pages say that there is nothing
  table_->setLines(std::move(lines));
  text_->setText(text());
  enableActions();
  askHost();
}

QString QueueView::text() const {
  QStringList heads;
  for (const QueueHead& head : queues_)
    heads << head_text(head, std::count_if(entries_.begin(), entries_.end(), [&](const QueueLine& e) { return e.device == head.device; }));
  if (host_.isEmpty()) return heads.isEmpty() ? tr("Nothing has been queued on this machine yet.") : heads.join(QLatin1Char('\n'));
  if (!reached_)
    heads.prepend(told_ ? tr("⚠ %1 is %2. This is what it said last:").arg(host_, host_text_)
                        : tr("⚠ %1 is %2. Its queue is shown when it is connected.").arg(host_, host_text_));
  if (reached_ && !said_.problem.isEmpty()) heads.prepend(tr("⚠ %1 does not tell its queue: %2").arg(host_, host_text_));
  if (!heads.isEmpty()) return heads.join(QLatin1Char('\n'));
  return told_ ? tr("Nothing has been queued on %1 yet.").arg(host_) : tr("%1 is asked …").arg(host_);
}

void QueueView::enableActions() {
  const QString device = this->device();
  const auto head = std::find_if(queues_.begin(), queues_.end(), [&](const QueueHead& h) { return h.device == device; });
  const bool any = reached_ && head != queues_.end();
  const auto waiting = std::count_if(entries_.begin(), entries_.end(), [&](const QueueLine& e) { return e.device == device; });
  actions_.pause->setEnabled(any && !head->paused);
  actions_.pause_now->setEnabled(any && (!head->paused || waiting > 0));
  actions_.work->setEnabled(any && (head->paused || (!head->worked && waiting > 0)));
  const bool marked = reached_ && entry();
  for (QAction* action : {actions_.up, actions_.down}) action->setEnabled(marked && waiting > 1);
  actions_.remove->setEnabled(marked);
}

const QueueLine* QueueView::entry() const {
  for (const QueueLine& line : entries_)
    if (QStringLiteral("%1 %2").arg(line.device).arg(line.id) == table_->currentKey()) return &line;
  return nullptr;
}

QString QueueView::device() const {
  if (const QueueLine* line = entry()) return line->device;
  for (const QueueHead& head : queues_)
    for (const QueueLine& line : entries_)
      if (line.device == head.device) return head.device;
  return queues_.empty() ? QString() : queues_.front().device;
}

void QueueView::move(int by) {
  const QueueLine* line = entry();
  if (!line) return;
  int place = 0, last = 0;
  for (const QueueLine& each : entries_)
    if (each.device == line->device && ++last && each.id == line->id) place = last;
  calls_->move({line->device, host_}, line->id, std::clamp(place + by, 1, last));
}

}  // namespace saccade::ui
