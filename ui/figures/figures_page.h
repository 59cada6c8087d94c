#pragma once
#include <QTimer>
#include <QWidget>
#include <map>

#include "ui/figures/figure_maker.h"
#include "ui/latest_job.h"

class QAction;
class QLabel;
class QListWidget;
class QMenu;
class QPlainTextEdit;
class QToolButton;

namespace saccade::ui {

class Card;
class RecipeForm;
class Session;

/// Figures for papers as recipes that are kept beside the runs: what they show is drawn as their files will be, again when runs go on, and
/// files that were written are written again when runs end.
class FiguresPage : public QWidget {
  Q_OBJECT
 public:
  FiguresPage(Session& session, QWidget* parent);

 protected:
  bool event(QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  class Preview;
  struct Written {
    QStringList files;
    QString problem;
  };
  void makeActions();
  QWidget* makeLeft();
  QWidget* makeNone(QWidget* parent);
  QWidget* makeRight();
  void addShipped(QMenu& menu);
  void readRecipes();  ///< of the open folder
  void choose(const QString& name);
  void add(FigureRecipe recipe);
  void rename(const QString& name);
  void remove();
  void undo();
  void draw(bool urgent);
  void follow(const FigureRecipe& recipe, int others);
  void showMade(const MadeFigure& made);
  void write(std::vector<FigureRecipe> recipes, bool quiet);
  QString folder() const;
  QString file(const std::string& name) const;
  bool wasWritten(const FigureRecipe& recipe) const;

  Session& session_;
  std::shared_ptr<FigureMaker> maker_ = std::make_shared<FigureMaker>();
  LatestJob<MadeFigure> job_;
  LatestJob<Written> writer_;
  std::vector<FigureRecipe> recipes_;
  std::optional<FigureRecipe> removed_;
  QStringList ended_;  ///< runs of the chosen recipe, when it was last drawn
  QString drawn_;      ///< its name
  QString read_from_;
  std::map<QString, int> followed_;  ///< how often what others had changed in a recipe's file was taken up
  bool quiet_ = false;
  QAction *new_, *duplicate_, *remove_, *undo_, *export_, *export_all_;
  QListWidget* list_;
  RecipeForm* form_;
  Card *preview_card_, *form_card_;
  Preview* preview_;
  QWidget* none_;  ///< where there is no figure yet
  QLabel* none_text_;
  QToolButton* begin_;
  QLabel* caption_;
  QPlainTextEdit* text_;
};

}  // namespace saccade::ui
