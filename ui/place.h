#pragma once
#include <QObject>
#include <QTimer>
#include <QVariant>

class QSettings;

namespace saccade::ui {

/// Where one was in the window and what one was doing: kept as it changes, so that whatever ends the window, the next one begins there.
class Place : public QObject {
  Q_OBJECT
 public:
  /// Null settings: kept for this window only.
  explicit Place(QObject* parent = nullptr);
  void setSettings(QSettings* settings) { settings_ = settings; }
  QVariant value(const char* key) const;
  void set(const char* key, const QVariant& value);

 private:
  QSettings* settings_ = nullptr;
  QVariantHash values_;
  QTimer save_;
};

}  // namespace saccade::ui
