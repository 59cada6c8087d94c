#pragma once
#include <QString>

#include "kernels/engine/error.h"

namespace saccade::test {

/// What the Expected that `action` throws says; empty when it throws none.
template <class Expected = Error, class Action>
QString message_of(Action&& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  }
  return {};
}

}  // namespace saccade::test
