#include "analysis/remote/mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "analysis/remote/file_pieces.h"
#include "analysis/remote/run_listing.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "kernels/engine/clock.h"
#include "models/corpus/corpus.h"
#include "models/corpus/file_mark.h"
#include "models/corpus/sha256.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kBetweenSeen = 5;
constexpr size_t kFilesAtATime = 200;
constexpr const char* kJournal = "journal.jsonl";

int64_t size_of(const fs::path& file) {
  struct stat state {};
  return ::stat(file.c_str(), &state) == 0 ? state.st_size : 0;
}

/// "1.2" of "journal.jsonl" of an entry; empty where there is none.
std::string version_of(const Json& entry, const std::string& file) {
  const Json& files = entry.at("files");
  return files.contains(file) ? files.at(file).at(1).get<std::string>() + "." + std::to_string(files.at(file).at(0).get<int64_t>()) : "";
}

/// Where pieces of a file gather until it is whole. Their version is in the name: of another one they are of no use.
fs::path part_file(const fs::path& file, const std::string& version) {
  return file.parent_path() / ("." + file.filename().string() + "." + hex(sha256(version)).substr(0, 16) + ".part");
}

void remove_other_parts(const fs::path& file, const fs::path& kept) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("." + file.filename().string() + ".") && name.ends_with(".part") && entry.path() != kept)
      remove_run_file(entry.path());
  }
}

/// Folders of runs, those of their runs and branches among them.
void make_folder(const fs::path& root, const std::string& name) {
  fs::path at = root;
  for (const std::string& part : name_parts(name)) make_run_folder(at /= part);
}

/// In one instant, but not synced: what a power cut takes comes anew.
void put_text(const fs::path& file, const std::string& text) {
  const fs::path aside = file.parent_path() / ("." + file.filename().string() + ".part");
  const Descriptor written = open_run_file(aside, O_WRONLY | O_CREAT | O_TRUNC);
  if (!write_all(written.get(), text)) throw_file_error("write", aside);
  fs::rename(aside, file);
}

/// The run or study that a file is of.
std::string run_of(const std::string& file) {
  const fs::path parent = fs::path(file).parent_path(), kind = parent.filename();
  return (kind == kCaptures || kind == kCheckpoints || kind == kEvaluations || kind == kTaskResults ? parent.parent_path() : parent)
      .string();
}

bool is_text(const std::string& name) { return name == "run.json" || name == "study.json" || name == "state.json"; }
bool comes_by_itself(const Json& entry, const std::string& name) {
  return name.starts_with("captures/") || name.starts_with("evaluations/") ||
         (name == "results.h5" && entry.at("live").is_null());  // a live run's is written again and again
}

}  // namespace

fs::path mirror_folder(const std::string& host) { return runs_folder() / host; }

Mirror::Mirror(std::string host, HostProfile profile) : host_(std::move(host)), profile_(std::move(profile)), root_(mirror_folder(host_)) {
  std::error_code none;
  const std::optional<MirrorState> before = read_mirror(root_);
  if (!before && fs::exists(root_, none) && !fs::is_empty(root_, none))
    throw DataError(root_.string() + " holds something else than the runs of the host " + host_ + "; rename one of them");
  make_folders_above(root_);
  make_run_folder(root_);
  state_ = before.value_or(MirrorState{root_, host_, "", false, "", ""});
  state_.root = root_, state_.host = host_;
  write_mirror(state_);
}

bool Mirror::keep() {
  if (!lock_) lock_ = open_run_file(root_ / "lock", O_RDWR | O_CREAT);
  return mark_file(lock_.get(), false) != FileMark::anothers;  // without locks nobody knows of the others, and pieces are compared by hash
}

void Mirror::connected(const Channel& channel) {
  const Json folders = channel.agent().value("folders", Json::array());
  const std::string served = folders.is_array() && !folders.empty() && folders[0].is_string() ? folders[0].get<std::string>() : "";
  listing_.clear(), wanted_.clear(), ended_.clear(), unfinished_.clear();
  state_.folder = served, state_.connected = true, state_.problem = "";
  seen_ = 0;
  note_seen();
}

