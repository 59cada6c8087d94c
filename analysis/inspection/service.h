#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/inspection/inspector.h"
#include "models/json.h"

namespace saccade {

/// Answers the requests of `saccade inspect RUN --serve` (docs/inspect.md): a JSON object a line each way.
///   {"id": 7, "method": "predictions", "parameters": {"query": 12, "count": 5}}
///   {"id": 7, "result": {…}}   or   {"id": 7, "error": {"message": "…", "code": 2}}
class InspectionService {
 public:
  /// `step` 0: the newest checkpoint, which is read at the first request that needs it.
  InspectionService(std::filesystem::path run, int64_t step) : run_(std::move(run)), step_(step) {}

  static constexpr int64_t kProtocol = 1;
  /// Longest request, in bytes; most values of maps in an answer; most predictions.
  static constexpr int64_t kLongestLine = int64_t{2} << 20, kMostMapValues = int64_t{1} << 22, kMostPredictions = 100;

  /// One line for one line, without line ends. Never throws for a bad request: says what is wrong with it.
  std::string answer(const std::string& line);

 private:
  using Json = nlohmann::json;

  Json result_of(const std::string& method, const Json& parameters);
  Json hello();
  Json read_text(const Json& parameters);
  Json map(const Json& parameters);
  Json predictions(const Json& parameters);
  Json change(const Json& parameters);
  InspectedText text_from(const Json& parameters);
  InspectedText captured_text(const Json& parameters);
  InspectedText scored_text(const Json& parameters);
  Inspector& inspector();

  std::filesystem::path run_;
  int64_t step_;
  std::optional<Inspector> inspector_;
};

}  // namespace saccade
