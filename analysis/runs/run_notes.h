#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace saccade {

/// What people keep beside a run, in RUN/notes.json: no part of what was measured.
struct RunNotes {
  bool starred = false;
  std::vector<std::string> tags;
  std::string note;
  bool operator==(const RunNotes&) const = default;
};

/// Empty where there is no such file. Throws DataError on one that cannot be read.
RunNotes read_notes(const std::filesystem::path& directory);
/// Throws DataError; what is there and cannot be read is not overwritten.
void write_notes(const std::filesystem::path& directory, const RunNotes& notes);

/// "a, b" ↔ {"a", "b"}: without empty ones and repetitions.
std::vector<std::string> tags_in(const std::string& text);
std::string tags_text(const std::vector<std::string>& tags);

}  // namespace saccade
