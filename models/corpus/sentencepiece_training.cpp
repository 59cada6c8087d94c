#include <fcntl.h>
#include <poll.h>
#include <sentencepiece_trainer.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <unordered_map>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
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

/// What the training comes to, one letter for its kind before it: 'm' a model, 'e' an error.
std::string train_here(const std::string& kind, int64_t vocabulary, const std::function<bool(std::string&)>& next) {
  std::string model;
  Lines lines(next);
  const std::string tokenizer = kind + ":" + std::to_string(vocabulary);
  if (lines.done()) return "eno text to train the tokenizer " + tokenizer + " on";
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings(kind, vocabulary), &lines, &model);
  if (!status.ok()) return "ecannot train the tokenizer " + tokenizer + " on this text: " + reason(status);
  return "m" + model;
}

/// SentencePiece trains in one call that nothing interrupts, so that is done by a child process, which can be ended.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + std::string(std::strerror(errno)));
    process_ = ::fork();
    const int reason = errno;
    if (process_ == 0) run(ends[1], work);
    ::close(ends[1]);
    from_ = ends[0];
    if (process_ > 0) return;
    ::close(from_);
    throw Error("cannot start a process: " + std::string(std::strerror(reason)));
  }
  ~Child() {
    if (process_ > 0) ::kill(process_, SIGKILL), ::waitpid(process_, nullptr, 0);
    ::close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// All that it has to say. Throws Interrupted, and then the destructor ends it.
  std::string result() {
    std::string said, block(size_t{1} << 16, '\0');
    while (true) {
      stop_here_if_asked();
      pollfd wait{from_, POLLIN, 0};
      if (::poll(&wait, 1, 100) <= 0) continue;
      const ssize_t got = ::read(from_, block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return said;
      said.append(block, 0, static_cast<size_t>(got));
    }
  }

 private:
  [[noreturn]] static void run(int to, const std::function<std::string()>& work) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string said;
    try {
      said = work();
    } catch (const std::exception& error) {
      said = std::string("e") + error.what();
    }
    for (std::string_view rest = said; !rest.empty();) {
      const ssize_t written = ::write(to, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) break;
      rest.remove_prefix(static_cast<size_t>(written));
    }
    ::_exit(0);
  }

  pid_t process_ = -1;
  int from_ = -1;
};

}  // namespace

std::string train_sentencepiece(const std::string& kind, int64_t vocabulary, const std::function<bool(std::string&)>& next) {
  if (kind != "bpe" && kind != "unigram") throw UsageError("tokenizer kind \"" + kind + "\", expected bpe or unigram");
  if (vocabulary < 300 || vocabulary > 1'000'000)
    throw UsageError("a vocabulary of " + std::to_string(vocabulary) + " tokens, expected 300 to 1000000");
  const std::string result = Child([&] { return train_here(kind, vocabulary, next); }).result();
  if (result.empty())
    throw DataError("cannot train the tokenizer " + kind + ":" + std::to_string(vocabulary) +
                    ": the process that did it ended early, perhaps for want of memory");
  if (result.front() != 'm') throw DataError(result.substr(1));
  return result.substr(1);
}

}  // namespace saccade
