#include "ui/compare/table_card.h"

#include <QApplication>
#include <QClipboard>
#include <QToolButton>

#include "ui/charts/figure_view.h"
#include "ui/compare/comparison_table.h"
#include "ui/compare/fitted_table.h"

namespace saccade::ui {

void add_columns_button(Card& card, FittedTable& view) {
  auto* button = new QToolButton;
  button->setAutoRaise(true);
  button->setAccessibleName(ComparisonTable::tr("Other columns: %1").arg(view.accessibleName()));
  button->setToolTip(ComparisonTable::tr("The columns that have no room beside these"));
  button->hide();
  card.addControl(button);
  QObject::connect(button, &QToolButton::clicked, &view, [&view] { view.showPage((view.page() + 1) % view.pages()); });
  QObject::connect(&view, &FittedTable::pagesChanged, button, [button, &view] {
    button->setText(ComparisonTable::tr("columns %1/%2 ▸").arg(view.page() + 1).arg(view.pages()));
    button->setVisible(view.pages() > 1);
  });
}

void add_copy_button(Card& card, const ComparisonTable& table) {
  auto* copy = new QToolButton;
  copy->setText(ComparisonTable::tr("Copy"));
  copy->setToolTip(ComparisonTable::tr("Copy the table, tab-separated"));
  copy->setAutoRaise(true);
  QObject::connect(copy, &QToolButton::clicked, &card, [&table] { QApplication::clipboard()->setText(table.asText()); });
  card.addControl(copy);
}

}  // namespace saccade::ui
