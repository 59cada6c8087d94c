#pragma once
#include <algorithm>
#include <filesystem>
#include <string>

#include "analysis/runs/sealed_json.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

/// What a study has evaluated at the end of one of its runs, STUDY/runs/NAME or a branch of it, which write_fixture() wrote: losses above
/// the given one. `kind`: "test.64", the split and the tokens of every domain.
inline void write_end_evaluation(const std::filesystem::path& study, const std::filesystem::path& run, const std::string& kind, double loss,
                                 int64_t step) {
  const auto domain = [&](const char* name, bool ood, double mean) {
    return nlohmann::json{{"domain", name}, {"ood", ood}, {"loss", mean}, {"by_sequence", {mean - 1, mean + 1}}, {"targets", {16, 16}}};
  };
  std::string name = run.lexically_relative(study / "runs").string();
  std::replace(name.begin(), name.end(), '/', '.');
  std::filesystem::create_directories(study / "evaluations");
  write_sealed_json(study / "evaluations" / (name + "." + kind + ".json"),
                    {{"step", step},
                     {"split", "test"},
                     {"corpus_hash", "c0ffee"},
                     {"tokenizer_hash", "bytes"},
                     {"packing", "packed"},
                     {"sequence_length", 16},
                     {"domains", {domain("prose", false, loss), domain("c", true, loss + 1), domain("python", true, loss + 2)}}});
}

}  // namespace saccade::test
