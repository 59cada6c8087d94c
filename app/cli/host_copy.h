#pragma once
#include <filesystem>
#include <string>

namespace saccade::cli {

/// `saccade host copy`: the self-contained bundle (packaging/bundle, a folder or .tar.gz) into a folder of its own on the host, which the
/// profile then starts it from. Earlier ones stay, for runs that are at work. `bundle`: empty for the one that this program is of. Exit
/// code.
int copy_to_host(const std::string& host, const std::filesystem::path& bundle);

}  // namespace saccade::cli