void Mirror::offline(const std::string& why) {
  state_.connected = false, state_.problem = why;
  write_mirror(state_);
}

void Mirror::note_seen() {
  if (seen_ != 0 && now() - seen_ < kBetweenSeen) return;
  seen_ = now();
  state_.seen = utc_now();
  write_mirror(state_);
}

int64_t Mirror::runs() const {
  return std::count_if(listing_.begin(), listing_.end(), [](const auto& each) { return each.second.at("kind") == "run"; });
}

std::vector<std::string> Mirror::files_of(const std::string& run) const {
  std::vector<std::string> names;
  if (const auto entry = listing_.find(run); entry != listing_.end())
    for (const auto& [name, about] : entry->second.at("files").items()) names.push_back(name);
  return names;
}

/// What a host says of its files is checked as what a request says is: nothing but the mirror is written.
int64_t Mirror::update(Channel& channel) try {
  const Frame answer = channel.ask({{"ask", "runs"}, {"changes", true}});
  const Json changes = Json::parse(answer.body, nullptr, false);
  if (!changes.is_object()) throw ChannelLost("the agent lists its runs in a way that cannot be read");
  for (const auto& [name, entry] : changes.at("folders").items()) {
    make_folder(root_, name);
    for (const auto& [file, about] : entry.at("files").items()) static_cast<void>(name_parts(file));
    listing_[name] = entry;
    unfinished_.insert(name);
  }
  for (const Json& name : changes.at("gone")) {
    const std::string run = name;
    if (const auto found = listing_.find(run); found != listing_.end()) found->second["live"] = nullptr, put_origin(run, false);
    listing_.erase(run), unfinished_.erase(run);
  }
  std::vector<std::string> small;
  std::vector<Growing> growing;
  for (const std::string& name : unfinished_)
    for (const std::string& file : files_of(name)) {
      if (is_text(file) && versions_[name + "/" + file] != version_of(listing_.at(name), file)) small.push_back(name + "/" + file);
      if (file == kJournal || file == "log.txt") growing.push_back({name + "/" + file});
    }
  // run.json before the journal, so that it tells of no record that is not there yet; put in its place behind it.
  std::map<std::string, std::string> texts;
  read_small(channel, small, texts);
  for (const std::string& name : unfinished_) put_origin(name, true);
  read_growing(channel, growing);
  put_infos(texts);
  for (const std::string& name : unfinished_) put_origin(name, false), queue_files(name);
  const auto count = static_cast<int64_t>(unfinished_.size());
  unfinished_.clear();
  note_seen();
  return count;
} catch (const Json::exception&) {
  throw ChannelLost("the agent answers something that cannot be read");
}

void Mirror::read_small(Channel& channel, const std::vector<std::string>& files, std::map<std::string, std::string>& texts) const {
  for (size_t at = 0; at < files.size();) {
    Json pieces = Json::array();
    const size_t end = std::min(files.size(), at + kFilesAtATime);
    for (size_t i = at; i < end; ++i) pieces.push_back({{"file", files[i]}, {"from", 0}});
    const Frame answer = channel.ask({{"ask", "read"}, {"pieces", pieces}});
    size_t from = 0;
    const size_t before = at;
    for (const Json& piece : answer.head.at("pieces")) {
      const size_t size = piece.value("size", size_t{0});
      const bool whole = piece.contains("problem") || size == piece.value("total", size_t{0});
      if (!whole) break;  // no room for all of it: asked for again, as the first
      if (!piece.contains("problem")) texts[files[at]] = answer.body.substr(std::min(from, answer.body.size()), size);
      from += size, ++at;
    }
    if (at == before) ++at;  // larger than an answer: no file that runs have
  }
}

Json Mirror::piece_of(const Growing& file) const {
  if (file.anew) return {{"file", file.file}, {"from", 1}, {"prefix", "another"}};
  const Descriptor here = open_run_file_if_there(local(file.file), O_RDONLY);
  const std::string prefix = here && file.have > 0 ? prefix_hash(here, file.have) : "";
  return {{"file", file.file}, {"from", file.have}, {"prefix", prefix}};
}

