#include "experiments/ablation/job_script.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/run/system.hpp"

namespace heed {

namespace {

/// A word of a shell's command line, in quotes if necessary.
std::string quoted(std::string const& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  std::string result = "'";
  for (char const c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_line(std::vector<std::string> const& words) {
  std::vector<std::string> all;
  for (auto const& word : words) all.push_back(quoted(word));
  return fmt::format("{}", fmt::join(all, " "));
}

/// A string of YAML, in double quotes.
std::string yaml_string(std::string const& text) {
  std::string result = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

/// A job's name as batch systems accept it: lower-case letters, digits and '-', at most 50 characters.
std::string job_name(std::string const& name) {
  std::string result;
  for (char const c : name) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (letter) result += c;
    if (c >= 'A' && c <= 'Z') result += static_cast<char>(c - 'A' + 'a');
    if (!letter && !result.empty() && result.back() != '-' && !(c >= 'A' && c <= 'Z')) result += '-';
  }
  result.resize(std::min<std::size_t>(result.size(), 50));
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "heed" : result;
}

/// A duration in Slurm's notation, rounded up to minutes: 1-02:30:00.
std::string slurm_time(double seconds) {
  auto const minutes = static_cast<std::int64_t>(std::ceil(seconds / 60));
  auto const days = minutes / 1440, hours = minutes / 60 % 24;
  return fmt::format("{}{:02}:{:02}:00", days > 0 ? fmt::format("{}-", days) : "", hours, minutes % 60);
}

std::int64_t whole_megabytes(double bytes) { return static_cast<std::int64_t>(bytes / (1 << 20)); }

std::string summary_of(SweepPlan const& plan) {
  return fmt::format("{} trials, the longest about {}, {} in all, of at most {:.0f} MB, on {}", plan.trials, clock_time(plan.longest),
                     clock_time(plan.seconds), plan.bytes / 1e6, plan.machine);
}

}  // namespace

double time_limit(SweepPlan const& plan) {
  auto const share = std::ceil(static_cast<double>(plan.trials) / static_cast<double>(plan.tasks));
  return 300 + 1.5 * plan.longest * std::max(1.0, share);
}

double memory_limit(SweepPlan const& plan) {
  constexpr double unit = 256.0 * (1 << 20);
  return unit * std::ceil((1.25 * plan.bytes + unit) / unit);
}

std::string slurm_script(SweepPlan const& plan) {
  return fmt::format(
      R"(#!/bin/bash
# {summary}.
# sbatch this file; heed watch shows how far it is. The tasks share all trials, whatever their number is.
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={threads}
#SBATCH --mem={memory}M
#SBATCH --time={time}
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%x-%A_%a.log
#SBATCH --chdir={folder}

# What the program needs on this cluster, e.g.
#   module load gcc openblas
# or in a container: srun apptainer exec heed.sif heed run …
code=0
srun {command} || code=$?
# 130: a checkpoint was written, because the time was nearly up or the node is taken. The task goes on when its turn comes again.
if [[ $code == 130 ]]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"; fi
exit $code
)",
      fmt::arg("summary", summary_of(plan)), fmt::arg("name", job_name(plan.name)), fmt::arg("last", plan.tasks - 1),
      fmt::arg("threads", plan.threads), fmt::arg("memory", whole_megabytes(memory_limit(plan))),
      fmt::arg("time", slurm_time(time_limit(plan))), fmt::arg("folder", plan.folder), fmt::arg("command", shell_line(plan.command)));
}

std::string parallel_jobs(SweepPlan const& plan) {
  std::string lines;
  for (std::int64_t i = 1; i <= plan.tasks; ++i)
    lines += fmt::format("cd {} && {} --shard {}/{}\n", quoted(plan.folder), shell_line(plan.command), i, plan.tasks);
  return lines;
}

std::string kubernetes_job(SweepPlan const& plan) {
  std::vector<std::string> words;
  for (auto const& word : plan.command) words.push_back(yaml_string(word));
  return fmt::format(
      R"(# {summary}.
# kubectl apply -f this file. IMAGE has heed and the data; VOLUME is a claim that all pods can write to (ReadWriteMany).
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {tasks}
  parallelism: {tasks}
  backoffLimit: {retries}
  podFailurePolicy:
    rules:
      - action: Ignore   # a checkpoint was written: another pod goes on from it
        onExitCodes: {{containerName: heed, operator: In, values: [130]}}
      - action: Ignore   # the node was drained or taken back
        onPodConditions: [{{type: DisruptionTarget}}]
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 120
      containers:
        - name: heed
          image: IMAGE
          workingDir: {folder}
          command: [{command}]
          resources:
            requests: {{cpu: "{threads}", memory: {memory}Mi}}
            limits: {{memory: {memory}Mi}}
          volumeMounts:
            - {{name: work, mountPath: {folder}}}
      volumes:
        - name: work
          persistentVolumeClaim: {{claimName: VOLUME}}
)",
      fmt::arg("summary", summary_of(plan)), fmt::arg("name", job_name(plan.name)), fmt::arg("tasks", plan.tasks),
      fmt::arg("retries", 6 * plan.tasks), fmt::arg("folder", yaml_string(plan.folder)), fmt::arg("command", fmt::join(words, ", ")),
      fmt::arg("threads", plan.threads), fmt::arg("memory", whole_megabytes(memory_limit(plan))));
}

std::vector<JobScript> const& job_scripts() {
  static std::vector<JobScript> const scripts{
      {"slurm", "print an sbatch script, with time and memory as estimated", slurm_script},
      {"parallel", "print a list of commands for GNU parallel", parallel_jobs},
      {"kubernetes", "print an indexed Job for Kubernetes", kubernetes_job},
  };
  return scripts;
}

}  // namespace heed
