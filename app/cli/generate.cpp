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
  std::vector<std::string> prompts;
  GenerationOptions generation;
  int64_t samples = 1, batch = 64;
};

nlohmann::json to_json(const GenerationOptions& o, const Generation& g) {
  nlohmann::json json{{"prompt", o.prompt}, {"temperature", o.sampling.temperature}, {"seed", o.sampling.seed}, {"prompt_tokens", g.prompt},
                      {"tokens", g.tokens}, {"text", printable(g.text, true)},       {"ended", g.ended}};
  if (o.sampling.top_k > 0) json["top_k"] = o.sampling.top_k;
  if (o.sampling.top_p < 1) json["top_p"] = o.sampling.top_p;
  return json;
}

int run(const Options& options) {
  catch_stop_signals();
  note_old_names(read_run_info(options.run));
  LoadedModel loaded = load_model(options.run, options.step, options.device);
  std::vector<GenerationOptions> all;
  for (const std::string& prompt : options.prompts.empty() ? std::vector<std::string>{""} : options.prompts)
    for (int64_t i = 0; i < options.samples; ++i) {
      all.push_back(options.generation);
      all.back().prompt = prompt;
      all.back().sampling.seed += static_cast<uint64_t>(i);
    }
  const std::vector<Generation> texts = generate(loaded, all, options.batch, stop_requested());
  nlohmann::json json{{"run", options.run}, {"step", loaded.step}}, samples = nlohmann::json::array();
  std::string shown;
  for (size_t i = 0; i < all.size(); ++i) {
    samples.push_back(to_json(all[i], texts[i]));
    if (all.size() > 1) shown += "--- " + std::to_string(i + 1) + ", seed " + std::to_string(all[i].sampling.seed) + "\n";
    shown += printable(all[i].prompt + texts[i].text, true) + "\n";
  }
  if (all.size() == 1)
    json.update(samples.front());
  else
    json["samples"] = samples;
  print_result(json, shown);
  return 0;
}

const RegisterCommand command{
    {"generate", "Generate text from a checkpoint, given prompts.",
     "saccade generate runs/first --prompt \"The \" --tokens 200 --temperature 0.8", [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       Sampling& sampling = o->generation.sampling;
       app.add_option("RUN", o->run, "Run directory")->required();
       app.add_option("--checkpoint,--step", o->step,
                      "Step of the checkpoint (default: the newest; no other takes its place when it is damaged)");
       app.add_option("--prompt", o->prompts, "Prompt, given again for another one (default: the beginning of a text)")
           ->expected(1)
           ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
       app.add_option("--tokens", o->generation.tokens, "Largest number of tokens to generate")
           ->check(CLI::Range(1, 1 << 24))
           ->capture_default_str();
       app.add_option("--temperature", sampling.temperature, "Divides the logits; 0: greedy decoding")
           ->check(CLI::Range(0.0, 1e4))
           ->capture_default_str();
       app.add_option("--top-k", sampling.top_k, "Draw from the K likeliest tokens; 0: from all")
           ->check(CLI::Range(0, 1 << 24))
           ->capture_default_str();
       app.add_option("--top-p", sampling.top_p, "Draw from the likeliest tokens that together have this probability")
           ->check(CLI::Range(0.0, 1.0))
           ->capture_default_str();
       app.add_option("--seed", sampling.seed, "Seed of sampling: the same seed gives the same text")->capture_default_str();
       app.add_option("--samples", o->samples, "Texts for each prompt, sample i with seed + i")
           ->check(CLI::Range(1, 1 << 20))
           ->capture_default_str();
       app.add_option("--batch", o->batch, "Texts that are generated side by side; changes none of them")
           ->check(CLI::Range(1, 4096))
           ->capture_default_str();
       app.add_option("--device", o->device, "cpu, cuda:N or auto (default: the run's)");
       return [o] { return run(*o); };
     }}};

}  // namespace
}  // namespace saccade::cli
