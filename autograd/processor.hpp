#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Instructions that not every processor of a kind (x86-64, 64-bit ARM) has.
enum class Instructions : std::uint8_t {
  avx,
  avx2,
  fma,
  bmi2,
  avx512f,
  avx512cd,
  avx512bw,
  avx512dq,
  avx512vl,
  avx512_vbmi,
  avx512_vnni,
  avx512_bf16,
  avx512_fp16,
  amx_tile,
  amx_bf16,
  neon,
  neon_bf16,
  sve
};

/// Whether the running processor has them and the system lets programs use them. Asks the processor, which takes a virtual machine
/// microseconds: keep the answer.
bool processor_has(Instructions what);
/// Whether Intel made it.
bool processor_is_intel();
/// Its name as the system has it ("AMD EPYC 9R14", "Apple M1"); "" if that has none.
std::string processor_name();

/// For a thread that looks again and again whether another one is done: saves energy, and lets a sibling on the same core work.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most processors
#endif
}

namespace detail {

/// How to find out about instructions, and whether the compiler was allowed to use them.
struct InstructionSet {
  Instructions what;
  char const* name;
  struct Place {
    /// x86: what cpuid is asked, and of its answer the word (0 … 3: eax … edx). ARM: word 0 is AT_HWCAP, 1 is AT_HWCAP2.
    unsigned leaf, subleaf, word, bit;
  } place;
  unsigned state;  ///< x86: the registers that the system must save, as bits of XCR0
  bool compiled;
};

/// Data alone, see processor.cpp; ends with a null name.
extern InstructionSet const instruction_sets[];

}  // namespace detail

}  // namespace heed
