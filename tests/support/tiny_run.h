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

}  // namespace saccade::test
