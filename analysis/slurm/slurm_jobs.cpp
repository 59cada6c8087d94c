#include "analysis/slurm/slurm_jobs.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

namespace saccade {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 18 && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string why_not(const std::string& program, const ProgramAnswer& answer, double seconds) {
  if (answer.timed_out) return program + " did not answer within " + std::to_string(static_cast<int64_t>(seconds)) + " s";
  return program + " failed: " + (answer.last_line().empty() ? "exit code " + std::to_string(answer.code) : answer.last_line());
}

constexpr const char* kJobFormat = "--format=%F|%K|%T|%r|%j %k";

SlurmJob job_of(const std::string& line) {
  std::array<std::string, 4> fields;
  size_t at = 0;
  for (std::string& field : fields) {
    const size_t end = line.find('|', at);
    if (end == std::string::npos) throw NoAnswer("squeue gave a line that cannot be read: " + line.substr(0, 100));
    field = line.substr(at, end - at);
    at = end + 1;
  }
  if (!is_number(fields[0]) || fields[2].empty()) throw NoAnswer("squeue gave a line that cannot be read: " + line.substr(0, 100));
  return {fields[0], is_number(fields[1]) ? std::stoll(fields[1]) : -1, fields[2], fields[3], line.substr(at)};
}

}  // namespace

bool SlurmJob::alive() const {
  static const std::array<const char*, 10> kEnded{"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                                                  "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::find(kEnded.begin(), kEnded.end(), state) == kEnded.end();
}

std::vector<SlurmJob> jobs_in(const std::string& squeue_text) {
  std::vector<SlurmJob> jobs;
  for (const std::string& line : lines_of(squeue_text)) jobs.push_back(job_of(line));
  return jobs;
}

std::optional<std::string> accounted_in(const std::string& sacct_text) {
  for (const std::string& line : lines_of(sacct_text))
    if (const std::string id = line.substr(0, line.find_first_of("_|.")); is_number(id)) return id;
  return {};
}

std::vector<SlurmJob> own_jobs(double seconds) {
  const ProgramAnswer answer = call_program({"squeue", "--me", "--noheader", "--array", "--states=all", kJobFormat}, seconds);
  if (!answer.ok()) throw NoAnswer(why_not("squeue", answer, seconds));
  return jobs_in(answer.out);
}

std::optional<std::string> accounted_job(const std::string& name, double seconds) {
  const ProgramAnswer answer = call_program(
      {"sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-30days", "--name=" + name, "--format=JobID"}, seconds);
  if (answer.timed_out) throw NoAnswer(why_not("sacct", answer, seconds));
  if (!answer.ok()) return {};  // no accounting here
  return accounted_in(answer.out);
}

bool says_no_such_job(const ProgramAnswer& answer) {
  return !answer.ok() && !answer.timed_out && answer.err.find("Invalid job id") != std::string::npos;
}

JobLife slurm_job_life(const std::string& job, double seconds) {
  if (!is_number(job.substr(0, job.find('_')))) return JobLife::unknown;
  const ProgramAnswer answer = call_program({"squeue", "--noheader", "--states=all", "--jobs=" + job, kJobFormat}, seconds);
  if (says_no_such_job(answer)) return JobLife::ended;
  if (!answer.ok()) return JobLife::unknown;
  try {
    const std::vector<SlurmJob> jobs = jobs_in(answer.out);
    return std::any_of(jobs.begin(), jobs.end(), [](const SlurmJob& each) { return each.alive(); }) ? JobLife::alive : JobLife::ended;
  } catch (const NoAnswer&) {
    return JobLife::unknown;
  }
}

std::string own_slurm_job() {
  const char *array = std::getenv("SLURM_ARRAY_JOB_ID"), *task = std::getenv("SLURM_ARRAY_TASK_ID"), *job = std::getenv("SLURM_JOB_ID");
  if (array && task) return std::string(array) + "_" + task;
  return job ? job : "";
}

}  // namespace saccade
