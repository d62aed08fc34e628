// Compiled for the baseline of its architecture (CMakeLists.txt) and run first: a program built for instructions that this processor lacks
// says so instead of dying of one. What runs then calls no inline function of another header: the linker may keep a copy built for more.

#include "autograd/processor/processor.hpp"

#include <cstring>
#include <fstream>

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace heed {

namespace {

#if defined(__x86_64__)

/// A word of cpuid's answer, which is asked for once: in a virtual machine that takes 16 µs.
unsigned cpuid_word(unsigned leaf, unsigned subleaf, unsigned word) {
  struct Answers {
    unsigned of[4][4];  // leaves 0, 1, and 7 with subleaves 0 and 1
    Answers() {
      for (unsigned i = 0; i < 4; ++i) __get_cpuid_count(i < 2 ? i : 7, i == 3 ? 1 : 0, &of[i][0], &of[i][1], &of[i][2], &of[i][3]);
    }
  };
  static Answers const answers;
  return answers.of[leaf == 7 ? 2 + subleaf : leaf][word];
}

/// The registers that the system saves when it switches between programs.
unsigned saved_registers() {
  constexpr unsigned xsave_in_use = 1U << 27;
  if ((cpuid_word(1, 0, 2) & xsave_in_use) == 0) return 0;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool is_there(detail::InstructionSet const& set) {
  return (cpuid_word(set.leaf, set.subleaf, set.word) >> set.bit & 1U) != 0 && (saved_registers() & set.state) == set.state;
}

#elif defined(__APPLE__)

/// All of Apple's have NEON, none has SVE for programs; of the rest the system tells.
bool is_there(detail::InstructionSet const& set) {
  if (std::strcmp(set.name, "BF16") != 0) return std::strcmp(set.name, "NEON") == 0;
  int there = 0;
  std::size_t size = sizeof there;
  return ::sysctlbyname("hw.optional.arm.FEAT_BF16", &there, &size, nullptr, 0) == 0 && there != 0;
}

#elif defined(__aarch64__)

bool is_there(detail::InstructionSet const& set) { return (getauxval(set.word == 0 ? AT_HWCAP : AT_HWCAP2) >> set.bit & 1UL) != 0; }

#else

bool is_there(detail::InstructionSet const&) { return false; }

#endif

void say(char const* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) ::_exit(2);
}

[[gnu::constructor(101)]] void stop_if_built_for_another() {
  bool suits = true;
  for (auto const* set = detail::instruction_sets; set->name != nullptr; ++set) {
    if (!set->compiled || is_there(*set)) continue;
    say(suits ? "heed: built for instructions that this processor does not have: " : ", ");
    say(set->name);
    suits = false;
  }
  if (suits) return;
  say("; build it on this machine\n");
  ::_exit(2);
}

}  // namespace

bool processor_has(char const* instructions) {
  for (auto const* set = detail::instruction_sets; set->name != nullptr; ++set)
    if (std::strcmp(set->name, instructions) == 0) return is_there(*set);
  return false;
}

bool processor_is_intel() {
#if defined(__x86_64__)
  return cpuid_word(0, 0, 1) == signature_INTEL_ebx;
#else
  return false;
#endif
}

#if defined(__x86_64__)

std::string processor_name() {  // asked of the processor: a file may be unreadable for a moment, and a run's name of it must not change
  constexpr unsigned first = 0x80000002, last = 0x80000004;
  char name[48] = "";
  for (unsigned leaf = first; leaf <= last; ++leaf) {
    unsigned words[4] = {0, 0, 0, 0};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) return "";
    std::memcpy(name + (leaf - first) * sizeof words, words, sizeof words);
  }
  std::string const text(name, ::strnlen(name, sizeof name));
  auto const begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

#elif defined(__APPLE__)

std::string processor_name() {
  char name[128] = "";
  std::size_t size = sizeof name - 1;
  return ::sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0 ? name : "";
}

#else

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("model name")) continue;
    auto const begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

#endif

}  // namespace heed