void Mirror::take_piece(Growing& file, const Json& piece, std::string_view bytes) const {
  if (piece.contains("problem")) {
    file.done = true;
    return;
  }
  const auto from = piece.at("from").get<int64_t>();
  const Descriptor here = open_run_file(local(file.file), O_RDWR | O_CREAT);
  if (from != file.have && from != 0) throw ChannelLost("the agent sends another piece than was asked for");
  if (from < size_of(local(file.file)) && ::ftruncate(here.get(), from) != 0) throw_file_error("shorten", local(file.file));
  if (::lseek(here.get(), from, SEEK_SET) < 0 || !write_all(here.get(), bytes)) throw_file_error("write", local(file.file));
  file.anew = false;
  file.have = from + static_cast<int64_t>(bytes.size());
  file.done = file.have >= piece.at("total").get<int64_t>();
}

/// In turns, until each is as long as it was on the host.
void Mirror::read_growing(Channel& channel, std::vector<Growing> files) const {
  for (Growing& file : files) file.have = size_of(local(file.file));
  while (!files.empty()) {
    Json pieces = Json::array();
    const size_t count = std::min(files.size(), kFilesAtATime);
    for (size_t i = 0; i < count; ++i) pieces.push_back(piece_of(files[i]));
    const Frame answer = channel.ask({{"ask", "read"}, {"pieces", pieces}});
    size_t from = 0;
    for (size_t i = 0; i < count && i < answer.head.at("pieces").size(); ++i) {
      const Json& piece = answer.head.at("pieces")[i];
      const size_t size = piece.value("size", size_t{0});
      if (from + size > answer.body.size()) throw ChannelLost("the agent sends fewer bytes than it says");
      take_piece(files[i], piece, std::string_view(answer.body).substr(from, size));
      from += size;
    }
    std::erase_if(files, [](const Growing& file) { return file.done; });
  }
}

void Mirror::put_infos(const std::map<std::string, std::string>& texts) {
  for (const auto& [file, text] : texts) {
    put_text(local(file), text);
    versions_[file] = version_of(listing_.at(run_of(file)), fs::path(file).filename().string());
  }
}

/// A run that is at work is said to be so before its run.json comes; one that has ended, behind it.
void Mirror::put_origin(const std::string& run, bool before_info) {
  const Json& entry = listing_.at(run);
  const Json& live = entry.at("live");
  if (entry.at("kind") != "run" || live.is_null() == before_info) return;
  std::optional<RunOrigin> before;
  try {
    before = read_run_origin(local(run));
  } catch (const DataError&) {  // written anew
  }
  RunOrigin origin{host_, run, {}, {}, before ? before->checked : ""};
  for (const auto& [name, about] : entry.at("files").items())
    if (name.starts_with("checkpoints/step-")) origin.checkpoints.push_back(std::atoll(name.c_str() + 17));
  std::sort(origin.checkpoints.begin(), origin.checkpoints.end());
  if (!live.is_null()) origin.live = LockHolder{live.at("process"), live.at("host")};
  if (before != origin) put_text(local(run) / kOriginFile, run_origin_text(origin));
}

void Mirror::queue_files(const std::string& run) {
  const Json& entry = listing_.at(run);
  if (entry.at("live").is_null() && entry.at("files").contains(kJournal)) ended_.push_back(run);
  if (profile_.files != "all") return;
  for (const std::string& name : files_of(run)) {
    const std::string file = run + "/" + name;
    std::error_code none;  // an evaluation that an earlier process has fetched is compared when a report asks for it
    if (name.starts_with("evaluations/") && !versions_.contains(file) && fs::exists(local(file), none)) continue;
    if (comes_by_itself(entry, name) && std::find(wanted_.begin(), wanted_.end(), file) == wanted_.end()) wanted_.push_back(file);
  }
}

bool Mirror::fetch_some(Channel& channel) {
  while (!wanted_.empty()) {
    const std::string file = wanted_.front();
    if (fetch_piece(channel, file)) return true;
    wanted_.pop_front();
  }
  return check_ended(channel);
}

