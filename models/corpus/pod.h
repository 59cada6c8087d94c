#pragma once
#include <string>
#include <string_view>

namespace saccade {

/// The documentation in a Perl file (perlpod), as readable plain text.
std::string pod_to_text(std::string_view file);
/// The code of a Perl file: without documentation and without what follows __END__ or __DATA__.
std::string perl_code(std::string_view file);

}  // namespace saccade
