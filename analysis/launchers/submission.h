#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saccade {

/// What sbatch is to be given.
struct SubmissionRequest {
  std::filesystem::path folder;  ///< where submission.json is kept; one submission has one folder
  std::string name;              ///< the beginning of the job's name
  std::vector<std::string> options;
  std::filesystem::path script;
  std::vector<std::string> arguments;  ///< of the script
};

/// FOLDER/submission.json.
struct Submission {
  std::string token;     ///< 16 random hexadecimal digits: in the job's name and comment, whatever else is known of the job
  std::string job_name;  ///< with the token
  std::string job;       ///< its id; empty while it is not known whether sbatch was heard
  std::string command;   ///< as a shell would take it
};
/// Nothing where there is none. Throws DataError for one that is damaged.
std::optional<Submission> read_submission(const std::filesystem::path& folder);

/// The job in what sbatch --parsable says, "4711" or "4711;cluster"; empty where there is none.
std::string job_id_in(const std::string& sbatch_text);

/// Submits once, however often it is called for a folder and however those calls end: submission.json with a random token is written and
/// synced before sbatch is started. After any doubt (an earlier call that did not come to its end, a time-out, a failure, an answer that is
/// no job id) squeue and sacct are asked for the token before sbatch is tried a second time, for so long as sbatch may take to be heard. Of
/// jobs that have the token twice all but the first are cancelled. Returns the job's id. Throws Error with what sbatch says where it
/// refuses, NoAnswer where it stays open whether the job is there: calling again settles it.
std::string submit_once(const SubmissionRequest& request, double answer_seconds);

}  // namespace saccade
