#include "ui/place.h"

#include <QSettings>

namespace saccade::ui {

Place::Place(QObject* parent) : QObject(parent) {
  save_.setSingleShot(true);
  save_.setInterval(500);  // typing is not written letter by letter
  connect(&save_, &QTimer::timeout, this, [this] {
    if (settings_) settings_->sync();
  });
}

QVariant Place::value(const char* key) const {
  const QString name = QLatin1String(key);
  if (const auto known = values_.constFind(name); known != values_.constEnd()) return *known;
  return settings_ ? settings_->value(QStringLiteral("place/") + name) : QVariant();
}

void Place::set(const char* key, const QVariant& value) {
  const QString name = QLatin1String(key);
  if (values_.contains(name) && values_.value(name) == value) return;
  values_.insert(name, value);
  if (!settings_) return;
  settings_->setValue(QStringLiteral("place/") + name, value);
  if (!save_.isActive()) save_.start();
}

}  // namespace saccade::ui
