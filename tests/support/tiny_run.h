#pragma once
#include <string>

#include "models/json.h"

namespace saccade::test {

/// The config of a run so small that a step takes a millisecond, on a corpus of the domains prose and code.
inline nlohmann::json tiny_run(const std::string& corpus) {
  return {{"name", "tiny"},
          {"architecture", {{"block", "llama"}, {"mixer", "attention"}, {"width", 16}, {"layers", 2}, {"heads", 2}}},
          {"data", {{"corpus", corpus}, {"train", {"prose"}}, {"ood", {"code"}}, {"tokenizer", "bytes"}, {"sequence_length", 64}}},
          {"training",
           {{"steps", 12},
            {"batch_tokens", 128},
            {"warmup_steps", 2},
            {"evaluate_every", 4},
            {"evaluation_tokens", 4096},
            {"probe_every", 4},
            {"checkpoint_every", 4},
            {"capture_tokens", 32}}},
          {"device", "cpu"}};
}

/// The same on symbols: values of two keys of a few, tested with three.
inline nlohmann::json tiny_symbol_run() {
  nlohmann::json run = tiny_run("");
  run["data"] = {{"task", "mqar"}, {"train", {"length-16-pairs-2-vocabulary-32"}}, {"ood", {"length-16-pairs-3-vocabulary-32"}}};
  run["training"].erase("capture_tokens");
  return run;
}

}  // namespace saccade::test
