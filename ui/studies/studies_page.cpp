#include "ui/studies/studies_page.h"

#include <QAction>
#include <QDesktopServices>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QTabBar>
#include <QTabWidget>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "analysis/remote/mirror.h"
#include "models/corpus/corpus.h"
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/page.h"
#include "ui/page_action.h"
#include "ui/program_call.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"
#include "ui/studies/lines_table.h"
#include "ui/studies/new_study.h"
#include "ui/studies/queue_view.h"
#include "ui/studies/study_words.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

const RegisterPage entry_{{QStringLiteral("studies"), StudiesPage::tr("Studies"), QStringLiteral("studies"), 60,
                           [](Session& session, QWidget* parent) -> QWidget* { return new StudiesPage(session, parent); }, false}};

using Cell = LinesModel::Cell;

constexpr int kJobsEvery = 45000;  ///< ms between two calls of squeue

Cell loss_cell(double loss) {
  return {std::isnan(loss) ? QStringLiteral("–") : formatLoss(loss, 4), std::isnan(loss) ? QVariant(1e300) : QVariant(loss)};
}

QString tuned_text(const StudyLine& study) {
  const StudyProgress& p = study.progress;
  if (!study.readable) return {};
  if (!p.searches) return StudiesPage::tr("untuned");
  QString text = StudiesPage::tr("%1 tuned").arg(p.tuned);
  if (p.edge > 0) text += StudiesPage::tr(", %1 at an edge").arg(p.edge);
  return text;
}

LinesModel::Line line_of(const StudyLine& study) {
  const StudyProgress& p = study.progress;
  const int64_t failed = p.gave_up + p.diverged;
  const QString hours = study.budget_hours
                            ? StudiesPage::tr("%1 of %2 h").arg(QString::number(study.seconds / 3600, 'f', 1)).arg(*study.budget_hours)
                            : formatDuration(study.seconds);
  return {study.directory,
          {{study.name, {}, -1, false, study.question},
           {study.state, {}, -1, !study.readable || !study.problem.isEmpty(), study.problem},
           {StudiesPage::tr("%1 of %2").arg(p.finished + p.diverged).arg(p.runs), p.share, p.share},
           {left_of(p.seconds_left), std::isnan(p.seconds_left) ? QVariant(1e300) : QVariant(p.seconds_left)},
           {failed > 0 ? QString::number(failed) : QString(), QVariant(static_cast<qlonglong>(failed)), -1, failed > 0},
           {tuned_text(study)},
           {hours, study.seconds}}};
}

/// What a report shows too: at the best value, with losses.
bool may_be_compared(const StudyRunLine& run) { return run.best && std::isfinite(run.validation); }

/// `job`: what the scheduler of a cluster says of it. Those at the best value of a search that has ended are in bold.
LinesModel::Line line_of(const StudyRunLine& run, const QString& job) {
  const double share = run.steps > 0 ? static_cast<double>(run.step) / static_cast<double>(run.steps) : 0;
  const bool best = run.value && run.searched && may_be_compared(run);
  return {run.directory,
          {{run.cell, {}, -1, false, run.name, best},
           {run.value ? QString::number(*run.value) : QString(), run.value.value_or(0), -1, false, {}, best},
           {QString::number(run.seed), run.seed},
           loss_cell(run.validation),
           loss_cell(run.ood),
           {job.isEmpty() ? run.state : StudiesPage::tr("%1 (%2)").arg(run.state, job.section(QLatin1Char(' '), 1, 1)),
            {},
            -1,
            run.failed,
            job},
           {run.step < run.steps ? StudiesPage::tr("%1 of %2").arg(run.step).arg(run.steps) : QString::number(run.step), share, share},
           {run.problem.isEmpty() ? job : QString(run.problem).replace(QLatin1Char('\n'), QLatin1Char(' ')),
            {},
            -1,
            run.failed,
            run.problem.isEmpty() ? job : run.problem}}};
}

}  // namespace

