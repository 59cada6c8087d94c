// saccade plan CONFIG: what a run will take, without starting it.
#include "models/training/plan.h"

#include "analysis/figures/count_text.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/host_call.h"
#include "app/cli/output.h"
#include "app/cli/ranks_option.h"
#include "models/architectures/registry.h"
#include "models/corpus/vocabulary.h"
#include "models/training/run_cost.h"

namespace saccade::cli {
namespace {

constexpr double kMostSeconds = 1800;  ///< of a plan on a host

/// What each layer of a hybrid stack mixes with, and takes.
std::string layers_text(const Plan& plan) {
  if (plan.layers.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const PlannedLayers& l : plan.layers)
    rows.push_back({std::to_string(l.first) + (l.last > l.first ? " to " + std::to_string(l.last) : ""), l.mixer,
                    human(static_cast<double>(l.parameters)), human_bytes(static_cast<double>(l.state_bytes_per_token))});
  return "\n" + table({"layers", "mixer", "parameters each", "state per token each"}, rows);
}

int run(const ConfigOptions& options, bool measure, const RanksOption& ranks_option) {
  const RunConfig config = options.load();
  const int count = ranks_option.count(config.device);
  if (measure && count > 1) throw UsageError("--measure times one process; plan " + std::to_string(count) + " ranks without it");
  const Plan plan = make_plan(config, padded_vocabulary(vocabulary_of(config.data.tokenizer), config.data.vocabulary_multiple),
                              {count, 0, 0, count, nullptr, ranks_option.gpus > 0});
  nlohmann::json json = to_json(plan);
  const auto bytes = [](int64_t b) { return human_bytes(static_cast<double>(b)); };
  std::vector<std::pair<std::string, std::string>> rows{
      {"parameters", human(static_cast<double>(plan.parameters)) + " (" + std::to_string(plan.parameters) + ")"},
      {"weights", bytes(plan.weight_bytes)},
      {"gradients", bytes(plan.gradient_bytes)},
      {"optimizer", bytes(plan.optimizer_bytes)},
      {"sums of gradients", bytes(plan.sum_bytes)},
      {"activations at the peak", bytes(plan.activation_bytes)},
      {"evaluation at its peak", bytes(plan.evaluation_bytes)},
      {"statistics and captures beyond the steps", bytes(plan.device_bytes() - plan.peak_bytes - plan.runtime_bytes)},
      {"memory at the peak", bytes(plan.device_bytes()) + " of " + bytes(plan.memory.available) + " available on " + plan.device},
      {"cache / state per token of context", bytes(plan.state_bytes_per_token)},
      {"steps", std::to_string(plan.steps) + " of " + (plan.tokens < plan.steps * plan.tokens_per_step ? "up to " : "") +
                    std::to_string(plan.tokens_per_step) + " tokens"},
      {"tokens", human(static_cast<double>(plan.tokens))},
      {"FLOPs per step", human(plan.flops_per_step)},
      {"FLOPs in all", human(plan.total_flops())},
      {"FLOPs of an evaluation", human(plan.flops_per_evaluation)},
      {"checkpoint", bytes(checkpoint_bytes(plan)) + ", " + std::to_string(checkpoints_kept(config.training)) + " kept at most"},
      {"captures", bytes(plan.capture_bytes) + " at each of " + counted(captures_kept(config.training), "step")}};
  for (const std::string& op : plan.without_tensor_cores) rows.push_back({"without tensor cores, slow", op});
  if (count > 1) rows.insert(rows.begin(), {"ranks", std::to_string(count) + "; memory is of each, rank 0, which evaluates too"});
  if (measure) {
    require_device(config, plan);
    const RunPace pace = measure_pace(config, plan);
    const double seconds = run_seconds(config, plan, pace), training = pace.step * run_work(config, plan).steps;
    json.update(to_json(pace));
    json["seconds"] = seconds;
    rows.push_back(
        {"measured", human_seconds(pace.step) + " a step, " + human(static_cast<double>(plan.tokens_per_step) / pace.step) + " tokens/s"});
    rows.push_back(
        {"time", human_seconds(seconds) + ", " + human_seconds(seconds - training) + " of it for evaluation, statistics and captures"});
  }
  print_result(json, architecture_title(config.architecture) + "\n\n" + list(rows) + layers_text(plan));
  require_device(config, plan);
  return 0;
}

const RegisterCommand command{
    {"plan", "Parameters, memory and FLOPs of a run, without starting it.", "saccade plan run.json --measure", [](CLI::App& app) {
       auto options = add_config_options(app);
       auto measure = std::make_shared<bool>(false);
       auto ranks = add_ranks_option(app);
       app.add_flag("--measure", *measure, "Time steps, evaluation, statistics and captures, and estimate the duration of the run");
       auto on = std::make_shared<std::string>();
       app.add_option("--on", *on, "For a host that is set up (saccade host list), by the program there");
       return [=] {
         if (on->empty()) return run(*options, *measure, *ranks);
         if (where_named(*on) != Where::host) throw UsageError("--on " + *on + ": a plan is made here, or on a host");
         return print_host_answer(
             *on, {{"ask", "plan"}, {"config", to_json(options->load())}, {"token", new_token()}, {"measure", *measure}}, kMostSeconds);
       };
     }}};

}  // namespace
}  // namespace saccade::cli
