#include "ui/compare/compare_page.h"

#include <QComboBox>
#include <QEvent>
#include <QLabel>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "analysis/comparison/end_evaluations.h"
#include "analysis/comparison/groups.h"
#include "analysis/figures/recipe.h"
#include "analysis/studies/study_folder.h"
#include "kernels/engine/error.h"
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/compare/compare_charts.h"
#include "ui/compare/fitted_table.h"
#include "ui/compare/score_tests_card.h"
#include "ui/compare/table_card.h"
#include "ui/empty_words.h"
#include "ui/kept_zoom.h"
#include "ui/live/live_figures.h"
#include "ui/page.h"
#include "ui/plain_scroll.h"
#include "ui/program_call.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::ui {

namespace {

const RegisterPage entry{{"compare", QObject::tr("Compare"), "compare", 50,
                          [](Session& session, QWidget* parent) -> QWidget* { return new ComparePage(session, parent); }}};

/// What is said of the same runs is one line.
QStringList warnings_by_runs(const std::vector<std::string>& warnings) {
  QStringList lines, runs;
  for (const std::string& warning : warnings) {
    const QString line = QString::fromStdString(warning);
    const QString whose = line.left(line.indexOf(QStringLiteral(": ")));
    const qsizetype same = runs.indexOf(whose);
    if (same >= 0)
      lines[same] += QStringLiteral("; ") + line.mid(whose.size() + 2);
    else
      lines << QStringLiteral("⚠ ") + line, runs << whose;
  }
  return lines;
}

QString verdict(const Comparison& comparison) {
  if (comparison.warnings.empty() && comparison.rows.size() < 2) return ComparePage::tr("Switch two or more runs visible to compare them.");
  QStringList lines, out;
  if (comparison.warnings.empty() && comparison.left_out.empty())
    lines << ComparePage::tr("✓ Comparable: same text, tokenizer, evaluation and training settings; parameters within 1 %.");
  constexpr qsizetype kNamed = 4;
  for (const std::string& run : comparison.left_out) out << QString::fromStdString(run);
  if (!out.isEmpty()) lines << ComparePage::tr("Left out: ") + out.mid(0, kNamed).join(QStringLiteral("; "));
  if (out.size() > kNamed) lines.last() += ComparePage::tr("; and %1 more").arg(out.size() - kNamed);
  lines << warnings_by_runs(comparison.warnings);
  if (!comparison.equal_reason.empty()) lines << QString::fromStdString(comparison.equal_reason);
  if (!comparison.equality.empty()) lines << QString::fromStdString(comparison.equality);
  for (const std::string& line : comparison.tuning) lines << QString::fromStdString(line);
  return lines.join(QLatin1Char('\n'));
}

constexpr const char* kValidation = "validation";

/// So little that it is reckoned while one waits.
bool is_little(const ShownRuns& shown) { return shown.runs().size() <= 24; }

/// What the reader chose on the page.
struct Wanted {
  std::optional<double> at_loss;
  std::string domain;
  PretrainingLoss pretraining;
  std::string split;  ///< that losses at the end are of
  QString current;    ///< directory
  TuningOfRun tuning;
};

/// Of each row, the mean over its seeds.
std::vector<double> entropies_of(const RunSet& runs) {
  std::vector<double> entropies;
  for (const RunGroup& group : group_runs(runs)) {
    double sum = 0;
    for (const Run* run : group.seeds) sum += run_number(*run, "entropy");
    entropies.push_back(sum / static_cast<double>(group.seeds.size()));
  }
  return entropies;
}

/// On another split than validation with the ends that studies have evaluated on it; where there are none a warning says so, and how to
/// make some.
Comparison compared(const RunSet& runs, const Wanted& wanted) {
  std::string problem;
  if (wanted.split != kValidation) try {
      const EndEvaluations ends(runs, wanted.split);
      if (ends.count() > 0) return compare_at_ends(runs, ends, wanted.at_loss, wanted.domain, wanted.pretraining, wanted.tuning);
      problem = how_to_evaluate_ends(wanted.split);
    } catch (const Error& error) {
      problem = error.what();
    }
  Comparison comparison = compare(runs, wanted.at_loss, wanted.domain, {}, wanted.pretraining, wanted.tuning);
  if (!problem.empty())
    comparison.warnings.push_back("the ends are of the validation split, not of the " + wanted.split + " split: " + problem);
  return comparison;
}

/// The group of the baseline, else of the current run, first: the others are measured against it. Its name is the one of the selection.
ComparePage::Made made(const std::shared_ptr<const ShownRuns>& shown, const Wanted& wanted,
                       const std::shared_ptr<const PreparedFigure>& before) {
  RunSet runs = shown->runs();
  const auto at = [&](const QString& directory) {
    return std::find_if(runs.begin(), runs.end(), [&](const Run* run) { return directory_of(*run) == directory; });
  };
  auto first = shown->baseline.isEmpty() ? runs.end() : at(shown->baseline);
  if (first == runs.end()) first = at(wanted.current);
  if (first != runs.end()) std::rotate(runs.begin(), first, first + 1);
  ComparePage::Made result;
  result.comparison = compared(runs, wanted);
  result.entropies = entropies_of(runs);
  for (ComparisonRow& row : result.comparison.rows)
    for (const ShownGroup& group : shown->groups)
      for (const SharedRun& run : group.seeds)
        if (run->info().directory == row.directory) row.title = group.look.label;
  result.figure = prepare_figure(
      trajectory_figure(shown->drawn(), wanted.domain, result.comparison.equal_loss, wanted.pretraining, wanted.tuning), before);
  return result;
}

}  // namespace

