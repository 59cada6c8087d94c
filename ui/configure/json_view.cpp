#include "ui/configure/json_view.h"

#include <QVBoxLayout>

#include "kernels/engine/error.h"
#include "models/config/old_names.h"
#include "models/config_text.h"
#include "ui/configure/json_position.h"
#include "ui/configure/json_text.h"
#include "ui/configure/problem_label.h"

namespace saccade::ui {

JsonView::JsonView(QWidget* parent) : QWidget(parent), text_(new JsonText(this)), problem_(new ProblemLabel(this)) {
  text_->setAccessibleName(tr("Config as JSON"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(text_, 1);
  column->addWidget(problem_);
  connect(text_, &QPlainTextEdit::textChanged, this, &JsonView::read);
}

void JsonView::setConfig(const nlohmann::json& config) {
  const QByteArray now = text_->toPlainText().toUtf8();
  if (nlohmann::json::parse(now.begin(), now.end(), nullptr, false) == config) return;
  writing_ = true;
  text_->setPlainText(QString::fromStdString(config.dump(2)));
  writing_ = false;
}

void JsonView::setProblem(const QString& problem) {
  problem_->say(problem);
  const std::string text = text_->toPlainText().toStdString();
  const auto at = problem.isEmpty() ? std::nullopt : fault_position(text, problem.toStdString());
  text_->markFault(at ? static_cast<int>(QString::fromStdString(text.substr(0, *at)).size()) : -1, problem);
}

void JsonView::read() {
  if (writing_) return;
  try {
    nlohmann::json config = parse_json_text(text_->toPlainText().toStdString(), tr("config").toStdString());
    rename_settings(config);
    Q_EMIT edited(config);
  } catch (const Error& error) {
    Q_EMIT malformed(QString::fromUtf8(error.what()));
  }
}

}  // namespace saccade::ui