StudiesPage::StudiesPage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), job_(this, [this](StudiesState state) { showState(std::move(state)); }) {
  makeActions();
  auto* column = new QVBoxLayout(this);
  QWidget *studies = makeStudies(), *details = makeDetails();
  columns_ = new TwoColumns({studies, 5, 2}, {details, 5, 5}, 900, 1.7, this);
  column->addWidget(columns_);
  connect(queue_, &QueueView::stale, this, [this] { refresh(true); });
  timer_.setInterval(500);
  connect(&timer_, &QTimer::timeout, this, [this] { refresh(); });
  connect(session_.runs(), &RunList::loaded, this, [this] { refresh(true); });
  connect(studies_, &LinesTable::chosen, this, [this] {
    if (selected()) session_.place().set("studies/selected", studies_->currentKey());
    showDetails();
  });
  jobs_timer_.setInterval(kJobsEvery);
  connect(&jobs_timer_, &QTimer::timeout, this, &StudiesPage::askForJobs);
  connect(studies_, &LinesTable::opened, this, [this] { openRuns(); });
  connect(runs_, &LinesTable::opened, this, [this](const QString& run) {
    openRuns();
    session_.setCurrentRun(run);
  });
  connect(new_, &NewStudy::queued, this, [this](const QString& directory) {
    session_.place().set("studies/selected", directory);
    refresh(true);
  });
  showDetails();
}

void StudiesPage::makeActions() {
  const auto add = [this](const QString& text, const QString& help, const QKeySequence& keys, auto what) {
    return addPageAction(this, text, help, keys, what);
  };
  const auto study = [this](const char* what, const QString& note) {
    if (const StudyLine* line = selected()) call({QStringLiteral("study"), QLatin1String(what), line->directory}, note.arg(line->name));
  };
  actions_.open_runs = add(tr("Open its runs"), tr("Every page shows the runs of this study"), QKeySequence(Qt::CTRL | Qt::Key_Return),
                           [this] { openRuns(); });
  actions_.compare = add(tr("Compare"), tr("The runs at the best value of every cell, all seeds, on the page Compare"),
                         QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Return), [this] { compareBest(); });
  actions_.go_on = add(tr("Go on"), tr("Back into the queue; what failed is tried again"), QKeySequence(Qt::CTRL | Qt::Key_G),
                       [study] { study("resume", tr("%1 is in the queue.")); });
  actions_.stop = add(tr("Stop"), tr("Out of the queue; its runs write a checkpoint and stop"), QKeySequence(Qt::CTRL | Qt::Key_Period),
                      [study] { study("stop", tr("%1 stops at a checkpoint. Go on takes it up again.")); });
  actions_.report = add(tr("Report"), tr("Tables and figures as one page, with the source of every number"),
                        QKeySequence(Qt::CTRL | Qt::Key_R), [this] { makeReport(); });
}

QWidget* StudiesPage::makeStudies() {
  studies_ = new LinesTable(tr("Studies"), {tr("Study"), tr("State"), tr("Runs"), tr("Time"), tr("Failed"), tr("Tuning"), tr("Trained")},
                            {4}, true, this);
  auto* inner = new QWidget(this);
  auto* inside = new QVBoxLayout(inner);
  inside->setContentsMargins(0, 0, 0, 0);
  inside->addWidget(makeNone(inner));
  inside->addWidget(studies_, 1);
  studies_card_ = new Card(tr("Studies"), {}, inner, this);
  for (QAction* action : {actions_.open_runs, actions_.compare, actions_.go_on, actions_.stop, actions_.report})
    studies_card_->addControl(button_of(action, studies_card_));

  queue_ = new QueueView(session_, this);
  queue_card_ = new Card(tr("Queue"), {}, queue_, this);
  queue_->addControls(*queue_card_);

  auto* left = new QWidget(this);
  left_ = new QVBoxLayout(left);
  left_->setContentsMargins(0, 0, 0, 0);
  left_->addWidget(studies_card_, 3);
  left_->addWidget(queue_card_);
  return left;
}

/// What stands where there is no study: the sentence, and right below it the way to one.
QWidget* StudiesPage::makeNone(QWidget* parent) {
  none_ = new QWidget(parent);
  studies_text_ = new QLabel(none_);
  studies_text_->setWordWrap(true);
  studies_text_->setAlignment(Qt::AlignHCenter);
  auto* begin = new QPushButton(tr("Begin a study"), none_);
  begin->setAccessibleName(tr("Begin the first study"));
  begin->setToolTip(tr("Goes to where one is chosen"));
  connect(begin, &QPushButton::clicked, this, &StudiesPage::beginStudy);
  auto* column = new QVBoxLayout(none_);
  column->addStretch();
  column->addWidget(studies_text_);
  column->addSpacing(8);
  column->addWidget(begin, 0, Qt::AlignHCenter);
  column->addStretch();
  return none_;
}

