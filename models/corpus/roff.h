#pragma once
#include <string>
#include <string_view>

namespace saccade {

/// A manual page (man or mdoc macros) as readable plain text: headings, paragraphs on one line each, examples as they stand.
/// Tables, equations and macro definitions are left out.
std::string roff_to_text(std::string_view page);

}  // namespace saccade
