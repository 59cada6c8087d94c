#pragma once
#include <QWidget>
#include <nlohmann/json.hpp>

class QPlainTextEdit;

namespace saccade::ui {

class ProblemLabel;

/// The config as text, for those who would rather write it. Line and column of a mistake stand below.
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

  QPlainTextEdit* text_;
  ProblemLabel* problem_;
  bool writing_ = false;
};

}  // namespace saccade::ui