void StudiesPage::beginStudy() {
  columns_->ensureWidgetVisible(new_card_);
  new_->setFocus(Qt::OtherFocusReason);
}

QWidget* StudiesPage::makeDetails() {
  details_ = new QLabel(this);
  details_->setWordWrap(true);
  details_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  details_->setAccessibleName(tr("The selected study"));
  runs_ = new LinesTable(tr("Runs of the study"),
                         {tr("Cell"), tr("Value"), tr("Seed"), tr("Validation"), tr("OOD"), tr("State"), tr("Step"), tr("Why")},
                         {1, 2, 3, 4}, true, this);
  tuning_ = new QListWidget(this);
  tuning_->setAccessibleName(tr("Tuning of the cells"));
  tuning_->setFrameShape(QFrame::NoFrame);
  tuning_->setWordWrap(true);
  auto* tabs = new QTabWidget(this);
  tabs->setDocumentMode(true);
  tabs->setAccessibleName(tr("Runs or tuning"));
  calm_wheel(tabs->tabBar());
  tabs->addTab(runs_, tr("Runs"));
  tabs->addTab(tuning_, tr("Tuning"));
  auto* inner = new QWidget(this);
  auto* inside = new QVBoxLayout(inner);
  inside->setContentsMargins(0, 0, 0, 0);
  inside->addWidget(details_);
  inside->addWidget(tabs, 1);
  details_card_ = new Card(tr("Selected study"), {}, inner, this);
  new_ = new NewStudy(session_, this);
  auto* right = new QWidget(this);
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(details_card_, 1);
  new_card_ = new Card(tr("Begin a study"), {}, new_, right);
  column->addWidget(new_card_);
  column->addStretch();  // where there is no study to see
  return right;
}

void StudiesPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh(true);
  timer_.start();
  jobs_timer_.start();
}

void StudiesPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  timer_.stop();
  jobs_timer_.stop();
}

/// The open folder, what it is part of where it is a study's, and the usual one.
void StudiesPage::refresh(bool urgent) {
  QStringList folders{session_.runs()->folder(), QString::fromStdString(runs_folder().string())};
  for (const std::string& host : host_names()) folders << QString::fromStdString(mirror_folder(host).string());
  const QString parent = QFileInfo(session_.runs()->folder()).path();
  if (QFileInfo(session_.runs()->folder()).fileName() == QStringLiteral("runs") && holds_study(parent.toStdString()))
    folders << QFileInfo(parent).path();
  job_.ask([folders, asked = queue_->asked()] { return read_studies(folders, asked); }, urgent);
}

void StudiesPage::showState(StudiesState state) {
  state_ = std::move(state);
  std::vector<LinesModel::Line> lines;
  for (const StudyLine& study : state_.studies) lines.push_back(line_of(study));
  studies_->setLines(std::move(lines));
  const QString wanted = session_.place().value("studies/selected").toString();
  if (studies_->currentKey() != wanted) studies_->setCurrentKey(wanted);
  if (studies_->currentKey().isEmpty() && !state_.studies.empty()) studies_->setCurrentKey(state_.studies.front().directory);
  studies_text_->setText(
      tr("No study stands in %1. Begin one that comes with the program, or take a file of your own.").arg(session_.runs()->folder()));
  none_->setVisible(state_.studies.empty());
  studies_->setVisible(!state_.studies.empty());
  details_card_->setVisible(!state_.studies.empty());
  queue_->showState(state_);
  left_->setStretchFactor(queue_card_, state_.entries.empty() ? 0 : 2);  // an empty queue takes what its words need
  showDetails();
}

void StudiesPage::showDetails() {
  enableActions();
  const StudyLine* study = selected();
  runs_->setVisible(study);
  if (!study) {
    details_->setText(tr("Choose a study to see its runs."));
    runs_->setLines({});
    return tuning_->clear();
  }
  if (study->directory != jobs_of_) askForJobs();
  details_card_->setTitle(study->name, study->state);
  QStringList words{study->question + (study->source.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(study->source))};
  if (!study->problem.isEmpty()) words << QStringLiteral("⚠ ") + study->problem;
  details_->setText(words.join(QLatin1Char('\n')));
  std::vector<LinesModel::Line> lines;
  for (const StudyRunLine& run : study->runs)
    lines.push_back(line_of(run, study->directory == jobs_of_ ? jobs_.value(run.name) : QString()));
  runs_->lines()->setTitle(1, study->tuned.isEmpty() ? tr("Value") : study->tuned.at(0).toUpper() + study->tuned.mid(1));
  runs_->setLines(std::move(lines));
  QStringList tuning;
  for (int i = 0; i < tuning_->count(); ++i) tuning << tuning_->item(i)->text();
  if (tuning == study->tuning) return;
  tuning_->clear();
  tuning_->addItems(study->tuning);
}

