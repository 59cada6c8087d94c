#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "kernels/engine/error.h"
#include "models/corpus/tokenizer.h"
#include "models/corpus/utf8.h"

namespace saccade {
namespace {

constexpr size_t kLongestSentence = 4000;  // bytes; SentencePiece skips longer ones than its setting says

/// Cuts texts into lines with their line ends, long lines at a space.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::function<bool(std::string&)>& next) : next_(next) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    while (at_ >= text_.size()) {
      at_ = 0;
      text_.clear();
      if (!next_(text_)) {
        done_ = true;
        return;
      }
    }
    const std::string_view rest = std::string_view(text_).substr(at_);
    const size_t size = line_size(rest);
    line_ = rest.substr(0, size);
    at_ += size;
  }

 private:
  static size_t line_size(std::string_view text) {
    size_t end = text.find('\n');
    if (end != text.npos) end = text.find_first_not_of('\n', end);  // blank lines belong to the line before
    if (end == text.npos) end = text.size();
    if (end <= kLongestSentence) return end;
    const size_t space = text.rfind(' ', kLongestSentence);
    if (space != text.npos && space > 0) return space;
    const size_t floor = utf8_floor(text, kLongestSentence);
    return floor > 0 ? floor : kLongestSentence;
  }

  std::function<bool(std::string&)> next_;
  std::string text_, line_;
  size_t at_ = 0;
  bool done_ = false;
};

/// Without the place in SentencePiece's source that stands before it: "file.cc(12) [condition] what happened".
std::string reason(const sentencepiece::util::Status& status) {
  const std::string message = status.message();
  const size_t end = message.rfind("] ");
  return end == message.npos ? message : message.substr(end + 2);
}

std::unordered_map<std::string, std::string> settings(const std::string& kind, int64_t vocabulary) {
  return {
      {"model_type", kind},
      {"vocab_size", std::to_string(vocabulary)},
      {"unk_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9995"},
      // Nothing is changed, so that decoding gives the text back.
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"split_digits", "true"},
      // One thread and no shuffling: the same text gives the same model.
      {"num_threads", "1"},
      {"shuffle_input_sentence", "false"},
      {"max_sentence_length", std::to_string(kLongestSentence + 8)},
      {"minloglevel", "3"},
  };
}

}  // namespace

std::string train_sentencepiece(const std::string& kind, int64_t vocabulary, const std::function<bool(std::string&)>& next) {
  if (kind != "bpe" && kind != "unigram") throw UsageError("tokenizer kind \"" + kind + "\", expected bpe or unigram");
  if (vocabulary < 300 || vocabulary > 1'000'000)
    throw UsageError("a vocabulary of " + std::to_string(vocabulary) + " tokens, expected 300 to 1000000");
  std::string model;
  Lines lines(next);
  if (lines.done()) throw DataError("no text to train the tokenizer " + kind + ":" + std::to_string(vocabulary) + " on");
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings(kind, vocabulary), &lines, &model);
  if (!status.ok())
    throw DataError("cannot train the tokenizer " + kind + ":" + std::to_string(vocabulary) + " on this text: " + reason(status));
  return model;
}

}  // namespace saccade
