#include "ui/inspect/capture_loader.h"

#include <QCoreApplication>
#include <QThreadPool>
#include <filesystem>

#include "analysis/runs/capture_file.h"
#include "analysis/runs/run_info.h"

namespace saccade::ui {

namespace {

std::shared_ptr<const LoadedCaptures> read(const QString& directory, int64_t step) {
  auto loaded = std::make_shared<LoadedCaptures>();
  loaded->directory = directory;
  loaded->step = step;
  loaded->samples = read_captures(step_file(std::filesystem::path(directory.toStdString()), kCaptures, step));
  for (const Capture& sample : loaded->samples) loaded->heads.push_back(head_scores(sample));
  return loaded;
}

}  // namespace

CaptureLoader::CaptureLoader(QObject* parent) : QObject(parent), latest_(std::make_shared<std::atomic<int>>(0)) {}

CaptureLoader::~CaptureLoader() { cancel(); }

void CaptureLoader::cancel() { *latest_ = ++request_; }

void CaptureLoader::load(const QString& directory, int64_t step) {
  const int request = ++request_;
  *latest_ = request;
  QThreadPool::globalInstance()->start([this, request, latest = latest_, directory, step] {
    if (*latest != request) return;  // superseded while it waited
    std::shared_ptr<const LoadedCaptures> captures;
    QString reason;
    try {
      captures = read(directory, step);
    } catch (const std::exception& error) {
      reason = QString::fromUtf8(error.what());
    }
    // Answered in the window's thread, where the loader can only go between events; after its end `latest` differs.
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [this, request, latest, captures, reason] {
          if (*latest != request) return;
          if (captures)
            Q_EMIT loaded(captures);
          else
            Q_EMIT failed(reason);
        },
        Qt::QueuedConnection);
  });
}

}  // namespace saccade::ui
