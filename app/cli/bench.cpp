// saccade bench: how fast this machine trains.
#include "analysis/evaluation/benchmark.h"
#include "analysis/evaluation/decoding_benchmark.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/output.h"
#include "app/cli/ranks_option.h"
#include "kernels/engine/device.h"

namespace saccade::cli {
namespace {

struct Options {
  std::vector<std::string> presets, configs, overrides;
  BenchmarkOptions benchmark;
  bool ops = false, no_steps = false;
  bool decode = false;
  DecodingBenchmarkOptions decoding{{2048, 8192, 32768, 65536}, {}, 32};
};

std::string milliseconds(double seconds) { return number(seconds * 1e3, 2); }

nlohmann::json to_json(const Timing& t) {
  return {{"name", t.name},        {"ms", t.median * 1e3},  {"fastest_ms", t.fastest * 1e3},        {"slowest_ms", t.slowest * 1e3},
          {"flops", t.cost.flops}, {"bytes", t.cost.bytes}, {"gflops_per_s", t.gflops_per_second()}};
}

nlohmann::json to_json(const std::vector<OpShare>& profile) {
  nlohmann::json ops = nlohmann::json::array();
  for (const OpShare& op : profile)
    ops.push_back({{"op", op.name}, {"calls", op.calls}, {"ms", op.seconds * 1e3}, {"flops", op.cost.flops}, {"bytes", op.cost.bytes}});
  return ops;
}

nlohmann::json to_json(const StepBenchmark& b) {
  nlohmann::json json = to_json(b.step);
  json.erase("name");
  json.update({{"preset", b.work.name},
               {"sequence_length", b.work.config.data.sequence_length},
               {"batch_tokens", b.work.config.training.batch_tokens},
               {"parameters", b.parameters},
               {"threads", b.threads},
               {"ranks", b.ranks},
               {"tokens_per_s", b.tokens_per_second()},
               {"peak_bytes", b.peak_bytes},
               {"loss", b.loss},
               {"device", to_string(b.device)},
               {"processor", cpu_name()},
               {"gpu", gpu_name(b.device)}});
  if (!b.profile.empty()) json["profile"] = to_json(b.profile);
  return json;
}

/// `whole`: seconds of what the ops are part of.
std::string profile_table(const std::string& title, double whole, const std::vector<OpShare>& profile) {
  std::vector<std::vector<std::string>> rows;
  for (const OpShare& op : profile)
    rows.push_back({op.name, number(op.calls, 0), milliseconds(op.seconds), number(100 * op.seconds / whole, 1),
                    number(op.cost.flops / op.seconds / 1e9, 1), number(op.cost.bytes / op.seconds / 1e9, 1)});
  return "\n" + title + "\n" + table({"op", "calls", "ms", "%", "GFLOP/s", "GB/s"}, rows);
}

nlohmann::json to_json(const DecodingPoint& point) {
  nlohmann::json json{{"length", point.length}, {"batches", nlohmann::json::array()}};
  if (point.refusal.empty())
    json.update({{"prompt", to_json(point.prompt)}, {"token", to_json(point.token)}, {"state_bytes", point.state_bytes}});
  else
    json["refusal"] = point.refusal;
  if (!point.profile.empty()) json["profile"] = to_json(point.profile);
  for (const DecodingBatch& b : point.batches) {
    nlohmann::json batch{{"batch", b.sequences}};
    if (b.refusal.empty())
      batch.update({{"prefill_ms", b.prefill * 1e3},
                    {"step", to_json(b.step)},
                    {"tokens_per_s", b.tokens_per_second()},
                    {"whole_tokens_per_s", b.whole_tokens_per_second(point.length)}});
    else
      batch["refusal"] = b.refusal;
    json["batches"].push_back(batch);
  }
  return json;
}

struct DecodingReport {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows, batches;
  std::string profiles, refusals;

  void add(const DecodingBenchmark& b, const std::string& device) {
    const std::string& name = b.preset.name;
    nlohmann::json points = nlohmann::json::array();
    for (const DecodingPoint& point : b.points) {
      points.push_back(to_json(point));
      if (!point.profile.empty())
        profiles += profile_table(name + ", prompt of " + std::to_string(point.length), point.prompt.median, point.profile);
      const std::string length = std::to_string(point.length);
      if (point.refusal.empty())
        rows.push_back({name, length, milliseconds(point.prompt.median), milliseconds(point.prompt.fastest),
                        number(point.prompt.gflops_per_second(), 1), milliseconds(point.token.median), milliseconds(point.token.fastest),
                        human_bytes(static_cast<double>(point.state_bytes))});
      else
        refusals += name + ", prompt of " + length + ": " + point.refusal + "\n";
      for (const DecodingBatch& batch : point.batches)
        if (batch.refusal.empty())
          batches.push_back({name, length, std::to_string(batch.sequences), milliseconds(batch.prefill), milliseconds(batch.step.median),
                             milliseconds(batch.step.fastest), human(batch.tokens_per_second()),
                             human(batch.whole_tokens_per_second(point.length))});
        else
          refusals += name + ", " + std::to_string(batch.sequences) + " prompts of " + length + ": " + batch.refusal + "\n";
    }
    json.push_back({{"preset", name},
                    {"parameters", b.parameters},
                    {"threads", b.threads},
                    {"device", device},
                    {"processor", cpu_name()},
                    {"gpu", gpu_name(parse_device(device))},
                    {"peak_bytes", b.peak_bytes},
                    {"points", points}});
  }
  std::string text() const {
    std::string text = table({"decoding", "prompt", "ms", "fastest", "GFLOP/s", "ms a token", "fastest", "state"}, rows);
    if (!batches.empty())
      text += "\n" + table({"side by side", "prompt", "batch", "prefill ms", "ms a step", "fastest", "tokens/s", "with prompts"}, batches);
    return text + (refusals.empty() ? "" : "\n" + refusals) + profiles;
  }
};

int run_decoding(const Options& options) {
  DecodingReport report;
  const auto add = [&](const DecodingPreset& preset) {
    report.add(benchmark_decoding(preset, options.decoding, options.benchmark), options.benchmark.device);
  };
  for (const std::string& path : options.configs) add(decoding_preset(load_config_file(path, options.overrides)));
  for (const std::string& name : options.presets) add(preset_of(decoding_presets(), name));
  print_result({{"decoding", report.json}}, report.text());
  return 0;
}

struct StepReport {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  std::string profiles;

