#pragma once
#include <optional>
#include <string>
#include <vector>

namespace saccade::ui {

/// What may be pointers ("/training/steps") in a message, in their order; longer than 2000 bytes none is.
std::vector<std::string> pointers_in(const std::string& message);

/// Where in well-formed JSON text the value of a pointer ("/training/steps") begins, or its key where it is a member; nothing where there
/// is none.
std::optional<size_t> json_position(const std::string& text, const std::string& pointer);

/// Where in the text the fault is that a message tells of: "config:3:7: …" by its line and column, else the first pointer in it that the
/// text has, else the nearest parent of one. Nothing where it names no place.
std::optional<size_t> fault_position(const std::string& text, const std::string& message);

}  // namespace saccade::ui
