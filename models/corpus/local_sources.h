#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace saccade {

/// Where text of one kind lies on a machine, and how a file of it becomes a document.
struct LocalSource {
  std::string domain;
  std::vector<std::string> folders;                             ///< below the root, searched with all they hold
  std::function<bool(const std::filesystem::path&)> accepts;    ///< by name
  std::function<std::string(const std::string& raw)> document;  ///< empty: nothing to keep
  bool spare = false;                                           ///< taken only when the domain's other sources give little
};
std::vector<LocalSource> local_sources();

/// What to do where there is too little of a domain.
std::string local_advice(const std::string& domain);

}  // namespace saccade