void StudiesPage::enableActions() {
  const StudyLine* study = selected();
  const bool there = study && study->readable;
  actions_.open_runs->setEnabled(study);
  actions_.compare->setEnabled(there && std::any_of(study->runs.begin(), study->runs.end(), may_be_compared));
  const bool submitted = there && !(study->cluster.isEmpty() && study->host.isEmpty()) && !study->complete;
  actions_.go_on->setEnabled(there && !study->queued && !study->complete);
  actions_.stop->setEnabled(there && (study->queued || study->progress.running > 0 || submitted));
  actions_.report->setEnabled((there && study->progress.finished > 0) || report_call_);
}

const StudyLine* StudiesPage::selected() const {
  for (const StudyLine& study : state_.studies)
    if (study.directory == studies_->currentKey()) return &study;
  return nullptr;
}

void StudiesPage::openRuns() {
  const StudyLine* study = selected();
  if (!study) return;
  session_.openFolder(study->directory + QStringLiteral("/runs"));
  session_.runs()->setHidden({});
  session_.showPage(QStringLiteral("live"));
}

void StudiesPage::compareBest() {
  const StudyLine* study = selected();
  if (!study) return;
  QStringList others;
  QString first;
  for (const StudyRunLine& run : study->runs) {
    if (!may_be_compared(run))
      others << run.directory << run.branches;
    else if (first.isEmpty())
      first = run.directory;
  }
  session_.openFolder(study->directory + QStringLiteral("/runs"));
  session_.runs()->setFilter({});
  session_.runs()->setHidden(others);
  session_.runs()->setBaseline(first);
  session_.showPage(QStringLiteral("compare"));
}

/// One call of squeue, for the study that is looked at. How far its runs are stands in their journals, whatever it says.
void StudiesPage::askForJobs() {
  const StudyLine* study = selected();
  if (!study || study->cluster.isEmpty() || study->complete || jobs_call_) return;
  const QString directory = study->directory;
  if (directory != jobs_of_) jobs_.clear();
  jobs_of_ = directory;
  jobs_call_ = new ProgramCall(
      {QStringLiteral("study"), QStringLiteral("status"), directory}, false,
      [this, directory](const ProgramCall::Answer& answer) {
        jobs_call_ = nullptr;
        if (!answer.ok || !selected() || selected()->directory != directory) return;
        jobs_.clear();
        for (const QJsonValue& run : QJsonDocument::fromJson(answer.output).object()[QStringLiteral("runs")].toArray())
          jobs_[run[QStringLiteral("name")].toString()] = run[QStringLiteral("job")].toString();
        showDetails();
      },
      this);
}

/// Evaluates anew where the study asks for it, which may take long: a second press ends it.
void StudiesPage::makeReport() {
  if (report_call_) {
    report_call_->cancel();
    report_call_ = nullptr;
    actions_.report->setText(tr("Report"));
    return enableActions();
  }
  const StudyLine* study = selected();
  if (!study) return;
  actions_.report->setText(tr("Cancel the report"));
  const QString page = study->directory + QStringLiteral("/report/report.html");
  report_call_ = new ProgramCall(
      {QStringLiteral("study"), QStringLiteral("report"), study->directory}, false,
      [this, page](const ProgramCall::Answer& answer) {
        report_call_ = nullptr;
        actions_.report->setText(tr("Report"));
        if (!answer.ok) return Q_EMIT session_.failed(answer.reason);
        Q_EMIT session_.noted(tr("Wrote %1").arg(page));
        QDesktopServices::openUrl(QUrl::fromLocalFile(page));
      },
      this);
}

void StudiesPage::call(const QStringList& arguments, const QString& note) {
  new ProgramCall(
      arguments, true,
      [this, note](const ProgramCall::Answer& answer) {
        if (!answer.ok) Q_EMIT session_.failed(answer.reason);
        if (answer.ok && !note.isEmpty()) Q_EMIT session_.noted(note);
        refresh(true);
      },
      this);
}

}  // namespace saccade::ui
