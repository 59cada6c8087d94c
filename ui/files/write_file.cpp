#include "ui/files/write_file.h"

#include <filesystem>

#include "analysis/runs/files.h"

namespace saccade::ui {

bool writeFile(const QString& path, const QByteArray& content, QString* reason) {
  try {
    const std::filesystem::path absolute = std::filesystem::absolute(path.toStdString());
    if (!absolute.has_filename() || std::filesystem::is_directory(absolute)) {
      if (reason) *reason = QStringLiteral("cannot write %1: it is a folder").arg(path);
      return false;
    }
    replace_text(absolute, {content.constData(), static_cast<size_t>(content.size())}, 0666);
    return true;
  } catch (const std::exception& error) {
    if (reason) *reason = QString::fromUtf8(error.what());
    return false;
  }
}

}  // namespace saccade::ui
