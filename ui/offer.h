#pragma once
#include <QString>
#include <functional>

namespace saccade::ui {

/// What a message proposes to do next: the words of its button, and what that does. Whatever `act` refers to lives as long as the window.
struct Offer {
  QString text;
  std::function<void()> act;
};

}  // namespace saccade::ui