ComparePage::ComparePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      job_(this, [this](const Made& made) { show(made); }),
      tuning_(tuning_by_study()),
      trajectories_(new FigureView),
      domain_(new QComboBox),
      pretraining_(new QComboBox),
      split_(new QComboBox),
      common_(new QToolButton),
      verdict_(new QLabel(this)) {
  trajectory_card_ = new Card(tr("OOD loss against pre-training loss"), tr("drag the line · dotted: equal losses"), trajectories_, this);
  domain_->setAccessibleName(tr("OOD domain"));
  domain_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  domain_->addItem(tr("domain: mean"));
  pretraining_->setAccessibleName(tr("Pre-training loss"));
  pretraining_->addItems({tr("x: validation"), tr("x: validation by tokens"), tr("x: training loss")});
  for (int i = 0; i < pretraining_->count(); ++i)
    pretraining_->setItemData(i, QString::fromStdString(describe(PretrainingLoss{static_cast<PretrainingLoss::Kind>(i)})), Qt::ToolTipRole);
  pretraining_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  pretraining_->setMinimumContentsLength(10);
  split_->setAccessibleName(tr("Split of losses at the end"));
  split_->addItem(tr("validation split"), QString::fromLatin1(kValidation));
  split_->addItem(tr("test split"), QStringLiteral("test"));
  split_->setToolTip(
      tr("Which text losses at the end are of: as the runs recorded them, or the test split, as their studies evaluated it"));
  for (QComboBox* box : {domain_, pretraining_, split_}) calm_wheel(box);
  pretraining_->setToolTip(tr("What counts as the pre-training loss"));
  common_->setText(tr("lowest common loss"));
  common_->setToolTip(
      tr("Puts the line at the lowest pre-training loss that the first row and the most others have passed, as reports of studies do"));
  trajectory_card_->addControl(pretraining_);
  trajectory_card_->addControl(domain_);
  trajectory_card_->addControl(common_);

  charts_ = new CompareCharts(session_, trajectory_card_, this);
  auto* column = new QVBoxLayout(this);
  column->addWidget(new TwoColumns({charts_, 5, 5}, {makeTables(), 4, 5}, 860, 2, this));
  connect(charts_, &CompareCharts::chartChanged, this, &ComparePage::chooseTables);
  connect(charts_, &CompareCharts::taskChanged, tests_, &ScoreTestsCard::refresh);
  connect(tests_, &ScoreTestsCard::changed, this, &ComparePage::chooseTables);
  chooseTables();

  trajectories_->setKeysOnly(true);
  connect(session_.runs(), &RunList::changed, this, &ComparePage::refresh);
  connect(&session_, &Session::currentRunChanged, this, &ComparePage::refresh);
  if (const QVariant loss = session_.place().value("compare/loss"); loss.isValid()) at_loss_ = loss.toDouble();
  wanted_domain_ = session_.place().value("compare/domain").toString();
  pretraining_->setCurrentIndex(std::clamp(session_.place().value("compare/pretraining").toInt(), 0, pretraining_->count() - 1));
  split_->setCurrentIndex(std::max(0, split_->findData(session_.place().value("compare/split"))));
  restore_zoom(*trajectories_, session_.place(), "compare/zoom");
  connect(trajectories_, &FigureView::zoomChanged, this, [this] { keep_zoom(*trajectories_, session_.place(), "compare/zoom"); });
  connect(domain_, &QComboBox::currentIndexChanged, this, [this] {
    wanted_domain_ = domain_->currentIndex() > 0 ? domain_->currentText() : QString();
    session_.place().set("compare/domain", wanted_domain_);
    refresh();
  });
  connect(pretraining_, &QComboBox::currentIndexChanged, this, [this](int index) {
    session_.place().set("compare/pretraining", index);
    at_loss_.reset();  // another loss has another scale
    session_.place().set("compare/loss", {});
    refresh();
  });
  connect(split_, &QComboBox::currentIndexChanged, this, [this] {
    session_.place().set("compare/split", split_->currentData());
    refresh();
  });
  connect(trajectories_, &FigureView::failed, &session_, &Session::failed);
  connect(trajectories_, &FigureView::exported, &session_, &Session::tellSaved);
  connect(trajectories_, &FigureView::verticalLineMoved, this, [this](double loss) {
    at_loss_ = loss;
    session_.place().set("compare/loss", loss);
    refresh();
  });
  connect(common_, &QToolButton::clicked, this, [this] {
    at_loss_.reset();
    session_.place().set("compare/loss", {});
    refresh();
  });
}

