#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace heed {

/// The holder of a claim, from the claim's file.
struct ClaimHolder {
  std::string host;          ///< name of the holder's machine
  std::int64_t process = 0;  ///< process id on that machine
  bool here = false;         ///< on this machine, whose system knows whether the process lives
  bool alive = false;        ///< the process lives (if `here`), or its last heartbeat is less than `lapses` seconds old
  double silent = 0;         ///< seconds since its last heartbeat
  std::int64_t lapses = 0;   ///< seconds without a heartbeat after which another machine may take the claim over

  /// "process 4711 on node3, last heard of 12 s ago".
  std::string text() const;
};

/// A claim on a folder: a file in it, NAME.claim-N, that only one process can create (by a link). It contains host, process and the seconds
/// after which it lapses; its modification time is the heartbeat. It works between machines, and where flock() has no effect or does not
/// exist, as on many network file systems. A claim is taken over, by the file with the next number, if its process has ended (same machine)
/// or has had no heartbeat for longer than the claim says (another machine, by the clock of the file system).
///
/// A process that was stopped for so long that its claim may have been taken over must ask lost() before it writes again.
class Claim {
 public:
  /// alone: one process holds the claim; shared: any number of processes that all ask for `shared`.
  enum class LockMode { alone, shared };

  /// Claims the folder; nothing if another process holds it. `clock`: an open file in the folder; if another machine has a claim, the
  /// file's modification time is set to learn the file system's time. Throws Error if no file can be made.
  static std::optional<Claim> attempt(std::filesystem::path const& folder, std::string const& name, LockMode mode, int clock);

  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  Claim(Claim const&) = delete;
  Claim& operator=(Claim const&) = delete;
  /// Removes the file, if this process made it.
  ~Claim();

  /// Turns a claim held alone into a shared one. Returns false if it is lost. Throws Error if the file cannot be renamed.
  bool share();
  /// Whether another process has taken the claim over. Reads the folder only after this process has missed heartbeats.
  bool lost() const;
  /// Its descriptors.
  std::vector<int> descriptors() const { return {folder_, file_}; }

 private:
  Claim(int folder, int file, std::string base, std::string name);
  void let_go();

  int folder_, file_;
  std::string base_, name_;  ///< ".lock.claim-", ".lock.claim-1"
  pid_t maker_;
  mutable unsigned looked_ = 0;  ///< number of missed heartbeats when the folder was last read
};

/// The holders of claims on a folder under this name; reads only. `silent` is measured by this machine's clock.
std::vector<ClaimHolder> claim_holders(std::filesystem::path const& folder, std::string const& name = ".lock");

/// Seconds without a heartbeat after which a claim made now lapses: $HEED_CLAIM_LAPSES, default 60.
std::int64_t claim_lapses();

}  // namespace heed
