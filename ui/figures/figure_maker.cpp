#include "ui/figures/figure_maker.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/runs/run_info.h"
#include "analysis/studies/study_folder.h"
#include "ui/files/write_file.h"
#include "ui/run_process.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {

constexpr int kPreviewDpi = 150;

/// False with a reason.
bool draw(const FigurePage& page, const QString& out, QString* reason) {
  const QString program = workbenchProgram();
  if (program.isEmpty()) {
    *reason = QStringLiteral("The program “saccade-workbench”, which draws figures, is not found.");
    return false;
  }
  const QTemporaryDir folder;
  const QString json = folder.filePath(QStringLiteral("page.json"));
  if (!writeFile(json, QByteArray::fromStdString(to_json(page).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)), reason))
    return false;
  QProcess process;
  process.start(program, {QStringLiteral("--render"), json, QStringLiteral("--out"), out});
  constexpr int kPatience = 120000;
  if (process.waitForFinished(kPatience) && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0) return true;
  QStringList lines = QString::fromUtf8(process.readAllStandardError()).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  *reason = lines.isEmpty() ? QStringLiteral("%1 could not be drawn").arg(out) : lines.last().remove(QStringLiteral("saccade-workbench: "));
  process.kill();
  process.waitForFinished(1000);
  return false;
}

template <class Open>
SharedRun renewed(std::map<std::filesystem::path, SharedRun>& known, const std::filesystem::path& directory, const Open& open) {
  SharedRun& run = known[directory];
  if (!run || run->outdated()) run = open();
  return run;
}

RunSet pointers(const std::vector<SharedRun>& runs) {
  RunSet set;
  for (const SharedRun& run : runs) set.push_back(run.get());
  return set;
}

/// The name is that of the file, which may be another one by now.
bool same_but_for_name(const FigureRecipe& a, FigureRecipe b) {
  b.name = a.name;
  return a == b;
}

}  // namespace

void KnownRecipes::remember(const QString& file, const FigureRecipe& recipe) {
  const std::lock_guard lock(mutex_);
  known_[file].recipe = recipe;
}

void KnownRecipes::renamed(const QString& before, const QString& now) {
  const std::lock_guard lock(mutex_);
  known_.erase(now);
  if (auto node = known_.extract(before)) {
    node.key() = now;
    known_.insert(std::move(node));
  }
}

void KnownRecipes::forget(const QString& file) {
  const std::lock_guard lock(mutex_);
  known_.erase(file);
}

std::optional<KnownRecipes::Known> KnownRecipes::look(const QString& file) {
  if (!QFileInfo::exists(file)) return {};
  const FigureRecipe said = load_recipe(file.toStdString());
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = known_.try_emplace(file, Known{said});
  if (!is_new && !same_but_for_name(found->second.recipe, said)) ++found->second.others;
  found->second.recipe = said;
  return found->second;
}

QString workbenchProgram() {
  const QString name = QStringLiteral("saccade-workbench");
  const QFileInfo self(QCoreApplication::applicationFilePath());
  if (self.fileName() == name) return self.filePath();
  const QString beside = QFileInfo(commandLineProgram()).path() + QLatin1Char('/') + name;
  return QFileInfo(beside).isExecutable() ? beside : QStandardPaths::findExecutable(name);
}

QString figures_folder(const QString& runs_folder) {
  const QFileInfo folder(runs_folder);
  const bool of_study = folder.fileName() == QStringLiteral("runs") && holds_study(folder.path().toStdString());
  return (of_study ? folder.path() : runs_folder) + QStringLiteral("/figures");
}

FigureMaker::Opened FigureMaker::open(const FigureRecipe& recipe, const QString& runs_folder) {
  const std::lock_guard lock(mutex_);
  Opened opened;
  for (const std::filesystem::path& directory : find_runs(runs_folder.toStdString())) try {
      opened.all.push_back(
          renewed(outlines_, directory, [&] { return std::make_shared<const Run>(directory, RunDetail{.outline = true}); }));
    } catch (const std::exception&) {  // it is told in the list of runs
      outlines_.erase(directory);
    }
  for (const Run* run : runs_of(recipe, pointers(opened.all)))
    opened.chosen.push_back(
        renewed(whole_, run->info().directory, [&] { return std::make_shared<const Run>(run->info().directory, RunDetail{}); }));
  return opened;
}

