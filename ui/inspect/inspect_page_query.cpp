// One query: what it reads, in the text and in numbers, and what it is called.
#include <QFileInfo>
#include <QScrollArea>
#include <QTabBar>
#include <QTabWidget>
#include <algorithm>

#include "analysis/inspection/known_answers.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/run_info.h"
#include "ui/calm_wheel.h"
#include "ui/charts/figure_view.h"
#include "ui/inspect/inspect_page.h"
#include "ui/inspect/loss_strip.h"
#include "ui/inspect/query_panel.h"
#include "ui/inspect/token_text.h"
#include "ui/inspect/what_if_panel.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::ui {

QWidget* InspectPage::makeQueryCard() {
  query_ = new QueryPanel;
  what_if_ = new WhatIfPanel;
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  for (const auto& [part, title] :
       {std::pair<QWidget*, QString>(query_, tr("R&eads")), std::pair<QWidget*, QString>(what_if_, tr("&Predictions"))}) {
    auto* side = new QScrollArea;  // scrolls by itself: the map beside it is seen whole
    side->setWidget(part);
    side->setWidgetResizable(true);
    side->setFrameShape(QFrame::NoFrame);
    side->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    side->setFocusPolicy(Qt::NoFocus);
    side->viewport()->setAutoFillBackground(false);
    part->setAutoFillBackground(false);
    tabs_->addTab(side, title);
  }
  tabs_->setMinimumHeight(160);
  calm_wheel(tabs_->tabBar());
  for (QWidget* named : {static_cast<QWidget*>(tabs_), static_cast<QWidget*>(tabs_->tabBar())})
    named->setAccessibleName(tr("What is told of the query"));
  query_card_ = new Card(tr("Query"), {}, tabs_, this);
  query_card_->setMinimumWidth(250);
  return query_card_;
}

void InspectPage::showQuery() {
  const auto at = place();
  if (!at || !isVisible()) return;
  map_->setSelectedCell(rowOfQuery(at->query), -1);
  strip_->setQuery(at->query);
  const auto read = [captures = captures_, sample = capture(), at = *at] {
    ReadQuery query{captures, at, {}, {}};
    try {
      query.reads = reads_of(*sample, at.layer, at.head, at.query);
    } catch (const std::exception& error) {
      query.problem = QString::fromUtf8(error.what());
    }
    return query;
  };
  if (const CapturedMap* weights = find_map(*capture(), MapKind::weights, at->layer); weights && weights->values.empty())
    return reading_.ask(read, true);
  ReadQuery query = read();
  if (!query.problem.isEmpty()) return showProblem(query.problem);
  takeReads(*at, std::move(query.reads));
}

/// While training a task only what it asks for has a loss, and so it is of the texts captured then and of items of symbols.
bool InspectPage::lossesAreOfAnswers() const {
  const Run* run = session_.runs()->run(directory_);
  if (!run || !captures_) return false;
  if (captures_->source.empty()) return !training_task(run->info()).empty();
  const auto about = run->info().config.value("data", nlohmann::json::object());
  const auto source = nlohmann::json::parse(captures_->source, nullptr, false);
  return about.value("tokenizer", std::string()).starts_with("symbols:") && source.is_object() && source.value("source", "") == "item";
}

void InspectPage::takeReads(const Place& at, Reads reads) {
  const Capture& sample = *capture();
  reads_ = std::move(reads);
  text_->setReads(at.query, *reads_);
  QStringList chosen;
  if (reads_->candidate_size > 0)
    for (const int64_t c : reads_->chosen_candidates)
      chosen << text_->text(c * reads_->candidate_size, std::min<int64_t>((c + 1) * reads_->candidate_size, at.query + 1));
  else
    for (const int64_t p : reads_->chosen_positions) chosen << text_->text(p - 12, p + 1);
  nameFiles(at);
  query_->show(sample, at.query, lossesAreOfAnswers(), *reads_, unit(), chosen.join(QStringLiteral("\n…\n")), provenance_);
  const std::vector<KnownAnswer>& answers = captures_->answers_of(sample);
  query_->showAnswer(answer_read(answers, at.query, reads_->weights), static_cast<int64_t>(reads_->weights.size()));
  const QString token =
      static_cast<size_t>(at.query) < sample.pieces.size() ? quoted(sample.pieces[static_cast<size_t>(at.query)]) : QString();
  query_card_->setTitle(tr("Query %1 %2").arg(at.query).arg(token), {});
  QStringList words{QString::fromStdString(provenance_.front()).section(": ", 1), tr("step %1").arg(captures_->step),
                    tr("query %1 %2").arg(at.query).arg(token)};
  if (captures_->cut) words << tr("the first %n tokens of the text", nullptr, static_cast<int>(sample.tokens.size()));
  if (captures_->left_out > 0)
    words << (captures_->lost_answers > 0
                  ? tr("the last %n tokens of the text, without the place of the answer", nullptr, static_cast<int>(sample.tokens.size()))
                  : tr("the last %n tokens of the text", nullptr, static_cast<int>(sample.tokens.size())));
  if (!answers.empty()) words << tr("green line: known answer");
  if (!reads_->chosen_positions.empty()) words << tr("blue line: chosen");
  const bool signed_weights = std::any_of(reads_->weights.begin(), reads_->weights.end(), [](double w) { return w < 0; });
  words << (signed_weights ? tr("orange: weight above 0, blue: below") : tr("shade: weight")) << tr("frame: the query");
  text_card_->setTitle(tr("Where did this query read from?"), words.join(QStringLiteral(" · ")));
  fitText();
  showBeside();
  dropWhatIf();
  offerWhatIf();
  ask_.start();
}

QString InspectPage::unit() const {
  const Capture* sample = capture();
  const auto at = place();
  const Selection* selection = sample && at ? find_selection(*sample, at->layer) : nullptr;
  if (!selection) return tr("element");
  switch (selection->unit) {
    case Selection::Unit::element: return tr("element");
    case Selection::Unit::chunk: return tr("chunk");
    case Selection::Unit::split: return tr("split");
  }
  return {};
}

/// A file says by its name what it shows: "RUN-step300-prose0-weights-layer1-head0".
void InspectPage::nameFiles(const Place& at) {
  const QString sample = QStringLiteral("%1-step%2-%3%4-")
                             .arg(QFileInfo(directory_).fileName())
                             .arg(captures_->step)
                             .arg(QString::fromStdString(capture()->domain))
                             .arg(capture()->sample);
  for (FigureView* view : {heads_, map_}) view->setFilePrefix(sample);
  query_->scores()->setFilePrefix(QStringLiteral("%1layer%2-head%3-query%4-").arg(sample).arg(at.layer).arg(at.head).arg(at.query));
}

}  // namespace saccade::ui
