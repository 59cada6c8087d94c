// saccade generate RUN: goes on from a prompt, token by token.
#include "analysis/evaluation/generation.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/runs_option.h"

namespace saccade::cli {
namespace {

struct Options {
  std::string run, device;
  int64_t step = 0;
  GenerationOptions generation;
};

int run(const Options& options) {
  catch_stop_signals();
  note_old_names(read_run_info(options.run));
  LoadedModel loaded = load_model(options.run, options.step, options.device);
  const Generation g = generate(loaded, options.generation, {}, stop_requested());
  const GenerationOptions& o = options.generation;
  print_result({{"run", options.run},
                {"step", loaded.step},
                {"prompt", o.prompt},
                {"temperature", o.temperature},
                {"seed", o.seed},
                {"prompt_tokens", g.prompt},
                {"tokens", g.tokens},
                {"text", printable(g.text, true)},
                {"ended", g.ended}},
               printable(o.prompt + g.text, true) + "\n");
  return 0;
}

const RegisterCommand command{
    {"generate", "Generate text from a checkpoint, given a prompt.",
     "saccade generate runs/first --prompt \"The \" --tokens 200 --temperature 0.8", [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       app.add_option("RUN", o->run, "Run directory")->required();
       app.add_option("--checkpoint,--step", o->step,
                      "Step of the checkpoint (default: the newest; no other takes its place when it is damaged)");
       app.add_option("--prompt", o->generation.prompt, "Prompt (default: the beginning of a text)");
       app.add_option("--tokens", o->generation.tokens, "Largest number of tokens to generate")->check(CLI::Range(1, 1 << 24));
       app.add_option("--temperature", o->generation.temperature, "Divides the logits; 0: greedy decoding")->check(CLI::Range(0.0, 1e4));
       app.add_option("--seed", o->generation.seed, "Seed of sampling: the same seed gives the same text");
       app.add_option("--device", o->device, "cpu, cuda:N or auto (default: the run's)");
       return [o] { return run(*o); };
     }}};

}  // namespace
}  // namespace saccade::cli
