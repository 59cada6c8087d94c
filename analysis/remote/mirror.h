#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "analysis/remote/channel.h"
#include "analysis/remote/host_profile.h"
#include "analysis/remote/run_listing.h"
#include "analysis/runs/run_origin.h"

namespace saccade {

/// The runs and studies of a host as ordinary run directories of this machine, RUNS/HOST/…, which everything that reads runs reads without
/// knowing. Nothing but them says how far a mirror is, so that whatever ends this process is made up for by the next one: a journal goes on
/// behind the bytes that are there, of which the hash is compared, and a larger file behind the pieces of it. Checkpoints come when they
/// are asked for. What is removed on the host stays here.
class Mirror {
 public:
  /// Throws DataError where the folder holds something else.
  Mirror(std::string host, HostProfile profile);
  const std::filesystem::path& root() const { return root_; }

  /// Whether this process is the one that keeps the mirror from now on: there is only one.
  bool keep();

  /// A channel stands (again): what the agent tells from now on is all there is.
  void connected(const Channel& channel);
  void offline(const std::string& why);
  /// Heard of now; written every few seconds.
  void note_seen();

  /// Journals, run.json, studies: all that is new there. The number of runs with news. Throws ChannelLost, RemoteError, DataError.
  int64_t update(Channel& channel);
  /// A piece of what comes by itself besides (captures, results.h5, whole hashes of journals that have ended); false when nothing is
  /// missing.
  bool fetch_some(Channel& channel);
  /// One file whole, now: "first/captures/step-5.h5". Throws DataError where the host has none.
  void fetch(Channel& channel, const std::string& file);
  /// Names of files of a run on the host: "captures/step-5.h5".
  std::vector<std::string> files_of(const std::string& run) const;

  int64_t runs() const;  ///< on the host, as of the last update

 private:
  struct Growing {
    std::string file;
    int64_t have = 0;
    bool done = false, anew = false;  ///< anew: from its beginning, whatever is here
  };
  void read_small(Channel& channel, const std::vector<std::string>& files, std::map<std::string, std::string>& texts) const;
  void read_growing(Channel& channel, std::vector<Growing> files) const;
  nlohmann::json piece_of(const Growing& file) const;
  void take_piece(Growing& file, const nlohmann::json& piece, std::string_view bytes) const;
  void put_infos(const std::map<std::string, std::string>& texts);
  void put_origin(const std::string& run, bool before_info);
  bool fetch_piece(Channel& channel, const std::string& file);
  bool is_same(Channel& channel, const std::string& file, const std::string& version);
  void queue_files(const std::string& run);
  bool check_ended(Channel& channel);
  std::filesystem::path local(const std::string& file) const { return root_ / file; }

  std::string host_;
  HostProfile profile_;
  std::filesystem::path root_;
  MirrorState state_;
  RunListing listing_;
  std::map<std::string, std::string> versions_;  ///< of the small files that are here, as far as this process knows
  std::set<std::string> unfinished_;             ///< runs whose news have not all come
  std::deque<std::string> wanted_, ended_;       ///< files to come by themselves; runs whose journals are to be compared
  double seen_ = 0;
  Descriptor lock_;
};

/// RUNS/HOST
std::filesystem::path mirror_folder(const std::string& host);

}  // namespace saccade
