#include "ui/configure/first_batch.h"

#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTextEdit>
#include <QVBoxLayout>

#include "kernels/engine/error.h"
#include "models/tasks/symbol_task.h"
#include "ui/threads/hand_over.h"

namespace saccade::ui {
namespace {

constexpr int64_t most_tokens = 1200;       // shown
constexpr int64_t quickly_read = 64 << 20;  // bytes of text that are tokenized unasked

int64_t training_bytes(const CorpusSummary& corpus, const std::vector<std::string>& domains) {
  int64_t bytes = 0;
  for (const DomainInfo& domain : corpus.domains)
    if (std::find(domains.begin(), domains.end(), domain.name) != domains.end())
      if (const auto train = domain.bytes.find(to_string(Split::train)); train != domain.bytes.end()) bytes += train->second;
  return bytes;
}

/// The first training examples of a generated task: symbols in a line each, answers behind the positions at which they are asked for; text
/// as it is, with its answer at the end.
QStringList first_examples(const RunConfig& config) {
  const SymbolDomain domain(symbol_task(config.data.task), config.data.train.front(), "/data/train");
  QStringList lines;
  for (uint64_t i = 0; i < 4; ++i) {
    const SymbolExample example = domain.example(Split::train, i);
    if (config.data.tokenizer == "bytes") {
      lines << QString::fromStdString(make_byte_tokenizer()->decode(example.tokens)).left(most_tokens) << QString();
      continue;
    }
    QString line;
    for (size_t t = 0; t < example.tokens.size() && line.size() < most_tokens; ++t)
      line += QString::number(example.tokens[t]) +
              (example.targets[t] == kNoTarget ? QStringLiteral(" ") : QStringLiteral("→%1 ").arg(example.targets[t]));
    lines << line << QString();
  }
  return lines;
}

/// Text of the first sequence; pieces that end a document are empty strings.
QStringList first_sequence(const RunConfig& config) {
  const DataConfig& data = config.data;
  if (!data.task.empty()) return first_examples(config);
  const Corpus corpus = Corpus::open(data.corpus);
  for (const std::string& domain : data.train)
    if (!corpus.has_domain(domain)) throw DataError("the corpus " + data.corpus + " has no domain \"" + domain + "\"");
  const auto tokenizer = open_tokenizer(data.tokenizer, corpus, data.train);
  std::vector<std::shared_ptr<const TokenStore>> stores;
  for (const std::string& domain : data.train) stores.push_back(TokenStore::open(corpus, domain, Split::train, *tokenizer));
  BatchSource source(std::move(stores), data.sequence_length, static_cast<uint64_t>(config.training.seed), true, {},
                     parse_packing(data.packing));
  std::vector<int32_t> tokens(static_cast<size_t>(data.sequence_length)), targets(tokens.size());
  source.next(1, tokens, targets);
  const auto read = std::find(targets.begin(), targets.end(), kNoTarget) - targets.begin();  // what is behind is padding
  tokens.resize(static_cast<size_t>(std::min<int64_t>(read, most_tokens)));
  QStringList documents;
  for (auto begin = tokens.begin(); begin != tokens.end();) {
    const auto end = std::find(begin, tokens.end(), tokenizer->end_of_text());
    documents << QString::fromStdString(tokenizer->decode({begin, end}));
    if (end != tokens.end()) documents << QString();
    begin = end == tokens.end() ? end : end + 1;
  }
  return documents;
}

}  // namespace

FirstBatch::FirstBatch(QWidget* parent)
    : QWidget(parent), note_(new QLabel(this)), read_(new QPushButton(tr("Preview batch"), this)), text_(new QTextEdit(this)) {
  auto* title = new QLabel(tr("<b>First sequence, decoded</b>"), this);
  note_->setText(tr("the tokens that the model is trained on"));
  note_->setForegroundRole(QPalette::PlaceholderText);
  note_->setWordWrap(true);
  read_->setAccessibleName(tr("Preview the first training sequence, decoded"));
  text_->setReadOnly(true);
  text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text_->setAccessibleName(tr("First training sequence"));
  text_->setTabChangesFocus(true);
  auto* head = new QHBoxLayout;
  head->addWidget(title);
  head->addStretch();
  head->addWidget(read_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  column->addLayout(head);
  column->addWidget(note_);
  column->addWidget(text_, 1);
  column->addStretch();
  text_->hide();
  connect(read_, &QPushButton::clicked, this, &FirstBatch::decode);
  read_->hide();
  pool_.setMaxThreadCount(1);
  findCorpora();
}

FirstBatch::~FirstBatch() {
  ++wish_;
  wait_for(pool_);
}

void FirstBatch::findCorpora() {
  start_in(pool_, [this] {
    std::vector<CorpusSummary> found;
    QString problem;
    try {
      found = list_corpora();
    } catch (const std::exception& error) {
      problem = QString::fromUtf8(error.what());
    }
    hand_over(this, [this, found, problem] {
      corpora_ = found;
      known_ = true;
      if (!problem.isEmpty()) note_->setText(problem);
      Q_EMIT corporaKnown(corpora_);
      offer();
    });
  });
}

void FirstBatch::setConfig(const RunConfig& config) {
  const auto same = [&](const DataConfig& a, const DataConfig& b) {
    return a.corpus == b.corpus && a.train == b.train && a.tokenizer == b.tokenizer && a.sequence_length == b.sequence_length &&
           a.packing == b.packing && a.task == b.task;
  };
  const bool unchanged =
      same(config.data, config_.data) && config.training.seed == config_.training.seed && !text_->toPlainText().isEmpty();
  config_ = config;
  if (!unchanged && known_) offer();
}

/// Reads at once what is there and small; offers a button for what takes long; says so when there is no such text yet.
void FirstBatch::offer() {
  ++wish_;
  text_->clear();
  text_->hide();
  if (!config_.data.task.empty()) return decode();
  const auto corpus = std::find_if(corpora_.begin(), corpora_.end(), [&](const CorpusSummary& c) { return c.name == config_.data.corpus; });
  const bool present = corpus != corpora_.end() && corpus->present;
  read_->setVisible(present || (corpus != corpora_.end() && corpus->built_in));
  if (present && config_.data.tokenizer == "bytes" && training_bytes(*corpus, config_.data.train) <= quickly_read) return decode();
  note_->setText(present                    ? tr("not shown yet: the text must be tokenized first")
                 : corpus == corpora_.end() ? tr("there is no corpus of this name; import it with `saccade corpus import`")
                                            : tr("this corpus is built on first use"));
}

void FirstBatch::decode() {
  read_->hide();
  note_->setText(tr("reading …"));
  start_in(pool_, [this, config = config_, wish = wish_.load()] {
    if (wish != wish_) return;
    QStringList pieces;
    QString problem;
    try {
      pieces = first_sequence(config);
    } catch (const std::exception& error) {
      problem = QString::fromUtf8(error.what());
    }
    hand_over(this, [this, wish, pieces, problem] {
      if (wish != wish_) return;
      note_->setText(problem.isEmpty() ? tr("the tokens that the model is trained on") : problem);
      showPieces(pieces);
    });
  });
}

void FirstBatch::showPieces(const QStringList& pieces) {
  QTextCharFormat plain, mark;
  QColor ground = palette().color(QPalette::Highlight);
  ground.setAlphaF(0.3f);
  mark.setBackground(ground);
  text_->setVisible(!pieces.isEmpty());
  text_->clear();
  QTextCursor cursor(text_->document());
  for (const QString& piece : pieces) cursor.insertText(piece.isEmpty() ? tr("(end)") : piece, piece.isEmpty() ? mark : plain);
  text_->moveCursor(QTextCursor::Start);
}

}  // namespace saccade::ui
