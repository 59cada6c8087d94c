// saccade bench: how fast this machine trains.
#include <algorithm>

#include "analysis/evaluation/benchmark_json.h"
#include "analysis/runs/files.h"
#include "analysis/runs/provenance.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/output.h"
#include "app/cli/ranks_option.h"
#include "app/cli/render.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

using Json = nlohmann::json;

struct Options {
  std::vector<std::string> presets, configs, overrides;
  BenchmarkOptions benchmark;
  bool ops = false, no_steps = false;
  bool decode = false;
  std::vector<int64_t> lengths;  ///< empty: those of the configs, or some prompts
  int64_t step_tokens = 100'000;
  DecodingBenchmarkOptions decoding{{}, {}, 32};
  std::string relative, out;
};

/// Of a number of JSON under `key`; "–" where it is not there.
std::string cell(const Json& entry, const char* key, int digits) {
  const auto found = entry.find(key);
  return found == entry.end() ? "–" : number(found->get<double>(), digits);
}
std::string human_cell(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found == entry.end() ? "–" : human(found->get<double>());
}
std::string bytes_cell(const Json& entry, const char* key) { return human_bytes(entry.value(key, 0.0)); }
/// "1.90×"
std::string times_cell(const Json& entry, const char* key) { return entry.contains(key) ? cell(entry, key, 2) + "×" : "–"; }

/// Of ops that are part of something that takes `whole` ms.
std::string profile_table(const std::string& title, double whole, const Json& profile) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& op : profile) {
    const double ms = op.at("ms");
    rows.push_back({op.at("op"), cell(op, "calls", 0), number(ms, 2), number(100 * ms / whole, 1),
                    number(op.at("flops").get<double>() / ms / 1e6, 1), number(op.at("bytes").get<double>() / ms / 1e6, 1)});
  }
  return "\n" + title + "\n" + table({"op", "calls", "ms", "%", "GFLOP/s", "GB/s"}, rows);
}

/// Rows under a header; with --relative each ends with how many times as fast as that it is.
struct Rows {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows = {};
  void end(const std::string& relative, const std::string& times) {
    if (!relative.empty()) rows.back().push_back(times);
  }
  std::string text(const std::string& relative) {
    if (!relative.empty()) header.push_back("of " + relative);
    return table(header, rows);
  }
};

std::string decoding_text(const Json& models, const std::string& relative) {
  Rows single{{"decoding", "prompt", "ms", "fastest", "slowest", "GFLOP/s", "ms a token", "fastest", "state", "memory"}};
  Rows batches{{"side by side", "prompt", "batch", "prefill ms", "ms a step", "fastest", "tokens/s", "with prompts", "memory"}};
  std::string refusals, profiles;
  for (const Json& model : models)
    for (const Json& point : model.at("points")) {
      const std::string name = model.at("preset"), length = std::to_string(point.at("length").get<int64_t>());
      if (point.contains("profile"))
        profiles += profile_table(name + ", prompt of " + length, point.at("prompt").at("ms"), point.at("profile"));
      if (point.contains("refusal")) {
        refusals += name + ", prompt of " + length + ": " + point.at("refusal").get<std::string>() + "\n";
      } else {
        const Json &prompt = point.at("prompt"), &token = point.at("token");
        single.rows.push_back({name, length, cell(prompt, "ms", 2), cell(prompt, "fastest_ms", 2), cell(prompt, "slowest_ms", 2),
                               cell(prompt, "gflops_per_s", 1), cell(token, "ms", 2), cell(token, "fastest_ms", 2),
                               bytes_cell(point, "state_bytes"), bytes_cell(point, "peak_bytes")});
        single.end(relative, times_cell(point, "relative"));
      }
      for (const Json& batch : point.at("batches")) {
        const std::string sequences = std::to_string(batch.at("batch").get<int64_t>());
        if (batch.contains("refusal")) {
          refusals += name + ", " + sequences + " prompts of " + length + ": " + batch.at("refusal").get<std::string>() + "\n";
          continue;
        }
        batches.rows.push_back({name, length, sequences, cell(batch, "prefill_ms", 2), cell(batch.at("step"), "ms", 2),
                                cell(batch.at("step"), "fastest_ms", 2), human_cell(batch, "tokens_per_s"),
                                human_cell(batch, "whole_tokens_per_s"), bytes_cell(batch, "peak_bytes")});
        batches.end(relative, times_cell(batch, "relative"));
      }
    }
  std::string text = single.text(relative);
  if (!batches.rows.empty()) text += "\n" + batches.text(relative);
  return text + (refusals.empty() ? "" : "\n" + refusals) + profiles;
}

