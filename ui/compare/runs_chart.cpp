#include "ui/compare/runs_chart.h"

#include <QVBoxLayout>
#include <utility>

#include "ui/charts/figure_view.h"
#include "ui/empty_words.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::ui {

RunsChart::RunsChart(Session& session, const QString& title, const QString& subtitle, const QString& empty, std::function<Make()> maker,
                     QWidget* parent)
    : QWidget(parent),
      session_(session),
      maker_(std::move(maker)),
      empty_(empty),
      view_(new FigureView),
      card_(new Card(title, subtitle, view_, this)),
      job_(this, [this](const std::shared_ptr<const PreparedFigure>& figure) { view_->setPrepared(figure); }) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(card_);
  connect(session_.runs(), &RunList::changed, this, [this] { make(false); });
  connect(view_, &FigureView::failed, &session_, &Session::failed);
  connect(view_, &FigureView::exported, &session_, &Session::tellSaved);
}

void RunsChart::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refresh();
}

void RunsChart::make(bool urgent) {
  stale_ = !isVisible();
  if (stale_) return;
  Make maker = maker_();
  view_->setEmptyText(empty_words(*session_.runs(), empty_));
  job_.ask([maker = std::move(maker), shown = session_.runs()->shown(),
            before = view_->prepared()] { return prepare_figure(maker(*shown), before); },
           urgent);
}

}  // namespace saccade::ui
