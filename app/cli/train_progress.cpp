#include "app/cli/train_progress.h"

#include "analysis/training/divergence.h"
#include "app/cli/command.h"
#include "app/cli/exit_code.h"
#include "app/cli/output.h"
#include "kernels/engine/error.h"

namespace saccade::cli {

RunState watch_training(const std::string& label, int64_t steps, const std::function<RunState(const RunProgress&)>& work) {
  catch_stop_signals();
  Progress bar(label);
  RunProgress progress;
  progress.message = [](const std::string& line) { say(line); };
  progress.step = [&](const StepRecord& record, const EvaluationRecord* last) {
    std::string detail = "loss " + number(record.loss, 3);
    if (last) {
      double ood = 0;
      int domains = 0;
      for (const DomainLoss& d : last->losses) {
        if (d.ood)
          ood += d.loss, ++domains;
        else
          detail += "  " + d.domain + " " + number(d.loss, 3);
      }
      if (domains) detail += "  OOD " + number(ood / domains, 3);
    }
    detail += "  " + human(record.tokens_per_second) + " tokens/s";
    bar.update(static_cast<double>(record.step) / static_cast<double>(steps), detail);
  };
  return work(progress);
}

int finish_training(const std::filesystem::path& directory, RunState state) {
  const Run run(directory);
  const RunInfo& info = run.info();
  const auto last = [&](const char* name) {
    const Series* s = run.find(name);
    return s && !s->value.empty() ? s->value.back() : std::numeric_limits<double>::quiet_NaN();
  };
  const Series* ood = run.find("ood/loss");
  const double error = ood && !ood->error.empty() ? ood->error.back() : std::numeric_limits<double>::quiet_NaN();
  std::string text =
      directory.string() + ": " + to_string(state) + " at step " + std::to_string(info.step) + " of " + std::to_string(info.steps);
  if (!info.message.empty()) text += " (" + info.message + ")";
  print_result({{"directory", directory.string()},
                {"state", to_string(state)},
                {"step", info.step},
                {"steps", info.steps},
                {"parameters", info.parameters},
                {"train_loss", last("train/loss")},
                {"ood_loss", last("ood/loss")},
                {"ood_loss_standard_error", error},
                {"message", info.message},
                {"lost", run.lost()}},
               text);
  if (!run.lost().empty()) warn("warning: " + directory.string() + ": " + run.lost());
  if (state == RunState::diverged) throw Error(directory.string() + ": diverged, " + info.message + "; " + way_back(directory));
  if (state != RunState::stopped) return 0;
  say("go on with: saccade resume " + directory.string());
  return exit_code_of(130);
}

}  // namespace saccade::cli
