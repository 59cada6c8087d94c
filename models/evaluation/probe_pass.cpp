#include "models/evaluation/probe_pass.h"

#include <algorithm>

#include "kernels/engine/transfer.h"
#include "models/evaluation/evaluation_pass.h"

namespace saccade {
namespace {

/// Where a probe's reports go as long as it lives.
class ReportingTo {
 public:
  ReportingTo(ProbeRecord& probe, LateReports& reports) : probe_(probe) { probe.reports = &reports; }
  ~ReportingTo() { probe_.reports = nullptr; }
  ReportingTo(const ReportingTo&) = delete;
  ReportingTo& operator=(const ReportingTo&) = delete;

 private:
  ProbeRecord& probe_;
};

}  // namespace

ProbePass::ProbePass(const Model& model, Arena& arena, std::function<void(Tape&)> prepare)
    : model_(model), arena_(arena), prepare_(std::move(prepare)) {
  if (arena.device().is_cuda()) copies_.emplace(arena.device(), kMostLateBytes);
}

void ProbePass::reserve(int64_t bytes) {
  if (copies_) copies_->reserve(std::min(bytes, kMostLateBytes));
}

void ProbePass::run(const FrozenBatch& batch, Probe& probe) {
  check_batch(batch, model_.output_weight().dim(0));
  const Tensor tokens = arena_.allocate({batch.sequences, batch.length}, DType::i32);
  copy_from_host(tokens, batch.tokens.data());
  Tape tape(arena_, false);
  prepare_(tape);
  model_.hidden(tape, tokens, &probe);
}

LateReports ProbePass::run_later(const FrozenBatch& batch, ProbeRecord& probe) {
  if (!copies_) return run(batch, probe), LateReports();
  LateReports reports(*copies_);
  const ReportingTo reporting(probe, reports);
  run(batch, probe);
  reports.end_pass();
  return reports;
}

}  // namespace saccade
