#include "models/tasks/symbol_task.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "models/corpus/sha256.h"
#include "models/entries.h"

namespace saccade {
namespace {

constexpr int64_t kNeverTwice = int64_t{1} << 40;  ///< examples of a domain that has no number of them
constexpr int kMostDraws = 1000;                   ///< until an example is of the split
constexpr int64_t kVersion = 1;                    ///< another number: the same names give other examples

Entries<SymbolTask>& entries() {
  static Entries<SymbolTask> list;
  return list;
}

struct CommonSettings {
  int64_t examples = 0, seed = 1;
};
const Schema<CommonSettings> common_schema{
    field("examples", &CommonSettings::examples, {0, 1e12},
          "Different examples to train on, which come again and again; 0: none comes twice."),
    field("seed", &CommonSettings::seed, {0, 1e9}, "Which examples are drawn."),
};

/// "length-64-pairs-4" as an object.
nlohmann::json values_of(const std::string& name, const std::string& pointer) {
  nlohmann::json values = nlohmann::json::object();
  const auto fail = [&] { throw UsageError(pointer + " names \"" + name + "\"; expected settings and numbers, like length-64-pairs-4"); };
  for (size_t at = 0; at < name.size();) {
    const size_t middle = name.find('-', at);
    if (middle == name.npos) fail();
    const size_t end = std::min(name.find('-', middle + 1), name.size());
    const std::string key = name.substr(at, middle - at), digits = name.substr(middle + 1, end - middle - 1);
    const auto number = nlohmann::json::parse(digits, nullptr, false);
    if (key.empty() || !number.is_number() || values.contains(key)) fail();
    values[key] = number;
    at = end + 1;
  }
  if (values.empty() || name.ends_with('-')) fail();
  return values;
}

/// Train, validation or test, by what is read.
Split split_of(const SymbolExample& example) {
  std::string bytes(8 * example.tokens.size(), '\0');  // of each token, little-endian
  for (size_t i = 0; i < example.tokens.size(); ++i)
    for (size_t byte = 0; byte < 8; ++byte) bytes[8 * i + byte] = static_cast<char>(static_cast<uint64_t>(example.tokens[i]) >> (8 * byte));
  const int part = sha256(bytes)[0] % 10;
  return part == 0 ? Split::test : part == 1 ? Split::validation : Split::train;
}

class SymbolSequences : public SequenceStore {
 public:
  SymbolSequences(SymbolDomain domain, Split split) : domain_(std::move(domain)), split_(split) {}
  int64_t size() const override { return split_ == Split::train && domain_.examples() > 0 ? domain_.examples() : kNeverTwice; }
  std::string label() const override { return domain_.name() + "." + to_string(split_); }
  int64_t targets(int64_t sequence) const override {
    const SymbolExample e = domain_.example(split_, static_cast<uint64_t>(sequence));
    return static_cast<int64_t>(e.targets.size()) - std::count(e.targets.begin(), e.targets.end(), kNoTarget);
  }
  void read(int64_t sequence, std::span<int32_t> tokens, std::span<int32_t> targets) const override {
    const SymbolExample e = domain_.example(split_, static_cast<uint64_t>(sequence));
    std::fill(std::copy(e.tokens.begin(), e.tokens.end(), tokens.begin()), tokens.end(), 0);
    std::fill(std::copy(e.targets.begin(), e.targets.end(), targets.begin()), targets.end(), kNoTarget);
  }

 private:
  SymbolDomain domain_;
  Split split_;
};

}  // namespace

std::vector<int64_t> Draws::different(int64_t count, int64_t n) {
  std::vector<int64_t> chosen;
  chosen.reserve(static_cast<size_t>(count));
  std::unordered_map<int64_t, int64_t> moved;  // Fisher and Yates on 0 … n−1, of which only what was exchanged is kept
  moved.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t j = between(i, n - 1);
    const auto from = moved.find(i);
    const auto [to, first] = moved.try_emplace(j, j);
    chosen.push_back(to->second);
    to->second = from == moved.end() ? i : from->second;
  }
  return chosen;
}

