#pragma once
#include <QWidget>

#include "models/json.h"

namespace saccade::ui {

class JsonText;
class ProblemLabel;

/// The config as text, for those who would rather write it. The line of a mistake is marked, and what is wrong stands below.
class JsonView : public QWidget {
  Q_OBJECT
 public:
  explicit JsonView(QWidget* parent = nullptr);
  void setConfig(const nlohmann::json& config);
  void setProblem(const QString& problem);

 Q_SIGNALS:
  void edited(const nlohmann::json& config);  ///< whenever the text is well-formed
  void malformed(const QString& why);

 private:
  void read();

  JsonText* text_;
  ProblemLabel* problem_;
  bool writing_ = false;
};

}  // namespace saccade::ui