/// What the chart beside the tables leaves of the page: it keeps the greater part where the page is not wide.
int ComparePage::widestTable() const {
  constexpr int kWidest = 640, kLeast = 300, kMargins = 48;
  return std::clamp(width() - charts_->leastWidth() - kMargins, kLeast, std::max(kWidest, width() / 2));
}

void ComparePage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  limitTables();
}

/// Tables are as high as their rows, and the words have what that leaves; where many runs have many words, a part of the height, and
/// scroll.
void ComparePage::fitWords() {
  int left = tables_->height() - 2 * tables_->layout()->spacing();
  const bool scores = !equal_card_->isVisibleTo(tables_);
  if (scores) tests_->fitRows(), left -= tests_->wholeHeight();
  for (const auto& [card, view] : {std::pair(equal_card_, equal_view_), std::pair(end_card_, end_view_)}) {
    if (card == equal_card_ && scores) continue;
    const int whole = card->sizeHint().height() - view->sizeHint().height() + view->wholeHeight();
    card->setMaximumHeight(std::max(whole, card->minimumSizeHint().height()));
    left -= whole;
  }
  const int least = std::min(10 * fontMetrics().lineSpacing(), height() / 4);
  const int all = verdict_->heightForWidth(std::max(100, words_->viewport()->width())) + 2;
  words_->setFixedHeight(std::min(all, std::max(left, least)));
}

void ComparePage::limitTables() {
  fitWords();
  for (FittedTable* view : {equal_view_, end_view_}) view->limit(widestTable());
  tests_->limit(widestTable());
}

/// Beside the chart of scores, where there are any, their tests in place of the losses that trajectories are read at.
void ComparePage::chooseTables() {
  const bool scores = charts_->showsScores();
  tests_->setVisible(scores);
  tests_->setMaximumHeight(tests_->isEmpty() ? 0 : QWIDGETSIZE_MAX);  // hidden, it would not learn of scores that come
  equal_card_->setVisible(!scores || tests_->isEmpty());
  limitTables();
}

bool ComparePage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == tables_ && event->type() == QEvent::Resize && words_) fitWords();
  return QWidget::eventFilter(watched, event);
}

QWidget* ComparePage::makeTables() {
  equal_ = new ComparisonTable(ComparisonTable::Kind::at_equal_loss, session_.runs(), this);
  end_ = new ComparisonTable(ComparisonTable::Kind::at_end, session_.runs(), this);
  equal_view_ = makeTable(*equal_, tr("OOD loss at equal pre-training loss"));
  end_view_ = makeTable(*end_, tr("Size, speed and losses at the end"));
  equal_card_ = new Card(tr("At equal pre-training loss"), {}, equal_view_, this);
  end_card_ = new Card(tr("At the end"), tr("mean of seeds"), end_view_, this);
  more_seeds_ = new QToolButton;
  more_seeds_->setText(tr("More seeds"));
  more_seeds_->setToolTip(tr(
      "Queues repetitions of the chosen rows with seeds that they have not had; so many as it takes to tell a row from the first, three at "
      "most at a time"));
  connect(more_seeds_, &QToolButton::clicked, this, &ComparePage::queueMoreSeeds);
  more_seeds_->setEnabled(false);
  connect(equal_view_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          [this] { more_seeds_->setEnabled(equal_view_->selectionModel()->hasSelection()); });
  add_columns_button(*equal_card_, *equal_view_);
  end_card_->addControl(split_);
  add_columns_button(*end_card_, *end_view_);
  equal_card_->addControl(more_seeds_);
  add_copy_button(*equal_card_, *equal_);
  add_copy_button(*end_card_, *end_);
  verdict_->setWordWrap(true);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  verdict_->setAccessibleName(tr("Whether the runs can be compared"));
  tables_ = new QWidget(this);
  auto* layout = new QVBoxLayout(tables_);
  layout->setContentsMargins(0, 0, 0, 0);
  tests_ = new ScoreTestsCard(
      session_, [this] { return charts_->task(); }, tables_);
  layout->addWidget(tests_, 1);
  layout->addWidget(equal_card_, 1);
  layout->addWidget(end_card_, 1);
  words_ = new PlainScroll(verdict_, tables_);
  words_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  layout->addWidget(words_);
  layout->addStretch(0);
  tables_->installEventFilter(this);  // its height decides on that of the words
  return tables_;
}

