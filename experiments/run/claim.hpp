#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace heed {

/// Who holds a claim, as its file says.
struct ClaimHolder {
  std::string host;          ///< the name of its machine
  std::int64_t process = 0;  ///< its number there
  bool here = false;         ///< on this machine, so that the system knows whether the process lives
  bool alive = false;        ///< the process lives (`here`), or was heard of less than `lapses` ago
  double silent = 0;         ///< seconds since its last heartbeat
  std::int64_t lapses = 0;   ///< seconds of silence after which another machine takes the claim over

  /// "process 4711 on node3, last heard of 12 s ago".
  std::string text() const;
};

/// A claim on a folder: a file in it, NAME.claim-N, that one process alone can make (a link). It names host, process and the seconds after
/// which it lapses; its time of modification is the heartbeat. It holds where flock() has no effect or is not there, as on many network
/// file systems, and between machines. A claim whose process has ended (same machine), or has been silent for longer than it says (another
/// machine, by the clock of the file system), is taken over: by the file with the next number.
///
/// A process that was stopped for so long that its claim may have been taken over finds that out by lost() before it writes again.
class Claim {
 public:
  /// One holds it alone, or any number that all say `shared`.
  enum class LockMode { alone, shared };

  /// Nothing if another process holds it. `clock`: an open file of the folder, whose time of modification is set to learn what time it is
  /// there, if another machine has a claim. Throws Error if no file can be made.
  static std::optional<Claim> attempt(std::filesystem::path const& folder, std::string const& name, LockMode mode, int clock);

  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  Claim(Claim const&) = delete;
  Claim& operator=(Claim const&) = delete;
  /// Removes the file, in the process that made it.
  ~Claim();

  /// Lets others share what was held alone.
  void share();
  /// In a forked process: it holds the claim too, and its heart beats for this claim alone.
  void inherit();
  /// Whether another process has taken it over. Looks at the folder only after this process has missed heartbeats.
  bool lost() const;
  /// Both descriptors, which a forked process must keep open.
  std::vector<int> descriptors() const { return {folder_, file_}; }

 private:
  Claim(int folder, int file, std::string base, std::string name);
  void let_go();

  int folder_, file_;
  std::string base_, name_;  ///< ".lock.claim-", ".lock.claim-1"
  pid_t maker_;
  mutable unsigned looked_ = 0;  ///< at the folder after so many late heartbeats
};

/// Who holds claims on a folder under this name; reads only. `silent` is by this machine's clock.
std::vector<ClaimHolder> claim_holders(std::filesystem::path const& folder, std::string const& name = ".lock");

/// Seconds of silence after which a claim that is made now lapses: $HEED_CLAIM_LAPSES, 60 without it.
std::int64_t claim_lapses();

}  // namespace heed
