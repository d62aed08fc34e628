#include "experiments/ablation/job_script.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/program/system.hpp"

namespace heed {

namespace {

/// A word of a bash command line, in quotes if necessary; always on one line, since comments hold some.
std::string quoted(std::string const& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  auto const is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  bool const controls = std::ranges::any_of(word, is_control);
  std::string result = controls ? "$'" : "'";
  for (char const c : word) {
    if (is_control(c))
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else if (c == '\'')
      result += controls ? "\\'" : "'\\''";
    else
      result += controls && c == '\\' ? std::string("\\\\") : std::string(1, c);
  }
  return result + "'";
}

std::string shell_line(std::vector<std::string> const& words) {
  std::vector<std::string> all;
  for (auto const& word : words) all.push_back(quoted(word));
  return fmt::format("{}", fmt::join(all, " "));
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
  auto const minutes = static_cast<Index>(std::ceil(seconds / 60));
  auto const days = minutes / 1440, hours = minutes / 60 % 24;
  return fmt::format("{}{:02}:{:02}:00", days > 0 ? fmt::format("{}-", days) : "", hours, minutes % 60);
}

Index whole_megabytes(double bytes) { return static_cast<Index>(bytes / (1 << 20)); }

std::string summary_of(SweepPlan const& plan) {
  return fmt::format("{} trials, the longest about {}, {} in all, of at most {:.0f} MB, on {}", plan.trials, clock_time(plan.longest),
                     clock_time(plan.seconds), plan.bytes / 1e6, plan.machine);
}

}  // namespace

double time_limit(SweepPlan const& plan) { return 300 + 1.5 * plan.longest * std::max(1.0, static_cast<double>(plan.share)); }

double memory_limit(SweepPlan const& plan) {
  constexpr double unit = 256.0 * (1 << 20);
  return unit * std::ceil((1.25 * plan.bytes + unit) / unit);
}

std::string slurm_script(SweepPlan const& plan) {
  auto command = shell_line(plan.command) + " --output " + quoted(plan.output);
  std::string note = "the tasks share all trials, whatever their number is";
  if (plan.shards) {
    command += fmt::format("/shard-\"$SLURM_ARRAY_TASK_ID\" --shard \"$SLURM_ARRAY_TASK_ID\"/{}", plan.tasks);
    note = fmt::format("each task trains a shard; heed report {}/shard-* --output {} joins them", quoted(plan.output), quoted(plan.output));
  }
  return fmt::format(
      R"(#!/bin/bash
# {summary}.
# sbatch this file; {note}.
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

# What the program needs on this cluster, e.g.
#   module load gcc openblas
# or in a container: srun apptainer exec heed.sif heed run …
cd {folder} || exit 2
code=0
srun {command} || code=$?
# 130: a checkpoint was written, because the time was nearly up or the node is taken. The task goes on when its turn comes again.
if [[ $code == 130 ]]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"; fi
exit $code
)",
      fmt::arg("summary", summary_of(plan)), fmt::arg("note", note), fmt::arg("name", job_name(plan.name)),
      fmt::arg("last", plan.tasks - 1), fmt::arg("threads", plan.threads), fmt::arg("memory", whole_megabytes(memory_limit(plan))),
      fmt::arg("time", slurm_time(time_limit(plan))), fmt::arg("folder", quoted(plan.folder)), fmt::arg("command", command));
}

}  // namespace heed