std::string step_text(const Json& steps, const std::string& relative) {
  Rows rows{{"training step", "parameters", "device", "length", "tokens", "ms", "fastest", "slowest", "tokens/s", "GFLOP/s", "memory"}};
  std::string refusals, profiles;
  for (const Json& step : steps) {
    const std::string name = step.at("preset"), length = std::to_string(step.at("sequence_length").get<int64_t>());
    if (step.contains("refusal")) {
      refusals += name + ", sequences of " + length + ": " + step.at("refusal").get<std::string>() + "\n";
      continue;
    }
    const int ranks = step.at("ranks");
    rows.rows.push_back({name, human_cell(step, "parameters"),
                         (ranks > 1 ? std::to_string(ranks) + " ranks, " : "") + step.at("device").get<std::string>(), length,
                         human_cell(step, "batch_tokens"), cell(step, "ms", 2), cell(step, "fastest_ms", 2), cell(step, "slowest_ms", 2),
                         human_cell(step, "tokens_per_s"), cell(step, "gflops_per_s", 1), bytes_cell(step, "peak_bytes")});
    rows.end(relative, times_cell(step, "relative"));
    if (step.contains("profile")) profiles += profile_table(name, step.at("ms"), step.at("profile"));
  }
  if (steps.empty()) return "";
  return (rows.rows.empty() ? "" : rows.text(relative)) + (refusals.empty() ? "" : "\n" + refusals) + profiles;
}

std::string op_text(const Json& ops) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& op : ops)
    rows.push_back({op.at("preset").get<std::string>() + ": " + op.at("name").get<std::string>(), cell(op, "ms", 2),
                    cell(op, "fastest_ms", 2), cell(op, "gflops_per_s", 1),
                    number(op.at("bytes").get<double>() / op.at("ms").get<double>() / 1e6, 1)});
  return rows.empty() ? "" : table({"forward and backward", "ms", "fastest", "GFLOP/s", "GB/s"}, rows);
}

/// Before anything is timed: --relative names one of what is timed.
void require_reference(const Options& options, std::vector<std::string> names) {
  names.insert(names.end(), options.presets.begin(), options.presets.end());
  if (!options.relative.empty() && std::find(names.begin(), names.end(), options.relative) == names.end())
    throw UsageError("--relative " + options.relative + ": it is not timed" + did_you_mean(options.relative, names));
}