FittedTable* ComparePage::makeTable(ComparisonTable& table, const QString& name) {
  auto* view = new FittedTable;
  view->setModel(&table);
  view->setAccessibleName(name);
  connect(view->horizontalScrollBar(), &QScrollBar::rangeChanged, &while_whole_,
          [this] {  // a bar that comes or goes takes room of the rows
            if (words_) fitWords();
          });
  return view;
}

/// The program decides on the seeds; a row's runs are in its study, or beside its first.
void ComparePage::queueMoreSeeds() {
  constexpr int64_t kMost = 3;
  for (const QModelIndex& chosen : equal_view_->selectionModel()->selectedRows()) {
    const int row = chosen.row();
    const int64_t seeds = std::clamp<int64_t>(equal_->seedsToTellApart(row).value_or(1), 1, kMost);
    const QString title = equal_->index(row, 0).data().toString();
    new ProgramCall(
        {QStringLiteral("queue"), QStringLiteral("seeds"), equal_->directory(row), QString::number(seeds)}, true,
        [this, title, seeds](const ProgramCall::Answer& answer) {
          if (!answer.ok) return Q_EMIT session_.failed(tr("No seeds of %1 were queued: %2").arg(title, answer.reason));
          Q_EMIT session_.offered(
              seeds == 1 ? tr("One more seed of %1 is queued").arg(title) : tr("%1 more seeds of %2 are queued").arg(seeds).arg(title),
              {tr("Show the queue"), [this] { session_.showPage(QStringLiteral("studies")); }});
        },
        this);
  }
}

void ComparePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refresh();
}

std::string ComparePage::domain() const { return domain_->currentIndex() <= 0 ? std::string() : domain_->currentText().toStdString(); }

PretrainingLoss ComparePage::pretraining() const { return {static_cast<PretrainingLoss::Kind>(std::max(0, pretraining_->currentIndex()))}; }

void ComparePage::updateDomains() {
  QStringList names{tr("domain: mean")}, present;
  for (const std::string& name : all_domains(session_.runs()->visibleRuns())) names << QString::fromStdString(name);
  for (int i = 0; i < domain_->count(); ++i) present << domain_->itemText(i);
  if (names == present) return;
  const QSignalBlocker blocker(domain_);
  domain_->clear();
  domain_->addItems(names);
  domain_->setCurrentIndex(std::max(0, domain_->findText(wanted_domain_)));
}

void ComparePage::refresh() {
  stale_ = !isVisible();
  if (stale_) return;
  updateDomains();
  const std::shared_ptr<const ShownRuns> shown = session_.runs()->shown();
  const Wanted wanted{at_loss_, domain(), pretraining(), split_->currentData().toString().toStdString(), session_.currentRun(), tuning_};
  if (is_little(*shown) && !job_.busy()) return show(made(shown, wanted, trajectories_->prepared()));
  job_.ask([shown, wanted, before = trajectories_->prepared()] { return made(shown, wanted, before); }, true);
}

void ComparePage::show(const Made& made) {
  const Comparison& comparison = made.comparison;
  const RunSet runs = session_.runs()->shown()->runs();
  const bool none_ood = !runs.empty() && std::all_of(runs.begin(), runs.end(), [](const Run* run) { return run->ood_domains().empty(); });
  trajectories_->setEmptyText(empty_words(
      *session_.runs(), none_ood ? tr("The runs that are shown have no OOD domains (data.ood), and so no trajectory.")
                                 : tr("No run has been evaluated on text outside its training domains yet. Such runs appear here once "
                                      "training.evaluate_every steps are done.")));
  trajectories_->setPrepared(made.figure);
  keep_zoom(*trajectories_, session_.place(), "compare/zoom");  // another loss on the x axis ends it
  equal_->setComparison(comparison);
  end_->setComparison(comparison, made.entropies);
  equal_card_->setTitle(tr("At equal pre-training loss"),
                        comparison.equal_loss ? tr("%1 nats · mean of seeds").arg(QString::number(*comparison.equal_loss, 'f', 3))
                                              : tr("no loss that the first and another have passed"));
  end_card_->setTitle(tr("At the end"), comparison.split == kValidation
                                            ? tr("mean of seeds")
                                            : tr("mean of seeds · %1 tokens of every domain").arg(comparison.split_tokens));
  equal_view_->fit(widestTable(), equal_->moreColumns());
  end_view_->fit(widestTable(), end_->moreColumns());
  common_->setEnabled(at_loss_.has_value());
  more_seeds_->setEnabled(equal_view_->selectionModel()->hasSelection());
  verdict_->setText(verdict(comparison));
  fitWords();
}

}  // namespace saccade::ui
