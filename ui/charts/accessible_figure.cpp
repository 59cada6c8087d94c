#include "ui/charts/accessible_figure.h"

#include <QAccessibleWidget>

#include "ui/charts/figure_view.h"

namespace saccade::ui {

namespace {

class AccessibleFigure : public QAccessibleWidget {
 public:
  explicit AccessibleFigure(FigureView* view) : QAccessibleWidget(view, QAccessible::Chart) {}
  QString text(QAccessible::Text kind) const override {
    const auto& figure = static_cast<const FigureView*>(widget())->figure();
    if (kind == QAccessible::Description) return figure_summary(figure);
    const QString named = QAccessibleWidget::text(kind);
    return kind == QAccessible::Name && named.isEmpty() ? QString::fromStdString(figure.title) : named;
  }
};

QAccessibleInterface* make(const QString&, QObject* object) {
  auto* view = qobject_cast<FigureView*>(object);
  return view ? new AccessibleFigure(view) : nullptr;
}

}  // namespace

void install_accessible_figure() {
  static const bool installed = (QAccessible::installFactory(make), true);
  Q_UNUSED(installed)
}

}  // namespace saccade::ui
