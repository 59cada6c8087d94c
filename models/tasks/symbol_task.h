#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/random.h"
#include "models/corpus/corpus.h"
#include "models/json.h"
#include "models/settings.h"

namespace saccade {

/// Random numbers of one example, one after another.
class Draws {
 public:
  Draws(uint64_t seed, const std::string& stream) : random_(seed, stream) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n), next_++)); }  ///< 0 … n−1
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }                           ///< both included
  double uniform() { return random_.uniform(next_++); }                                                        ///< [0, 1)
  std::vector<int64_t> different(int64_t count, int64_t n);  ///< `count` different numbers below n, in random order

 private:
  Random random_;
  uint64_t next_ = 0;
};

/// What a model reads and what it is to say at some of the positions.
struct SymbolExample {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;  ///< as many; kNoTarget where nothing is asked
  std::vector<int32_t> sources;  ///< as many; where the answer stood before, −1 where it did not stand in one place

  void add(int64_t token, int64_t target = kNoTarget, int64_t source = -1);
};
/// Draws an example; those to train on may be others than those to test on (`training`).
using MakeExample = std::function<SymbolExample(Draws& draws, bool training)>;

/// One entry of the registry of generated tasks on symbols (`data.task`): numbers are read, or text as bytes. Settings are those of a
/// domain, a difficulty: "length-64-pairs-4". "length", the most tokens of an example, is one of them.
struct SymbolTask {
  std::string id;     ///< "mqar"
  std::string title;  ///< a line
  std::string paper;  ///< citation with section
  std::vector<Setting> settings;
  std::vector<std::string> train, test;  ///< usual domains: to train on; to test on besides, which are harder
  /// Of resolved values; throws UsageError where they do not fit each other, naming `pointer`.
  std::function<int64_t(const nlohmann::json& values, const std::string& pointer)> vocabulary;
  std::function<int64_t(const nlohmann::json& values)> most_targets;  ///< of an example, other than kNoTarget
  /// What guessing gets right: one over the answers that there may be, not over all symbols, some of which are never asked for.
  std::function<double(const nlohmann::json& values)> chance;
  std::function<MakeExample(const nlohmann::json& values, uint64_t seed)> maker;
  bool disjoint = true;   ///< no example of a test split may be one to train on; false where the facts asked for are the same
  std::string tokenizer;  ///< "bytes" where symbols are bytes of text, so that what trained on them can be asked in text; empty: symbols:N
};

/// All entries, sorted by id. A file registers its own with a namespace-scope `const RegisterSymbolTask`.
const std::vector<const SymbolTask*>& symbol_tasks();
/// Throws UsageError with a suggestion when there is none of that id.
const SymbolTask& symbol_task(const std::string& id);

struct RegisterSymbolTask {
  explicit RegisterSymbolTask(SymbolTask task);
};

/// What stands in a file of a task, from functions of its settings' struct S. `check` throws UsageError without its place.
template <class S>
struct SymbolTaskOf {
  const char *id, *title, *paper;
  const Schema<S>& schema;
  std::vector<std::string> train, test;
  std::function<int64_t(const S&)> vocabulary, most_targets;
  std::function<double(const S&)> chance;
  std::function<MakeExample(const S&, uint64_t seed)> maker;
  std::function<void(const S&)> check = {};
  bool disjoint = true;
  std::string tokenizer = {};

  SymbolTask task() const {
    const auto read = [schema = schema](const nlohmann::json& values) { return schema.read(values, ""); };
    return {id,
            title,
            paper,
            schema.settings(),
            train,
            test,
            [read, vocabulary = vocabulary, check = check](const nlohmann::json& values, const std::string& pointer) {
              try {
                if (check) check(read(values));
              } catch (const UsageError& error) {
                throw UsageError(pointer + ": " + error.what());
              }
              return vocabulary(read(values));
            },
            [read, most_targets = most_targets](const nlohmann::json& values) { return most_targets(read(values)); },
            [read, chance = chance](const nlohmann::json& values) { return chance(read(values)); },
            [read, maker = maker](const nlohmann::json& values, uint64_t seed) { return maker(read(values), seed); },
            disjoint,
            tokenizer};
  }
};

/// A task at one difficulty: examples by number. They depend on the task, the domain's name, the split and the number alone. Examples to
/// train on, to validate with and to test with are told apart by a hash of their tokens (8 : 1 : 1), so that none is in two splits
/// (unless SymbolTask::disjoint is false).
class SymbolDomain {
 public:
  /// "length-64-pairs-4": names of settings and numbers, of any of them; also "examples" (how many there are to train on; 0: never one
  /// twice) and "seed". Throws UsageError, naming `pointer`, for what is no setting or out of range.
  SymbolDomain(const SymbolTask& task, std::string name, const std::string& pointer);

  const std::string& name() const { return name_; }
  int64_t length() const { return length_; }  ///< most tokens of an example
  int64_t examples() const { return examples_; }
  int64_t vocabulary() const { return vocabulary_; }
  std::string tokenizer() const;                          ///< the smallest that reads its examples: "symbols:N" or "bytes"
  bool reads(const std::string& tokenizer) const;         ///< whether that one does
  int64_t most_targets() const { return most_targets_; }  ///< that an example can have, other than kNoTarget
  double chance() const { return chance_; }               ///< share of the answers that guessing gets right
  /// Throws UsageError where the difficulty has too few different examples to part the splits.
  SymbolExample example(Split split, uint64_t index) const;
  /// SHA-256 of the task, its settings and how examples are drawn.
  std::string hash() const;

 private:
  const SymbolTask& task_;
  std::string name_;
  nlohmann::json values_;
  int64_t length_ = 0, examples_ = 0, vocabulary_ = 0, most_targets_ = 0;
  double chance_ = 0;
  uint64_t seed_ = 1;
  MakeExample make_;
  std::string stream_;  ///< of random numbers, before the split and the number
};

/// The most targets of a sequence of any of these domains of a task. Throws UsageError as SymbolDomain does.
int64_t most_targets(const std::string& task, const std::vector<std::string>& domains, const std::string& pointer);

/// Examples of a domain in rows of T tokens (at least the domain's length): behind the end zeros without targets.
std::shared_ptr<const SequenceStore> symbol_sequences(SymbolDomain domain, Split split, int64_t length);

}  // namespace saccade