void SymbolExample::add(int64_t token, int64_t target, int64_t source) {
  tokens.push_back(static_cast<int32_t>(token));
  targets.push_back(static_cast<int32_t>(target));
  sources.push_back(static_cast<int32_t>(source));
}

RegisterSymbolTask::RegisterSymbolTask(SymbolTask task) {
  entries().add(std::move(task), [](const SymbolTask& t) { return t.id; });
}
const std::vector<const SymbolTask*>& symbol_tasks() { return entries().all(); }
const SymbolTask& symbol_task(const std::string& id) { return entries().find("task to train on", id); }

SymbolDomain::SymbolDomain(const SymbolTask& task, std::string name, const std::string& pointer) : task_(task), name_(std::move(name)) {
  const std::string place = pointer + " \"" + name_ + "\"";
  nlohmann::json given = values_of(name_, pointer);
  std::vector<std::string> names{"examples", "seed"};
  for (const Setting& s : task.settings) names.push_back(s.name);
  check_known_keys(given, names, place);
  const CommonSettings common = common_schema.read(given, place);
  values_ = resolved_values(task.settings, given, place);
  length_ = values_.at("length");
  examples_ = common.examples, seed_ = static_cast<uint64_t>(common.seed);
  vocabulary_ = task.vocabulary(values_, place);
  most_targets_ = task.most_targets(values_);
  chance_ = task.chance(values_);
  make_ = task.maker(values_, seed_);
  stream_ = task.id + " " + values_.dump() + " ";
}

std::string SymbolDomain::tokenizer() const { return task_.tokenizer.empty() ? "symbols:" + std::to_string(vocabulary_) : task_.tokenizer; }

bool SymbolDomain::reads(const std::string& tokenizer) const {
  if (!task_.tokenizer.empty()) return tokenizer == task_.tokenizer;
  constexpr std::string_view kSymbols = "symbols:";
  if (!tokenizer.starts_with(kSymbols)) return false;
  int64_t symbols = 0;
  const char* const end = tokenizer.data() + tokenizer.size();
  const auto [behind, error] = std::from_chars(tokenizer.data() + kSymbols.size(), end, symbols);
  return error == std::errc() && behind == end && symbols >= vocabulary_;
}

SymbolExample SymbolDomain::example(Split split, uint64_t index) const {
  const std::string stream = stream_ + to_string(split) + " " + std::to_string(index);
  for (int draw = 0; draw < kMostDraws; ++draw) {
    Draws draws(seed_, stream + " " + std::to_string(draw));
    SymbolExample example = make_(draws, split == Split::train);
    if (!task_.disjoint || split_of(example) == split) return example;
  }
  throw UsageError("task " + task_.id + ", " + name_ + ": too few different examples for a " + to_string(split) +
                   " split of its own; expected a greater length or vocabulary");
}

std::string SymbolDomain::hash() const {
  return hex(sha256(task_.id + " " + std::to_string(kVersion) + " " + values_.dump() + " " + std::to_string(examples_) + " " +
                    std::to_string(seed_)));
}

int64_t most_targets(const std::string& task, const std::vector<std::string>& domains, const std::string& pointer) {
  int64_t most = 0;
  for (const std::string& name : domains) most = std::max(most, SymbolDomain(symbol_task(task), name, pointer).most_targets());
  return most;
}

std::shared_ptr<const SequenceStore> symbol_sequences(SymbolDomain domain, Split split, int64_t length) {
  if (domain.length() > length)
    throw UsageError("examples of " + domain.name() + " have up to " + std::to_string(domain.length()) + " tokens, a sequence " +
                     std::to_string(length));
  return std::make_shared<SymbolSequences>(std::move(domain), split);
}

}  // namespace saccade
