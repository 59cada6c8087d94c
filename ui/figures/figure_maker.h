#pragma once
#include <QImage>
#include <QString>
#include <QStringList>
#include <map>
#include <memory>
#include <mutex>

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
  QStringList ended;  ///< folders of its runs that have ended
  int runs = 0;
  double width_mm = 0, height_mm = 0;
};

/// Reads runs of a folder and has recipes drawn by a process of their own, so that file and screen are one. For threads other than the
/// window's.
class FigureMaker {
 public:
  /// Saves the recipe first where `file` is given. Never throws: MadeFigure::problem says what is wrong.
  MadeFigure make(const FigureRecipe& recipe, const QString& runs_folder, const QString& file);
  /// Writes the recipe's formats into a folder. The files; `problem` where one could not be written.
  QStringList write(const FigureRecipe& recipe, const QString& runs_folder, const QString& into, QString* problem);

 private:
  struct Opened {
    std::vector<SharedRun> chosen, all;
  };
  Opened open(const FigureRecipe& recipe, const QString& runs_folder);
  FigurePage page(FigureRecipe recipe, const QString& runs_folder, const Opened& opened) const;

  std::mutex mutex_;
  mutable std::mutex tuning_mutex_;
  TuningOfRun tuning_ = tuning_by_study();  ///< keeps what studies say, under tuning_mutex_
  std::map<std::filesystem::path, SharedRun> outlines_, whole_;
};

/// STUDY/figures where STUDY/runs is open, else figures in the folder of runs.
QString figures_folder(const QString& runs_folder);

}  // namespace saccade::ui