/// The whole journal of a run that has ended is compared once: the prefix's hash is not one of all its bytes.
bool Mirror::check_ended(Channel& channel) {
  if (ended_.empty()) return false;
  const std::string run = ended_.front(), journal = run + "/" + kJournal;
  ended_.pop_front();
  const auto entry = listing_.find(run);
  std::optional<RunOrigin> origin = read_run_origin(local(run));
  if (entry == listing_.end() || !origin || origin->checked == version_of(entry->second, kJournal)) return true;
  const std::string there = channel.ask({{"ask", "hash"}, {"file", journal}}).head.value("sha256", "");
  if (whole_hash(open_run_file(local(journal), O_RDONLY)) != there) {
    read_growing(channel, {{.file = journal, .anew = true}});
  }
  origin->checked = version_of(entry->second, kJournal);
  put_text(local(run) / kOriginFile, run_origin_text(*origin));
  return true;
}

/// Whether a file that is here is the one there. What has its step in its name is written once; what earlier processes fetched is compared.
bool Mirror::is_same(Channel& channel, const std::string& file, const std::string& version) {
  if (fs::path(file).filename().string().starts_with("step-") || versions_[file] == version) return true;
  const std::string there = channel.ask({{"ask", "hash"}, {"file", file}}).head.value("sha256", "");
  if (whole_hash(open_run_file(local(file), O_RDONLY)) != there) return false;
  versions_[file] = version;
  return true;
}

/// False when the file is here, or is no longer there.
bool Mirror::fetch_piece(Channel& channel, const std::string& file) {
  const std::string run = run_of(file), name = fs::path(file).lexically_relative(run).string();
  const auto entry = listing_.find(run);
  if (entry == listing_.end() || !entry->second.at("files").contains(name)) return false;
  const std::string version = version_of(entry->second, name);
  const auto total = entry->second.at("files").at(name).at(0).get<int64_t>();
  std::error_code none;
  if (fs::exists(local(file), none) && is_same(channel, file, version)) return false;
  make_folder(root_, fs::path(file).parent_path().string());
  const fs::path part = part_file(local(file), version);
  remove_other_parts(local(file), part);
  const Descriptor here = open_run_file(part, O_RDWR | O_CREAT);
  if (mark_file(here.get(), true) == FileMark::anothers) throw_file_error("lock", part);  // another process fetches it, too
  if (fs::exists(local(file), none) && !fs::exists(part, none)) return false;
  const int64_t have = size_of(part);
  if (have < total) {
    const Frame answer =
        channel.ask({{"ask", "read"}, {"pieces", {{{"file", file}, {"from", have}, {"prefix", have > 0 ? prefix_hash(here, have) : ""}}}}});
    const Json& piece = answer.head.at("pieces").at(0);
    if (piece.contains("problem")) return false;
    const auto from = piece.at("from").get<int64_t>();
    if (::ftruncate(here.get(), from) != 0 || ::lseek(here.get(), from, SEEK_SET) < 0 || !write_all(here.get(), answer.body))
      throw_file_error("write", part);
    if (from + static_cast<int64_t>(answer.body.size()) < total) return true;
  }
  const bool same = whole_hash(here) == channel.ask({{"ask", "hash"}, {"file", file}}).head.value("sha256", "");
  if (!same || ::fsync(here.get()) != 0) return remove_run_file(part), false;  // it was replaced meanwhile, which the next listing tells
  fs::rename(part, local(file));
  versions_[file] = version;
  return false;
}

void Mirror::fetch(Channel& channel, const std::string& file) {
  static_cast<void>(name_parts(file));
  if (listing_.empty()) {  // not told yet, and not to be: the changes are for whoever keeps the mirror
    const Json all = Json::parse(channel.ask({{"ask", "runs"}}).body, nullptr, false);
    if (!all.is_object()) throw ChannelLost("the agent lists its runs in a way that cannot be read");
    for (const auto& [name, entry] : all.at("folders").items()) listing_[name] = entry;
  }
  while (fetch_piece(channel, file)) {
  }
  std::error_code none;
  if (!fs::exists(local(file), none)) throw DataError(host_ + " has no " + file + ", or it was replaced meanwhile");
}

}  // namespace saccade
