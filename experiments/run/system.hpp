#pragma once

#include <filesystem>
#include <string>

namespace heed {

/// The operating system, its kernel and the machine's architecture: "Debian GNU/Linux 13 (trixie), Linux 6.12.48 x86_64".
std::string system_name();
/// A path that leads to the file of the running program; empty if the system does not tell.
std::filesystem::path program_file();
/// Bytes of memory that can still be had on this machine (and within a control group's limit).
double available_memory();

}  // namespace heed
