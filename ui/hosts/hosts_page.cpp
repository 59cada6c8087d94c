#include "ui/hosts/hosts_page.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <algorithm>
#include <tuple>
#include <utility>

#include "analysis/remote/mirror.h"
#include "ui/charts/figure_view.h"
#include "ui/hosts/host_form.h"
#include "ui/page.h"
#include "ui/program_call.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

const RegisterPage entry{{QStringLiteral("hosts"), HostsPage::tr("Hosts"), QStringLiteral("hosts"), 70,
                          [](Session& session, QWidget* parent) -> QWidget* { return new HostsPage(session, parent); }, false}};

constexpr int kBetweenLooks = 1000;  // ms

QString lines_of(const QJsonValue& value, const QString& none) {
  QStringList lines;
  for (const QJsonValue& line : value.toArray()) lines << line.toString();
  return lines.isEmpty() ? none : lines.join(QStringLiteral("; "));
}

/// As wide as the longest of its texts needs, so that nothing moves when it changes.
void reserve(QPushButton* button, const QStringList& texts) {
  const QString now = button->text();
  for (const QString& text : texts) {
    button->setText(text);
    button->setMinimumWidth(std::max(button->minimumWidth(), button->sizeHint().width()));
  }
  button->setText(now);
}

}  // namespace

HostsPage::HostsPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      job_(this, [this](Read read) { take(std::move(read)); }),
      hosts_(new QListWidget(this)),
      none_(new QLabel(tr("No host is set up yet. Write the profile of one."), this)),
      form_(new HostForm(this)),
      state_(new QLabel(this)),
      facts_(new QLabel(this)),
      add_(new QPushButton(tr("New host"), this)),
      save_(new QPushButton(tr("Save"), this)),
      test_(new QPushButton(tr("Test"), this)),
      copy_(new QPushButton(tr("Copy the program there …"), this)),
      open_(new QPushButton(tr("Open its runs"), this)),
      remove_(new QPushButton(tr("Remove"), this)) {
  auto* sides = new QSplitter(Qt::Horizontal, this);
  sides->addWidget(new Card(tr("Hosts"), tr("reached by ssh"), makeList(), sides));
  sides->addWidget(new Card(tr("Profile"), {}, makeProfile(), sides));
  sides->setStretchFactor(0, 2);
  sides->setStretchFactor(1, 3);
  sides->setChildrenCollapsible(false);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 8, 8, 8);
  row->addWidget(sides);
  timer_.setInterval(kBetweenLooks);
  connect(&timer_, &QTimer::timeout, this, [this] { refresh(false); });
  connect(hosts_, &QListWidget::currentRowChanged, this, &HostsPage::showHost);
  connect(form_, &HostForm::edited, this, [this] { edited_ = true, enableButtons(); });
  connect(add_, &QPushButton::clicked, this, &HostsPage::beginNew);
  connect(save_, &QPushButton::clicked, this, &HostsPage::save);
  connect(test_, &QPushButton::clicked, this, &HostsPage::test);
  connect(copy_, &QPushButton::clicked, this, &HostsPage::chooseBundle);
  connect(open_, &QPushButton::clicked, this, &HostsPage::openRuns);
  connect(remove_, &QPushButton::clicked, this, &HostsPage::remove);
  beginNew();
  refresh(true);
}

QWidget* HostsPage::makeList() {
  auto* side = new QWidget(this);
  hosts_->setAccessibleName(tr("Hosts"));
  hosts_->setMinimumWidth(180);
  hosts_->setSpacing(3);
  hosts_->setTextElideMode(Qt::ElideMiddle);  // hosts of one site differ at either end
  hosts_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(add_);
  buttons->addStretch();
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  none_->setAlignment(Qt::AlignCenter);
  none_->setWordWrap(true);
  none_->hide();  // until they have been read
  column->addWidget(none_, 1);
  column->addWidget(hosts_, 1);
  column->addLayout(buttons);
  return side;
}

QWidget* HostsPage::makeProfile() {
  auto* side = new QWidget(this);
  for (QLabel* label : {state_, facts_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    label->setTextFormat(Qt::PlainText);
  }
  state_->setAccessibleName(tr("State of the connection"));
  facts_->setAccessibleName(tr("What was found there"));
  test_->setToolTip(tr("Logs in and names GPU, driver, version, free disk and Slurm's partitions"));
  copy_->setToolTip(tr("Sends the self-contained bundle (packaging/bundle), so that nothing has to be installed there"));
  open_->setToolTip(tr("Opens the folder that its runs are mirrored in"));
  remove_->setToolTip(tr("Forgets the profile; what was mirrored stays"));
  reserve(test_, {tr("Test"), tr("Cancel the test")});
  reserve(copy_, {tr("Copy the program there …"), tr("Cancel the copying")});
  auto* first = new QHBoxLayout;
  for (QPushButton* button : {save_, test_, remove_}) first->addWidget(button);
  first->addStretch();
  auto* second = new QHBoxLayout;
  for (QPushButton* button : {open_, copy_}) second->addWidget(button);
  second->addStretch();
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 6, 0);
  column->addWidget(state_);
  column->addWidget(form_);
  column->addLayout(first);
  column->addLayout(second);
  column->addWidget(facts_);
  column->addStretch();
  auto* scroll = new QScrollArea(this);
  scroll->setFocusPolicy(Qt::NoFocus);  // its fields take the focus
  scroll->setWidget(side);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->viewport()->setAutoFillBackground(false);
  side->setAutoFillBackground(false);
  return scroll;
}

void HostsPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh(true);
  timer_.start();
}

void HostsPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  timer_.stop();
}

QString HostsPage::current() const { return hosts_->currentItem() ? hosts_->currentItem()->data(Qt::UserRole).toString() : QString(); }

void HostsPage::refresh(bool urgent) {
  job_.ask([writes = writes_] { return Read{read_hosts(), writes}; }, urgent);
}

void HostsPage::take(Read read) {
  if (read.writes != writes_) return refresh(true);  // it was read before that was written which is shown
  hosts_now_ = std::move(read.hosts);
  const bool first = !std::exchange(read_, true);
  showHosts();
  if (first && !edited_ && current().isEmpty() && hosts_->count() > 0) hosts_->setCurrentRow(0);
  const HostNow* host = now(current());
  if (host && !edited_ && host->problem.isEmpty() && host->profile != in_form_) setForm(*host);  // it was written elsewhere
}

void HostsPage::setForm(const HostNow& host) {
  in_form_ = host.profile;
  form_->setHost(host.name, host.profile);
}

void HostsPage::showHosts() {
  for (int row = hosts_->count() - 1; row >= 0; --row)
    if (!now(hosts_->item(row)->data(Qt::UserRole).toString())) delete hosts_->takeItem(row);
  for (int row = 0; row < static_cast<int>(hosts_now_.size()); ++row) {
    const HostNow& host = hosts_now_[static_cast<size_t>(row)];
    if (row >= hosts_->count() || hosts_->item(row)->data(Qt::UserRole).toString() != host.name) {
      auto* item = new QListWidgetItem;
      item->setData(Qt::UserRole, host.name);
      hosts_->insertItem(row, item);
    }
    const QString text = host.name + QStringLiteral("\n") + host.state;
    if (hosts_->item(row)->text() == text) continue;
    hosts_->item(row)->setText(text);
    hosts_->item(row)->setToolTip(text);  // whole where it is cut
  }
  none_->setVisible(hosts_->count() == 0);
  hosts_->setVisible(hosts_->count() > 0);
  showState();
}

const HostNow* HostsPage::now(const QString& name) const {
  for (const HostNow& host : hosts_now_)
    if (host.name == name) return &host;
  return nullptr;
}

void HostsPage::showHost() {
  edited_ = false;
  facts_->clear();
  if (const HostNow* host = now(current())) {
    if (host->problem.isEmpty())
      setForm(*host);
    else
      say(QStringLiteral("⚠ ") + host->problem);
    if (call_) say(tr("%1 has been asked, and has not answered yet.").arg(asked_of_));
  }
  showState();
}

void HostsPage::showState() {
  enableButtons();
  const HostNow* host = now(current());
  const QString text = host ? host->state + host->details
                            : tr("A machine that ssh reaches. Name it, and say how ssh calls it: an alias of its config, or user@machine.");
  if (state_->text() != text) state_->setText(text);
}

void HostsPage::enableButtons() {
  const bool there = !current().isEmpty(), busy = call_ != nullptr;
  save_->setEnabled(edited_ && !form_->name().isEmpty());
  for (const auto& [button, words, ends] : {std::tuple(test_, tr("Test"), tr("Cancel the test")),
                                            std::tuple(copy_, tr("Copy the program there …"), tr("Cancel the copying"))}) {
    const bool its = busy && asked_ == button;
    button->setText(its ? ends : words);
    button->setEnabled(its || (there && !edited_ && !busy));
  }
  const HostNow* host = now(current());
  open_->setEnabled(host && host->mirrored);
  remove_->setEnabled(there && !busy);
}

void HostsPage::beginNew() {
  hosts_->setCurrentItem(nullptr);
  form_->setHost({}, host_schema().write(HostProfile{}));
  edited_ = false;
  facts_->clear();
  showState();
}

void HostsPage::save() {
  const QString name = form_->name();
  try {
    save_host(name.toStdString(), form_->profile(), !current().isEmpty());
  } catch (const std::exception& error) {
    return say(QStringLiteral("⚠ ") + QString::fromUtf8(error.what()));
  }
  edited_ = false;
  put({name, tr("not connected yet"), {}, form_->profile()});
  for (int row = 0; row < hosts_->count(); ++row)
    if (hosts_->item(row)->data(Qt::UserRole).toString() == name) hosts_->setCurrentRow(row);
  say(tr("Saved. The window connects to %1 by itself; Test tells what is there.").arg(name));
  enableButtons();
}

