#pragma once

#include <string>

namespace heed {

/// Whether the processor has instructions that only some of its architecture (x86-64, 64-bit ARM) have, by their name in
/// instruction_sets.cpp ("AVX2"), and the system permits their use. False for a name that is not there: those of other architectures.
bool processor_has(char const* instructions);
/// Whether Intel made the processor.
bool processor_is_intel();
/// The processor's name as the system reports it ("AMD EPYC 9R14", "Apple M1"); "" if unknown.
std::string processor_name();

/// For loops that wait for another thread: saves energy, and leaves resources to the other hardware thread of the core.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most processors
#endif
}

namespace detail {

/// How to detect an instruction set, and whether the compiler was allowed to use it.
struct InstructionSet {
  char const* name;
  /// x86: cpuid's leaf and subleaf, and the word (0 … 3: eax … edx) and bit of its answer. ARM: word 0 is AT_HWCAP, 1 is AT_HWCAP2.
  unsigned leaf, subleaf, word, bit;
  unsigned state;  ///< x86: the registers that the system must save, as bits of XCR0
  bool compiled;
};

/// See processor.cpp; ends with a null name.
extern InstructionSet const instruction_sets[];

}  // namespace detail

}  // namespace heed
