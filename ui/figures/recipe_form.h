#pragma once
#include <QWidget>
#include <functional>

#include "analysis/figures/recipe.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLineEdit;
class QListWidget;
class QSpinBox;
class QToolButton;

namespace saccade::ui {

/// All of a figure's recipe to be changed: runs, size, type, and panel by panel what is drawn.
class RecipeForm : public QWidget {
  Q_OBJECT
 public:
  explicit RecipeForm(QWidget* parent = nullptr);
  void setRecipe(const FigureRecipe& recipe);
  const FigureRecipe& recipe() const { return recipe_; }

 Q_SIGNALS:
  void changed();
  void renamed(const QString& name);

 private:
  void makePage(QFormLayout& form);
  void makePanels(QFormLayout& form);
  void makePanel(QFormLayout& form);
  void makeLosses(QFormLayout& form);
  void makeScores(QFormLayout& form);
  QLineEdit* line(QFormLayout& form, const QString& name, const QString& help, const std::function<std::string*()>& value);
  QComboBox* choice(QFormLayout& form, const QString& name, const QStringList& texts, const std::function<void(int)>& take,
                    const std::function<int()>& place);
  QDoubleSpinBox* number(QFormLayout& form, const QString& name, const QString& unit, double low, double high,
                         const std::function<double*()>& value);
  void list(QFormLayout& form, const QString& name, const QString& help, const std::function<std::vector<std::string>*()>& value);
  void range(QFormLayout& form, const QString& name, const std::function<std::optional<std::array<double, 2>>*()>& value);
  PanelRecipe& panel();
  void changePanels(const std::function<void(std::vector<PanelRecipe>&, size_t)>& change);
  void fill();
  void told();

  FigureRecipe recipe_;
  size_t panel_ = 0;
  bool filling_ = false;
  std::vector<std::function<void()>> fillers_;
  QListWidget* panels_;
  std::vector<std::pair<QWidget*, QStringList>> of_charts_;  ///< fields, and the charts that have them
  QFormLayout* panel_form_;
};

}  // namespace saccade::ui
