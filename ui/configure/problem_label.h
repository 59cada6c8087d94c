#pragma once
#include <QEvent>
#include <QLabel>

#include "ui/theme.h"

namespace saccade::ui {

/// Says in the colour of errors what is wrong; hidden while nothing is. As a note it says in second rank what there is.
class ProblemLabel : public QLabel {
 public:
  explicit ProblemLabel(QWidget* parent) : QLabel(parent) {
    setWordWrap(true);
    hide();
  }
  void say(const QString& problem) { show_text(problem, true); }
  void note(const QString& note) { show_text(note, false); }

 protected:
  void changeEvent(QEvent* event) override {
    QLabel::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && wrong_) colour();
  }

 private:
  void show_text(const QString& text, bool wrong) {
    wrong_ = wrong;
    setForegroundRole(wrong ? QPalette::WindowText : QPalette::PlaceholderText);
    colour();
    setText(text);
    setVisible(!text.isEmpty());
  }
  /// Another one on a dark ground.
  void colour() {
    QPalette colours = parentWidget()->palette();
    if (wrong_) colours.setColor(QPalette::WindowText, errorColour(colours));
    if (palette() != colours) setPalette(colours);
  }

  bool wrong_ = true;
};

}  // namespace saccade::ui
