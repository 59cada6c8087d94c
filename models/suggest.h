#pragma once
#include <string>
#include <vector>

namespace saccade {

/// The name that a person most likely meant by `word`: fewest edits (insert, delete, replace, swap of neighbours),
/// empty when none is near.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

/// "; did you mean \"steps\"?" when a name is near, else "; expected a, b or c".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

/// "a, b or c"
std::string alternatives(const std::vector<std::string>& names);

/// Adds words to a title, with a space between; nothing when there are none.
void add_words(std::string& title, const std::string& words);

}  // namespace saccade
