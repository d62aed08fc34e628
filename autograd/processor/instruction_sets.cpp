// Compiled with the kernels' flags, to record which instructions they use.

#include "autograd/processor/processor.hpp"

#define TEXT(macro) #macro
#define COMPILED(macro) (TEXT(macro)[0] == '1')  // a macro that is not defined stays its name

namespace heed::detail {

#if defined(__x86_64__)

namespace {
constexpr unsigned eax = 0, ebx = 1, ecx = 2, edx = 3;
constexpr unsigned none = 0, avx = 0x6, avx512 = 0xe6, amx = 0x60000;  // of XCR0
}  // namespace

constinit InstructionSet const instruction_sets[] = {
    {"AVX", 1, 0, ecx, 28, avx, COMPILED(__AVX__)},
    {"AVX2", 7, 0, ebx, 5, avx, COMPILED(__AVX2__)},
    {"FMA", 1, 0, ecx, 12, avx, COMPILED(__FMA__)},
    {"BMI2", 7, 0, ebx, 8, none, COMPILED(__BMI2__)},
    {"AVX512F", 7, 0, ebx, 16, avx512, COMPILED(__AVX512F__)},
    {"AVX512CD", 7, 0, ebx, 28, avx512, COMPILED(__AVX512CD__)},
    {"AVX512BW", 7, 0, ebx, 30, avx512, COMPILED(__AVX512BW__)},
    {"AVX512DQ", 7, 0, ebx, 17, avx512, COMPILED(__AVX512DQ__)},
    {"AVX512VL", 7, 0, ebx, 31, avx512, COMPILED(__AVX512VL__)},
    {"AVX512_VBMI", 7, 0, ecx, 1, avx512, COMPILED(__AVX512VBMI__)},
    {"AVX512_VNNI", 7, 0, ecx, 11, avx512, COMPILED(__AVX512VNNI__)},
    {"AVX512_BF16", 7, 1, eax, 5, avx512, COMPILED(__AVX512BF16__)},
    {"AVX512_FP16", 7, 0, edx, 23, avx512, COMPILED(__AVX512FP16__)},
    {"AMX-TILE", 7, 0, edx, 24, amx, COMPILED(__AMX_TILE__)},
    {"AMX-BF16", 7, 0, edx, 22, amx, COMPILED(__AMX_BF16__)},
    {},
};

#elif defined(__aarch64__)

namespace {
constexpr unsigned hwcap = 0, hwcap2 = 1;
}

constinit InstructionSet const instruction_sets[] = {
    {"NEON", 0, 0, hwcap, 1, 0, COMPILED(__ARM_NEON)},
    {"SVE", 0, 0, hwcap, 22, 0, COMPILED(__ARM_FEATURE_SVE)},
    {"BF16", 0, 0, hwcap2, 14, 0, COMPILED(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)},
    {},
};

#else

constinit InstructionSet const instruction_sets[] = {{}};

#endif

}  // namespace heed::detail