FigurePage FigureMaker::page(FigureRecipe recipe, const QString& runs_folder, const Opened& opened) const {
  recipe.home = QFileInfo(figures_folder(runs_folder)).path().toStdString();  // also of a recipe that is not saved yet
  return make_page(recipe, pointers(opened.chosen), pointers(opened.all), [this](const Run& run) {
    const std::lock_guard lock(tuning_mutex_);
    return tuning_(run);
  });
}

/// In whatever words: a file that somebody wrote ("size": "neurips", its own order) stays as it is while it is only looked at. False with
/// a reason.
bool FigureMaker::keep(const FigureRecipe& recipe, const QString& file, int followed, MadeFigure* made) {
  const auto known = known_.look(file);
  if (known) made->others = known->others;
  if (known && known->others > followed) {
    made->other = known->recipe;
    return true;
  }
  if (known && same_but_for_name(recipe, known->recipe)) return true;
  QDir().mkpath(QFileInfo(file).path());
  if (!writeFile(file, QByteArray::fromStdString(to_json(recipe).dump(2) + "\n"), &made->problem)) return false;
  known_.remember(file, recipe);
  return true;
}

MadeFigure FigureMaker::make(const FigureRecipe& asked, const QString& runs_folder, const QString& file, int followed) {
  MadeFigure made;
  try {
    if (!file.isEmpty() && !keep(asked, file, followed, &made)) return made;
    const FigureRecipe& recipe = made.other ? *made.other : asked;
    const Opened opened = open(recipe, runs_folder);
    for (const SharedRun& run : opened.chosen) ++(trunk_of(run->info().directory).empty() ? made.runs : made.branches);
    for (const SharedRun& run : opened.chosen)
      if (!isActive(run->info().state)) made.ended << QString::fromStdString(run->info().directory.filename().string());
    FigurePage drawn = page(recipe, runs_folder, opened);
    made.caption = QString::fromStdString(drawn.caption);
    for (const PageTable& table : drawn.tables) made.text += QString::fromStdString(latex_table(table)) + QLatin1Char('\n');
    drawn.style.dpi = kPreviewDpi;
    if (drawn.panels.empty()) return made;
    const QTemporaryDir folder;
    const QString picture = folder.filePath(QStringLiteral("page.png"));
    if (!draw(drawn, picture, &made.problem)) return made;
    made.picture.load(picture);
    made.width_mm = made.picture.width() * 25.4 / kPreviewDpi, made.height_mm = made.picture.height() * 25.4 / kPreviewDpi;
  } catch (const std::exception& error) {
    made.problem = QString::fromUtf8(error.what());
  }
  return made;
}

QStringList FigureMaker::write(FigureRecipe recipe, int followed, const QString& runs_folder, const QString& into, QString* problem) {
  QStringList files;
  try {
    QDir().mkpath(into);
    const auto known = known_.look(into + QLatin1Char('/') + QString::fromStdString(recipe.name + ".json"));
    if (known && known->others > followed) recipe = known->recipe;
    const FigurePage drawn = page(recipe, runs_folder, open(recipe, runs_folder));
    for (const std::string& format : recipe.formats) {
      const QString file = into + QLatin1Char('/') + QString::fromStdString(recipe.name + "." + format);
      const bool picture = format == "pdf" || format == "svg" || format == "png";
      if (picture && drawn.panels.empty()) continue;
      const std::string text = format == "csv" ? to_csv(drawn) : format == "tex" ? to_latex(drawn) : to_json(drawn).dump(1);
      if (picture ? draw(drawn, file, problem) : writeFile(file, QByteArray::fromStdString(text), problem)) files << file;
    }
  } catch (const std::exception& error) {
    *problem = QString::fromUtf8(error.what());
  }
  return files;
}

}  // namespace saccade::ui