  void add(const StepBenchmark& b) {
    json.push_back(to_json(b));
    rows.push_back({b.work.name, human(static_cast<double>(b.parameters)),
                    (b.ranks > 1 ? std::to_string(b.ranks) + " ranks, " : "") + to_string(b.device), milliseconds(b.step.median),
                    milliseconds(b.step.fastest), human(b.tokens_per_second()), number(b.step.gflops_per_second(), 1),
                    human_bytes(static_cast<double>(b.peak_bytes))});
    if (!b.profile.empty()) profiles += profile_table(b.work.name, b.step.median, b.profile);
  }
  std::string text() const {
    if (rows.empty()) return "";
    return table({"training step", "parameters", "device", "ms", "fastest", "tokens/s", "GFLOP/s", "memory"}, rows) + profiles;
  }
};

int run(const Options& options, const Ranks& ranks) {
  StepReport steps;
  nlohmann::json ops = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const std::string& path : options.configs)
    steps.add(benchmark_step(step_work(load_config_file(path, options.overrides), options.benchmark), options.benchmark, ranks));
  for (const std::string& name : options.presets) {
    const StepPreset& preset = preset_of(step_presets(), name);
    StepWork work = step_work(preset, options.benchmark);
    work.config.training.gradient_accumulation = ranks.count;
    if (!options.no_steps) steps.add(benchmark_step(work, options.benchmark, ranks));
    if (!options.ops) continue;
    for (const Timing& t : benchmark_ops(preset, options.benchmark)) {
      ops.push_back(to_json(t));
      ops.back()["preset"] = name;
      rows.push_back({name + ": " + t.name, milliseconds(t.median), milliseconds(t.fastest), number(t.gflops_per_second(), 1),
                      number(t.cost.bytes / t.median / 1e9, 1)});
    }
  }
  std::string text = steps.text();
  if (!rows.empty()) text += (text.empty() ? "" : "\n") + table({"forward and backward", "ms", "fastest", "GFLOP/s", "GB/s"}, rows);
  print_result({{"steps", steps.json}, {"ops", ops}}, text);
  return 0;
}

const RegisterCommand command{
    {"bench", "Times training steps and single ops on this machine.", "saccade bench --preset 2m-cpu --profile", [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       auto ranks = add_ranks_option(app);
       app.add_option("--preset", options->presets, "Training step to time, a micro-batch on each rank:" + names_of(step_presets()))
           ->default_str("2m-cpu");
       app.add_option("--config", options->configs,
                      "Config file or preset whose training step, or with --decode whose decoding, to time, on --device, with random tokens");
       app.add_option("--set", options->overrides, "Override a value in it: --set data.sequence_length=4096")
           ->type_name("KEY=VALUE")
           ->expected(1)
           ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
       app.add_option("--device", options->benchmark.device, "cpu, auto, cuda, cuda:N or cuda:N-M")->capture_default_str();
       app.add_option("--threads", options->benchmark.threads, "CPU threads, 0: all cores")->check(CLI::Range(0, 1024));
       app.add_option("--repeats", options->benchmark.repeats, "Timed repeats; the median is shown")->check(CLI::Range(1, 1000));
       app.add_option("--warmup", options->benchmark.warmup, "Repeats before that")->check(CLI::Range(0, 1000));
       app.add_flag("--profile", options->benchmark.profile, "Show the time of every op in the step, or in the prompt");
       app.add_flag("--ops", options->ops, "Time single ops at the preset's sizes as well");
       app.add_flag("--no-steps", options->no_steps, "Only the ops");
       app.add_option("--only", options->benchmark.only, "Names of the ops to time, like attention; all without it");
       app.add_flag("--decode", options->decode,
                    "Time prefill of a prompt and incremental decoding instead of training:" + names_of(decoding_presets()));
       app.add_option("--lengths", options->decoding.lengths, "With --decode: tokens of the prompt, with commas between")
           ->delimiter(',')
           ->check(CLI::Range(1, 1 << 24));
       app.add_option("--batch", options->decoding.batches, "With --decode: also so many sequences side by side, with commas between")
           ->delimiter(',')
           ->check(CLI::Range(1, 4096));
       app.add_option("--tokens", options->decoding.tokens, "With --decode: tokens behind the prompt that are timed")
           ->check(CLI::Range(1, 1 << 20));
       return [options, ranks] {
         if (options->presets.empty() && options->configs.empty()) options->presets = {options->decode ? "2m" : "2m-cpu"};
         options->ops = options->ops || options->no_steps || !options->benchmark.only.empty();
         if (options->decode) return run_decoding(*options);
         return with_ranks(*ranks, options->benchmark.device, {}, [&](const Ranks& all) { return run(*options, all); });
       };
     }}};

}  // namespace
}  // namespace saccade::cli
