#include "ui/hosts/hosts_page.h"

#include <QDateTime>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>

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

/// "connected", "offline, as of 14:05"
QString state_text(const std::string& host) try {
  const std::optional<MirrorState> mirror = read_mirror(mirror_folder(host));
  if (!mirror || mirror->seen.empty())
    return mirror && !mirror->problem.empty() ? HostsPage::tr("not reached") : HostsPage::tr("not connected yet");
  if (mirror->connected) return HostsPage::tr("connected");
  const QDateTime seen = QDateTime::fromString(QString::fromStdString(mirror->seen), Qt::ISODate).toLocalTime();
  return HostsPage::tr("offline, as of %1").arg(seen.toString(QStringLiteral("d MMM HH:mm")));
} catch (const std::exception& error) {
  return QString::fromUtf8(error.what());
}

QString lines_of(const QJsonValue& value, const QString& none) {
  QStringList lines;
  for (const QJsonValue& line : value.toArray()) lines << line.toString();
  return lines.isEmpty() ? none : lines.join(QStringLiteral("; "));
}

}  // namespace

HostsPage::HostsPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      hosts_(new QListWidget(this)),
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
  connect(&timer_, &QTimer::timeout, this, &HostsPage::refresh);
  connect(hosts_, &QListWidget::currentRowChanged, this, &HostsPage::showHost);
  connect(form_, &HostForm::edited, this, [this] { edited_ = true, enableButtons(); });
  connect(add_, &QPushButton::clicked, this, &HostsPage::beginNew);
  connect(save_, &QPushButton::clicked, this, &HostsPage::save);
  connect(test_, &QPushButton::clicked, this, &HostsPage::test);
  connect(copy_, &QPushButton::clicked, this, &HostsPage::chooseBundle);
  connect(open_, &QPushButton::clicked, this, &HostsPage::openRuns);
  connect(remove_, &QPushButton::clicked, this, &HostsPage::remove);
  refresh();
  hosts_->count() == 0 ? beginNew() : hosts_->setCurrentRow(0);
}

QWidget* HostsPage::makeList() {
  auto* side = new QWidget(this);
  hosts_->setAccessibleName(tr("Hosts"));
  hosts_->setMinimumWidth(180);
  hosts_->setSpacing(3);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(add_);
  buttons->addStretch();
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
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
  auto* first = new QHBoxLayout;
  for (QPushButton* button : {save_, test_, copy_}) first->addWidget(button);
  first->addStretch();
  auto* second = new QHBoxLayout;
  for (QPushButton* button : {open_, remove_}) second->addWidget(button);
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
  refresh();
  timer_.start();
}

void HostsPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  timer_.stop();
}

QString HostsPage::current() const { return hosts_->currentItem() ? hosts_->currentItem()->data(Qt::UserRole).toString() : QString(); }

void HostsPage::refresh() {
  QStringList names;
  for (const std::string& name : host_names()) names << QString::fromStdString(name);
  for (int row = hosts_->count() - 1; row >= 0; --row)
    if (!names.contains(hosts_->item(row)->data(Qt::UserRole).toString())) delete hosts_->takeItem(row);
  for (int row = 0; row < names.size(); ++row) {
    if (row >= hosts_->count() || hosts_->item(row)->data(Qt::UserRole).toString() != names[row]) {
      auto* item = new QListWidgetItem;
      item->setData(Qt::UserRole, names[row]);
      hosts_->insertItem(row, item);
    }
    const QString text = names[row] + QStringLiteral("\n") + state_text(names[row].toStdString());
    if (hosts_->item(row)->text() != text) hosts_->item(row)->setText(text);
  }
  showState();
}

void HostsPage::showHost() {
  edited_ = false;
  facts_->clear();
  if (current().isEmpty()) return showState();
  try {
    form_->setHost(current(), host_schema().write(load_host(current().toStdString())));
  } catch (const std::exception& error) {
    say(QStringLiteral("⚠ ") + QString::fromUtf8(error.what()));
  }
  showState();
}

