#pragma once
#include <QWidget>

#include "models/json.h"

class QLineEdit;
class QFormLayout;

namespace saccade {
struct Setting;
}

namespace saccade::ui {

/// The profile of a host, a field for every setting that it has.
class HostForm : public QWidget {
  Q_OBJECT
 public:
  explicit HostForm(QWidget* parent);

  /// An empty name: a new host, whose name can be written.
  void setHost(const QString& name, const nlohmann::json& profile);
  QString name() const;
  nlohmann::json profile() const;

 Q_SIGNALS:
  void edited();

 private:
  QWidget* makeField(const Setting& setting);

  QFormLayout* rows_;
  QLineEdit* name_;
  QHash<QString, QWidget*> fields_;
};

}  // namespace saccade::ui
