#pragma once
#include <QImage>
#include <QString>
#include <QStringList>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "analysis/figures/recipe.h"
#include "analysis/studies/study_folder.h"
#include "ui/shown_runs.h"

namespace saccade::ui {

/// The program that draws files: this one, or the one beside the command line program. Empty when there is none.
QString workbenchProgram();

/// What came of a recipe.
struct MadeFigure {
  QImage picture;  ///< as the file will be; null for tables and where there is nothing to draw
  QString text;    ///< of tables, as LaTeX
  QString caption, problem;
  std::optional<FigureRecipe> other;  ///< that its file has from somebody else since it was last read or written here: what was drawn
  int others = 0;                     ///< times that somebody else had changed the file: what the next one is asked with
  QStringList ended;                  ///< folders of its runs that have ended
  int runs = 0, branches = 0;         ///< that it shows, counted as its caption counts them
  double width_mm = 0, height_mm = 0;
};

/// What files of recipes said when this window last read or wrote them, so that what others write meanwhile is told from it.
class KnownRecipes {
 public:
  struct Known {
    FigureRecipe recipe;
    int others = 0;  ///< times that somebody else had changed the file
  };
  void remember(const QString& file, const FigureRecipe& recipe);
  void renamed(const QString& before, const QString& now);
  void forget(const QString& file);
  /// Reads the file again; null where there is none. Throws as load_recipe().
  std::optional<Known> look(const QString& file);

 private:
  std::mutex mutex_;
  std::map<QString, Known> known_;
};

/// Reads runs of a folder and has recipes drawn by a process of their own, so that file and screen are one. For threads other than the
/// window's.
class FigureMaker {
 public:
  /// Saves the recipe first where `file` is given and says something else, but never over what somebody else wrote: where the file was
  /// changed more often than `followed` times, what it says is drawn (MadeFigure::other). Never throws: MadeFigure::problem says what is
  /// wrong.
  MadeFigure make(const FigureRecipe& recipe, const QString& runs_folder, const QString& file, int followed);
  /// Writes the recipe's formats into a folder, as its file there says where somebody else changed it. The files; `problem` where one could
  /// not be written.
  QStringList write(FigureRecipe recipe, int followed, const QString& runs_folder, const QString& into, QString* problem);
  KnownRecipes& known() { return known_; }

 private:
  struct Opened {
    std::vector<SharedRun> chosen, all;
  };
  bool keep(const FigureRecipe& recipe, const QString& file, int followed, MadeFigure* made);
  Opened open(const FigureRecipe& recipe, const QString& runs_folder);
  FigurePage page(FigureRecipe recipe, const QString& runs_folder, const Opened& opened) const;

  KnownRecipes known_;
  std::mutex mutex_;
  mutable std::mutex tuning_mutex_;
  TuningOfRun tuning_ = tuning_by_study();  ///< keeps what studies say, under tuning_mutex_
  std::map<std::filesystem::path, SharedRun> outlines_, whole_;
};

/// STUDY/figures where STUDY/runs is open, else figures in the folder of runs.
QString figures_folder(const QString& runs_folder);

}  // namespace saccade::ui