void HostsPage::showState() {
  enableButtons();
  if (current().isEmpty())
    return state_->setText(tr("A machine that ssh reaches. Name it, and say how ssh calls it: an alias of its config, or user@machine."));
  QString text = state_text(current().toStdString());
  try {
    if (const auto mirror = read_mirror(mirror_folder(current().toStdString()))) {
      if (!mirror->folder.empty()) text += tr(" · serves %1").arg(QString::fromStdString(mirror->folder));
      if (!mirror->connected && !mirror->problem.empty()) text += QStringLiteral("\n") + QString::fromStdString(mirror->problem);
      text += tr("\nmirrored in %1").arg(QString::fromStdString(mirror->root.string()));
    }
  } catch (const std::exception&) {  // state_text() told it
  }
  if (state_->text() != text) state_->setText(text);
}

void HostsPage::enableButtons() {
  const bool there = !current().isEmpty(), busy = call_ != nullptr;
  save_->setEnabled(edited_ && !form_->name().isEmpty());
  test_->setEnabled(there && !edited_ && !busy);
  copy_->setEnabled(there && !edited_ && !busy);
  std::error_code none;
  open_->setEnabled(there && std::filesystem::exists(mirror_folder(current().toStdString()), none));
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
  refresh();
  for (int row = 0; row < hosts_->count(); ++row)
    if (hosts_->item(row)->data(Qt::UserRole).toString() == name) hosts_->setCurrentRow(row);
  say(tr("Saved. The window connects to %1 by itself; Test tells what is there.").arg(name));
  enableButtons();
}

void HostsPage::say(const QString& text) { facts_->setText(text); }

void HostsPage::test() {
  const QString host = current();
  say(tr("Logging in …"));
  call_ = new ProgramCall(
      {QStringLiteral("host"), QStringLiteral("test"), host}, false,
      [this, host](const ProgramCall::Answer& answer) {
        call_ = nullptr;
        enableButtons();
        if (current() != host) return;
        if (!answer.ok) return say(QStringLiteral("⚠ ") + answer.reason);
        showFacts(QJsonDocument::fromJson(answer.output).object());
      },
      this);
  enableButtons();
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
  auto* dialog = new QFileDialog(this, tr("A bundle made by packaging/bundle"), {}, tr("Bundles (*.tar.gz)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &HostsPage::copy);
  dialog->show();
}

void HostsPage::copy(const QString& bundle) {
  const QString host = current();
  say(tr("Sending %1 …").arg(bundle));
  call_ = new ProgramCall(
      {QStringLiteral("host"), QStringLiteral("copy"), host, bundle}, false,
      [this, host](const ProgramCall::Answer& answer) {
        call_ = nullptr;
        if (current() != host) return enableButtons();
        if (answer.ok) showHost();
        const QJsonObject told = QJsonDocument::fromJson(answer.output).object();
        say(answer.ok ? tr("%1 has %2, which needs glibc %3 or newer.")
                            .arg(host, told[QStringLiteral("version")].toString(), told[QStringLiteral("glibc")].toString())
                      : QStringLiteral("⚠ ") + answer.reason);
        enableButtons();
      },
      this);
  enableButtons();
}

void HostsPage::remove() {
  const QString host = current();
  nlohmann::json profile;
  try {
    profile = host_schema().write(load_host(host.toStdString()));
    remove_host(host.toStdString());
  } catch (const std::exception& error) {
    return say(QStringLiteral("⚠ ") + QString::fromUtf8(error.what()));
  }
  refresh();
  if (hosts_->count() == 0) beginNew();
  Q_EMIT session_.offered(tr("%1 is forgotten; its mirrored runs stay.").arg(host),
                          {tr("Undo"), [this, host, profile] {
                             try {
                               save_host(host.toStdString(), profile, false);
                             } catch (const std::exception& error) {
                               Q_EMIT session_.failed(QString::fromUtf8(error.what()));
                             }
                             refresh();
                           }});
}

void HostsPage::openRuns() {
  session_.openFolder(QString::fromStdString(mirror_folder(current().toStdString()).string()));
  session_.showPage(QStringLiteral("runs"));
}

}  // namespace saccade::ui
