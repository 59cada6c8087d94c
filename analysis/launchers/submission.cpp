#include "analysis/launchers/submission.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/slurm/program_call.h"
#include "analysis/slurm/slurm_jobs.h"
#include "kernels/engine/clock.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* kFile = "submission.json";
constexpr int kTries = 3;
constexpr size_t kTokenSize = 16;

std::string random_token() {
  std::random_device device;
  std::string token;
  while (token.size() < kTokenSize) token += "0123456789abcdef"[device() % 16];
  return token;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,%+@") == std::string::npos;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += (text.empty() ? "" : " ") + (plain ? word : quoted + "'");
  }
  return text;
}

void write(const fs::path& folder, const Submission& submission) {
  write_sealed_json(folder / kFile, {{"format_version", 1},
                                     {"token", submission.token},
                                     {"job_name", submission.job_name},
                                     {"job", submission.job},
                                     {"command", submission.command},
                                     {"written", utc_now()}});
}

std::vector<std::string> sbatch_command(const SubmissionRequest& request, const Submission& submission) {
  std::vector<std::string> command{"sbatch", "--parsable", "--job-name=" + submission.job_name, "--comment=saccade:" + submission.token};
  command.insert(command.end(), request.options.begin(), request.options.end());
  command.push_back(request.script.string());
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  return command;
}

/// The first job that has the token; the others, which a second try that was not needed made, are cancelled.
std::optional<std::string> job_with(const Submission& submission, double answer_seconds) {
  std::set<int64_t> ids;
  for (const SlurmJob& job : own_jobs(answer_seconds))
    if (job.words.find(submission.token) != std::string::npos) ids.insert(std::stoll(job.id));
  for (auto id = ids.begin(); id != ids.end(); ++id)
    if (id != ids.begin()) static_cast<void>(call_program({"scancel", std::to_string(*id)}, answer_seconds));
  if (!ids.empty()) return std::to_string(*ids.begin());
  return accounted_job(submission.job_name, answer_seconds);
}

/// Asks until the job is there, or for so many seconds: as long as a call that was cut short may take to be heard.
std::optional<std::string> settle(const Submission& submission, double answer_seconds, double seconds) {
  const double end = now() + seconds;
  for (double pause = 0.25;; pause = std::min(2 * pause, 10.0)) {
    if (const auto job = job_with(submission, answer_seconds)) return job;
    if (now() >= end) return {};
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(pause, std::max(0.05, end - now()))));
  }
}

/// A plain no: sbatch was heard, and there is no job. What else goes wrong between it and slurmctld says nothing about the job.
bool refused(const ProgramAnswer& answer) {
  if (answer.timed_out || answer.code == 0 || answer.code >= 127) return false;
  for (const char* word : {"imed out", "nable to contact", "onnection", "ocket", "ommunication", "emporarily", "ero Bytes", "ero bytes"})
    if (answer.err.find(word) != std::string::npos) return false;
  return answer.err.find("rror") != std::string::npos;
}

std::string accept(const fs::path& folder, Submission& submission, const std::string& job) {
  submission.job = job;
  write(folder, submission);
  return job;
}

[[noreturn]] void refuse(const fs::path& folder) {
  throw DataError((folder / kFile).string() + " is damaged; see with squeue --me whether its job is there, and remove the file");
}

bool is_job_id(const std::string& text) {
  return !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
}

bool is_token(const std::string& text) {
  return text.size() == kTokenSize && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string job_id_in(const std::string& sbatch_text) {
  const std::string line = sbatch_text.substr(0, sbatch_text.find_first_of("\n;"));
  return is_job_id(line) ? line : "";
}

std::optional<Submission> read_submission(const fs::path& folder) try {
  std::error_code none;
  if (!fs::exists(folder / kFile, none)) return {};
  const Json object = read_sealed_json(folder / kFile);
  const Submission found{object.at("token"), object.at("job_name"), object.at("job"), object.at("command")};
  // An empty token would be that of every job, and a job that is no number an option of scancel.
  if (!is_token(found.token) || !(found.job.empty() || is_job_id(found.job))) refuse(folder);
  return found;
} catch (const Json::exception&) {
  refuse(folder);
}

std::string submit_once(const SubmissionRequest& request, double answer_seconds) {
  Submission submission;
  if (const auto before = read_submission(request.folder)) {
    if (!before->job.empty()) return before->job;
    submission = *before;
    if (const auto job = settle(submission, answer_seconds, answer_seconds)) return accept(request.folder, submission, *job);
  } else {
    submission.token = random_token();
    submission.job_name = request.name + "-" + submission.token;
  }
  const std::vector<std::string> command = sbatch_command(request, submission);
  submission.command = shell_words(command);
  write(request.folder, submission);
  std::string why;
  for (int i = 0; i < kTries; ++i) {
    const ProgramAnswer answer = call_program(command, answer_seconds);
    if (answer.code == 127) throw Error("sbatch cannot be started (" + answer.last_line() + "); is this a machine of the cluster?");
    if (const std::string job = job_id_in(answer.out); answer.ok() && !job.empty()) return accept(request.folder, submission, job);
    const bool no = refused(answer);
    why = answer.timed_out ? "did not answer within " + std::to_string(static_cast<int64_t>(answer_seconds)) + " s" : answer.last_line();
    if (const auto job = settle(submission, answer_seconds, no ? 0 : answer_seconds)) return accept(request.folder, submission, *job);
    if (no) {
      remove_run_file(request.folder / kFile);  // nothing is open
      throw Error("sbatch refused the job: " + why);
    }
  }
  throw NoAnswer("sbatch was tried " + std::to_string(kTries) + " times and no job is there (" + why + "); try again later");
}

}  // namespace saccade
