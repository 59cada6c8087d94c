#pragma once
#include <cstdint>
#include <string>

#include "analysis/remote/frame.h"
#include "analysis/remote/served_folder.h"
#include "models/json.h"

namespace saccade {

/// A hash of the first `size` bytes of a file that only grows: SHA-256 of the first 4 KiB of them and the last 64 KiB, so that asking it of
/// a long journal costs nothing. Of journals, whose every record has its own number, times and CRC, two that agree there are the same as
/// far as runs can make them; the whole is compared once when the run has ended. Empty where the file is shorter. Throws DataError.
std::string prefix_hash(const Descriptor& file, int64_t size);

/// SHA-256 of a whole file, as hexadecimal digits. Throws DataError.
std::string whole_hash(const Descriptor& file);

/// Answers {"pieces": [{"file", "from", "prefix"}]}: what stands behind `from` in each file. The answer has for each {"file", "from",
/// "size", "total"}, in this order, whose bytes follow each other in its body. With a "prefix" that is not (any more) that of the file, the
/// bytes are those from 0 on. What has no room comes with size 0 and is asked for again; a file that is not there has "problem".
Frame read_pieces(const ServedFolder& folder, const nlohmann::json& request);

}  // namespace saccade