/// Prints what was measured, and keeps it with the program and the time where --out says.
int finish(const Options& options, Json result, const std::function<std::string(const Json&)>& text) {
  if (!options.relative.empty()) {
    add_relative(result, options.relative);
    result["relative_to"] = options.relative;
  }
  if (!options.out.empty()) {
    Json kept = result;
    kept.update({{"saccade_bench", 1}, {"made", utc_now()}, {"versions", library_versions()}});
    write_text(options.out, kept.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  print_result(result, text(result) + (options.out.empty() ? "" : "\nwrote " + options.out + "\n"));
  return 0;
}

int run_decoding(Options options) {
  if (options.lengths.empty()) options.lengths = {2048, 8192, 32768, 65536};
  options.decoding.lengths = options.lengths;
  std::vector<DecodingPreset> models;
  for (const std::string& path : options.configs) models.push_back(decoding_preset(load_config_file(path, options.overrides)));
  std::vector<std::string> names;
  for (const DecodingPreset& model : models) names.push_back(model.name);
  require_reference(options, names);
  for (const std::string& name : options.presets) models.push_back(preset_of(decoding_presets(), name));
  Json decoding = Json::array();
  for (const DecodingPreset& model : models)
    decoding.push_back(to_json(benchmark_decoding(model, options.decoding, options.benchmark), options.benchmark.device));
  return finish(options, {{"decoding", decoding}},
                [&](const Json& result) { return decoding_text(result.at("decoding"), options.relative); });
}

/// The work of a config at each of --lengths, or at its own; a length that it does not take is a point that says so.
void add_config_steps(Json& steps, const Options& options, const std::string& path, const Ranks& ranks) {
  const RunConfig config = load_config_file(path, options.overrides);
  if (options.lengths.empty()) {
    steps.push_back(to_json(benchmark_step(step_work(config, options.benchmark), options.benchmark, ranks)));
    return;
  }
  const bool accumulates = std::any_of(options.overrides.begin(), options.overrides.end(), [](const std::string& assignment) {
    return assignment.starts_with("training.gradient_accumulation=");
  });
  const int64_t micro_batches = std::max<int64_t>(accumulates ? config.training.gradient_accumulation : 1, ranks.count);
  for (const int64_t length : options.lengths) {
    const int64_t tokens = whole_sequences(options.step_tokens, length, micro_batches);
    std::vector<std::string> overrides = options.overrides;
    overrides.push_back("data.sequence_length=" + std::to_string(length));
    overrides.push_back("training.batch_tokens=" + std::to_string(tokens));
    overrides.push_back("training.capture_tokens=" + std::to_string(std::min(config.training.capture_tokens, length)));
    overrides.push_back("training.gradient_accumulation=" + std::to_string(micro_batches));
    StepWork work = step_work(config, options.benchmark);
    work.config.data.sequence_length = length, work.config.training.batch_tokens = tokens;
    const std::string refusal = refusal_of([&] { work = step_work(load_config_file(path, overrides), options.benchmark); });
    steps.push_back(to_json(refusal.empty() ? benchmark_step_if_it_fits(work, options.benchmark, ranks)
                                            : refused_step(work, options.benchmark, ranks, refusal)));
  }
}

void add_preset_steps(Json& steps, const Options& options, const StepPreset& preset, const Ranks& ranks) {
  for (const int64_t length : options.lengths.empty() ? std::vector<int64_t>{preset.length} : options.lengths) {
    StepPreset long_preset = preset;
    long_preset.length = length;
    if (!options.lengths.empty()) long_preset.batch = whole_sequences(options.step_tokens, length, ranks.count) / length;
    StepWork work = step_work(long_preset, options.benchmark);
    work.config.training.gradient_accumulation = ranks.count;
    steps.push_back(to_json(options.lengths.empty() ? benchmark_step(work, options.benchmark, ranks)
                                                    : benchmark_step_if_it_fits(work, options.benchmark, ranks)));
  }
}

int run(const Options& options, const Ranks& ranks) {
  std::vector<std::string> names;
  for (const std::string& path : options.configs) names.push_back(load_config_file(path, options.overrides).name);
  require_reference(options, names);
  Json steps = Json::array(), ops = Json::array();
  for (const std::string& path : options.configs) add_config_steps(steps, options, path, ranks);
  for (const std::string& name : options.presets) {
    const StepPreset& preset = preset_of(step_presets(), name);
    if (!options.no_steps) add_preset_steps(steps, options, preset, ranks);
    if (!options.ops) continue;
    for (const Timing& t : benchmark_ops(preset, options.benchmark)) {
      ops.push_back(to_json(t));
      ops.back()["preset"] = name;
    }
  }
  return finish(options, {{"steps", steps}, {"ops", ops}}, [&](const Json& result) {
    const std::string text = step_text(result.at("steps"), options.relative), of_ops = op_text(result.at("ops"));
    return text + (text.empty() || of_ops.empty() ? "" : "\n") + of_ops;
  });
}

const RegisterCommand command{
    {"bench", "Times training steps, prompts, decoding and single ops on this machine.",
     "saccade bench --config rwkv7-10m --config transformer-pp-10m --lengths 512,2048 --relative transformer-pp-10m --out speed.json",
     [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       auto ranks = add_ranks_option(app);
       app.add_option("--preset", options->presets, "Training step to time, a micro-batch on each rank:" + names_of(step_presets()))
           ->default_str("2m-cpu");
       app.add_option(
           "--config", options->configs,
           "Config file or preset whose training step, or with --decode whose decoding, to time, on --device, with random tokens");
       app.add_option("--set", options->overrides, "Override a value in it: --set data.sequence_length=4096")
           ->type_name("KEY=VALUE")
           ->expected(1)
           ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
       app.add_option("--device", options->benchmark.device, "cpu, auto, cuda, cuda:N or cuda:N-M")->capture_default_str();
       app.add_option("--threads", options->benchmark.threads, "CPU threads, 0: all cores")
           ->check(CLI::Range(0, 1024))
           ->capture_default_str();
       app.add_option("--repeats", options->benchmark.repeats, "Timed repeats; the median is shown")
           ->check(CLI::Range(1, 1000))
           ->capture_default_str();
       app.add_option("--warmup", options->benchmark.warmup, "Repeats before that")->check(CLI::Range(0, 1000))->capture_default_str();
       app.add_flag("--profile", options->benchmark.profile, "Show the time of every op in the step, or in the prompt");
       app.add_flag("--ops", options->ops, "Time single ops at the preset's sizes as well");
       app.add_flag("--no-steps", options->no_steps, "Only the ops");
       app.add_option("--only", options->benchmark.only, "Names of the ops to time, like attention; all without it");
       app.add_flag("--decode", options->decode,
                    "Time prefill of a prompt and incremental decoding instead of training:" + names_of(decoding_presets()));
       app.add_option("--lengths", options->lengths,
                      "Tokens of a sequence, with commas between: the training step at each of them, about as many tokens a step whatever "
                      "the length; with --decode tokens of the prompt (2048,8192,32768,65536)")
           ->delimiter(',')
           ->check(CLI::Range(1, 1 << 24));
       app.add_option("--batch", options->decoding.batches, "With --decode: also so many sequences side by side, with commas between")
           ->delimiter(',')
           ->check(CLI::Range(1, 4096));
       app.add_option("--tokens", options->decoding.tokens, "With --decode: tokens behind the prompt that are timed")
           ->check(CLI::Range(1, 1 << 20))
           ->capture_default_str();
       app.add_option("--step-tokens", options->step_tokens, "With --lengths: tokens of a training step, in whole sequences")
           ->capture_default_str()
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
       app.add_option("--relative", options->relative, "Show how many times as fast as this one, by its name, everything is");
       app.add_option("--out,-o", options->out, "Keep the results in this JSON file; charts of figures read it");
       return [options, ranks] {
         if (options->presets.empty() && options->configs.empty()) options->presets = {options->decode ? "2m" : "2m-cpu"};
         if (!options->out.empty()) make_folders_above(options->out);  // what was measured is not to be lost for want of one
         options->ops = options->ops || options->no_steps || !options->benchmark.only.empty();
         if (options->decode) return run_decoding(*options);
         return with_ranks(*ranks, options->benchmark.device, {}, [&](const Ranks& all) { return run(*options, all); });
       };
     }}};

}  // namespace
}  // namespace saccade::cli