/// It was written; what else is known of it is read.
void HostsPage::put(HostNow host) {
  ++writes_;
  const auto place = std::lower_bound(hosts_now_.begin(), hosts_now_.end(), host.name,
                                      [](const HostNow& each, const QString& name) { return each.name < name; });
  if (place != hosts_now_.end() && place->name == host.name)
    place->profile = host.profile, place->problem.clear();
  else
    hosts_now_.insert(place, std::move(host));
  showHosts();
  refresh(true);
}

void HostsPage::say(const QString& text) { facts_->setText(text); }

/// One question at a time; its button ends it meanwhile.
void HostsPage::ask(QPushButton* button, const QStringList& arguments, const std::function<void(const ProgramCall::Answer&)>& then) {
  asked_ = button, asked_of_ = current();
  call_ = new ProgramCall(
      arguments, false,
      [this, host = current(), then](const ProgramCall::Answer& answer) {
        call_ = nullptr;
        enableButtons();
        if (current() == host) then(answer);
      },
      this);
  enableButtons();
}

void HostsPage::cancel() {
  call_->cancel();
  call_ = nullptr;
  say(tr("Cancelled."));
  enableButtons();
}

void HostsPage::test() {
  if (call_) return cancel();
  say(tr("Logging in …"));
  ask(test_, {QStringLiteral("host"), QStringLiteral("test"), current()}, [this](const ProgramCall::Answer& answer) {
    answer.ok ? showFacts(QJsonDocument::fromJson(answer.output).object()) : say(QStringLiteral("⚠ ") + answer.reason);
  });
}

void HostsPage::showFacts(const QJsonObject& answer) {
  const QJsonObject machine = answer[QStringLiteral("machine")].toObject(), agent = answer[QStringLiteral("agent")].toObject();
  const QString old = answer[QStringLiteral("read_only")].toString();
  QStringList lines{
      tr("%1 answered in %2 s").arg(agent[QStringLiteral("host")].toString()).arg(answer[QStringLiteral("seconds")].toDouble(), 0, 'f', 1),
      tr("saccade %1").arg(agent[QStringLiteral("version")].toString()),
      tr("GPU: %1").arg(lines_of(machine[QStringLiteral("gpus")], tr("none, training runs on the CPU"))),
      tr("%1, %2 threads").arg(machine[QStringLiteral("processor")].toString()).arg(machine[QStringLiteral("threads")].toInteger()),
      tr("%1 of memory, %2 free on the disk of its runs")
          .arg(formatBytes(machine[QStringLiteral("memory_bytes")].toDouble()),
               formatBytes(machine[QStringLiteral("disk_free_bytes")].toDouble())),
      tr("Slurm: %1").arg(lines_of(machine[QStringLiteral("partitions")], tr("none")))};
  if (!old.isEmpty()) lines << QStringLiteral("⚠ ") + old;
  say(lines.join(QLatin1Char('\n')));
}

void HostsPage::chooseBundle() {
  if (call_) return cancel();
  auto* dialog = new QFileDialog(this, tr("A bundle made by packaging/bundle"), {}, tr("Bundles (*.tar.gz)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &HostsPage::copy);
  dialog->show();
}

void HostsPage::copy(const QString& bundle) {
  const QString host = current();
  say(tr("Sending %1 …").arg(bundle));
  ask(copy_, {QStringLiteral("host"), QStringLiteral("copy"), host, bundle}, [this, host](const ProgramCall::Answer& answer) {
    if (!answer.ok) return say(QStringLiteral("⚠ ") + answer.reason);
    refresh(true);
    const QJsonObject told = QJsonDocument::fromJson(answer.output).object();
    say(tr("%1 has %2, which needs glibc %3 or newer.")
            .arg(host, told[QStringLiteral("version")].toString(), told[QStringLiteral("glibc")].toString()));
  });
}

void HostsPage::remove() {
  const QString host = current();
  const HostNow* known = now(host);
  const nlohmann::json profile = known ? known->profile : nlohmann::json();
  try {
    remove_host(host.toStdString());
  } catch (const std::exception& error) {
    return say(QStringLiteral("⚠ ") + QString::fromUtf8(error.what()));
  }
  ++writes_;
  std::erase_if(hosts_now_, [&](const HostNow& each) { return each.name == host; });
  showHosts();
  refresh(true);
  if (hosts_->count() == 0) beginNew();
  Q_EMIT session_.offered(tr("%1 is forgotten; its mirrored runs stay.").arg(host),
                          {tr("Undo"), [this, host, profile] {
                             try {
                               save_host(host.toStdString(), profile, false);
                               put({host, tr("not connected yet"), {}, profile});
                             } catch (const std::exception& error) {
                               Q_EMIT session_.failed(QString::fromUtf8(error.what()));
                             }
                           }});
}

void HostsPage::openRuns() {
  session_.openFolder(QString::fromStdString(mirror_folder(current().toStdString()).string()));
  session_.showPage(QStringLiteral("runs"));
}

}  // namespace saccade::ui
