#include "ui/inspect/capture_loader.h"

#include <QCoreApplication>
#include <QThreadPool>
#include <algorithm>
#include <filesystem>

#include "analysis/inspection/symbol_answers.h"
#include "analysis/runs/capture_file.h"
#include "analysis/runs/run_info.h"
#include "ui/threads/hand_over.h"

namespace saccade::ui {

namespace {

std::filesystem::path file_of(const LoadedCaptures& captures) {
  return step_file(std::filesystem::path(captures.directory.toStdString()), kCaptures, captures.step);
}

bool stays_in_file(const Capture& sample) {
  return std::any_of(sample.maps.begin(), sample.maps.end(), [](const CapturedMap& map) { return map.values.empty(); });
}

std::shared_ptr<const LoadedCaptures> read(const QString& directory, int64_t step) {
  auto loaded = std::make_shared<LoadedCaptures>();
  loaded->directory = directory;
  loaded->step = step;
  loaded->samples = open_captures(file_of(*loaded));
  const std::string task = training_task(read_run_info(directory.toStdString()));
  for (const Capture& sample : loaded->samples) loaded->answers.push_back(answers_of(sample, task));
  if (std::none_of(loaded->samples.begin(), loaded->samples.end(), stays_in_file))
    for (const Capture& sample : loaded->samples) loaded->heads.push_back(head_lists(sample));
  return loaded;
}

}  // namespace

HeadLists head_lists(const Capture& sample, const std::function<bool()>& cancelled) {
  HeadLists lists{head_scores(sample, cancelled), {}};
  lists.alike = order_of_heads(lists.scores, HeadMeasure::entropy, HeadOrder::similarity);
  return lists;
}

CaptureLoader::CaptureLoader(QObject* parent) : QObject(parent), latest_(std::make_shared<std::atomic<int>>(0)) {}

CaptureLoader::~CaptureLoader() { cancel(); }

void CaptureLoader::cancel() { *latest_ = ++request_; }

void CaptureLoader::load(const QString& directory, int64_t step) {
  const int request = ++request_;
  *latest_ = request;
  start_in(*QThreadPool::globalInstance(), [this, request, latest = latest_, directory, step] {
    if (*latest != request) return;  // superseded while it waited
    std::shared_ptr<const LoadedCaptures> captures;
    QString reason;
    try {
      captures = read(directory, step);
    } catch (const std::exception& error) {
      reason = QString::fromUtf8(error.what());
    }
    // Answered in the window's thread, where the loader can only go between events; after its end `latest` differs.
    hand_over(QCoreApplication::instance(), [this, request, latest, captures, reason] {
      if (*latest != request) return;
      if (captures)
        Q_EMIT loaded(captures);
      else
        Q_EMIT failed(reason);
    });
    if (captures && captures->heads.empty()) score(captures, request, latest);
  });
}

/// In a worker, with a file of its own, so that nobody who looks at a map waits for it.
void CaptureLoader::score(const std::shared_ptr<const LoadedCaptures>& captures, int request,
                          const std::shared_ptr<std::atomic<int>>& latest) {
  auto heads = std::make_shared<std::vector<HeadLists>>();
  const auto cancelled = [&] { return *latest != request; };
  try {
    for (const Capture& sample : open_captures(file_of(*captures))) {
      heads->push_back(head_lists(sample, cancelled));
      if (cancelled()) return;
    }
  } catch (const std::exception&) {
    return;  // whoever looks at a map is told
  }
  hand_over(QCoreApplication::instance(), [this, request, latest, captures, heads] {
    if (*latest == request) Q_EMIT scored(captures, heads);
  });
}

}  // namespace saccade::ui
