# The tests, and the fuzz targets. Included by the project's CMakeLists.txt.

# What .ci/run repeats with sanitizers: every operation once, and whatever reads a file; and on an emulated ARM: what has kernels.
set(SANITIZE_SUITES
  operations zero_gradients written rounded_weights graph long_graphs tensor memory safetensors atomic_file checkpoint config config_errors malformed
  text bpe byte_pair_files documents catalogue batches grammar ngram examples malformed_examples tables record run parallel products recompute result_file seal sha256 simd xtensor)
set(THREAD_SUITES threads parallel graph long_graphs recompute) # by the thread sanitizer
set(CROSS_SUITES simd tensor graph long_graphs recompute parallel random exponential elementary zero_gradients operations products attention_properties)
set(HEED_SUITES "" CACHE STRING "The suites that are built; empty: all, with sanitizers or for ARM those of .ci/run")

# tests/**/NAME.cpp holds TEST_SUITE("NAME") and is the ctest test NAME. With sanitizers or for ARM only the suites above are built.
file(GLOB_RECURSE TESTS CONFIGURE_DEPENDS tests/*.cpp tests/*.hpp)
list(FILTER TESTS EXCLUDE REGEX "/tests/(autograd/samples|benchmarks|faults|fuzz)/")
if(APPLE) # the others' tests make Linux's system calls
  list(FILTER TESTS INCLUDE REGEX "/tests/(main|autograd/[^/]*)\\.cpp$")
elseif(LIBRARIES_ALONE)
  list(FILTER TESTS INCLUDE REGEX "/tests/(main|autograd/[^/]*|nn/[^/]*)\\.cpp$")
endif()
if(HEED_SUITES)
  list(JOIN HEED_SUITES "|" BUILT)
elseif(HEED_SANITIZE STREQUAL thread)
  list(JOIN THREAD_SUITES "|" BUILT)
elseif(HEED_SANITIZE)
  list(JOIN SANITIZE_SUITES "|" BUILT)
elseif(CMAKE_CROSSCOMPILING)
  list(JOIN CROSS_SUITES "|" BUILT)
endif()
leave_out_rooms(TESTS)
if(SUITES_LEFT_OUT)
  list(JOIN SUITES_LEFT_OUT "|" WITHOUT)
  list(FILTER TESTS EXCLUDE REGEX "/(${WITHOUT})\\.cpp$")
endif()
set(LEVEL $<$<CONFIG:Release>:-O0>) # what they test is in the libraries
if(CMAKE_CROSSCOMPILING)
  set(LEVEL -O1) # in an emulator their references would take most of the time
elseif(HEED_SANITIZE MATCHES address)
  set(LEVEL -O0 ${OG})
endif()

# What the suites are compiled and linked with.
set(TESTED ${PARTS} xtensor doctest::doctest)
function(add_test_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS) # no try block at each: the compiler's time
  target_compile_options(${name} PRIVATE ${REST} ${LEVEL})
  target_link_libraries(${name} PRIVATE ${TESTED})
  if(CMAKE_CROSSCOMPILING)
    target_compile_definitions(${name} PRIVATE HEED_EMULATED)
  endif()
endfunction()
# Links the tests of object libraries. What is tested comes first: of an inline function that both have the linker takes the first, and the
# tests are compiled with -O0.
function(add_test_program name)
  add_executable(${name})
  target_link_libraries(${name} PRIVATE ${TESTED} ${ARGN} heed_tests_main)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  if(TARGET heed)
    add_dependencies(${name} heed heed_libautograd heed_libnn) # some tests start the program, one installs the libraries
  endif()
endfunction()

add_test_objects(heed_tests_main tests/main.cpp)

# Neighbouring suites of a folder (and of a room that can be left out) are a group: one source for the compiler, and one program, which
# ./heed test NAME builds for a suite. Most of a suite's compile time is its headers'.
set(GROUPS "")
set(SUITES "")
foreach(file ${TESTS})
  get_filename_component(suite ${file} NAME_WE)
  if(file MATCHES "\\.hpp$" OR suite STREQUAL main)
    continue()
  endif()
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "/.*" "" folder ${folder})
  foreach(room ${ROOMS})
    if(suite IN_LIST SUITES_OF_${room})
      set(folder ${folder}_${room})
    endif()
  endforeach()
  list(LENGTH SUITES_IN_${folder} count)
  math(EXPR number "${count} / 7")
  list(APPEND SUITES_IN_${folder} ${suite})
  if(BUILT AND NOT suite MATCHES "^(${BUILT})$")
    continue() # after it was counted: a group holds the same suites, or some of them, in every build
  endif()
  set(group tests_${folder}_${number})
  list(APPEND GROUPS ${group})
  list(APPEND SOURCES_IN_${group} ${file})
  list(APPEND SUITES ${suite})
  set(GROUP_OF_${suite} ${group})
endforeach()
list(REMOVE_DUPLICATES GROUPS)
set(OBJECTS "")
foreach(group ${GROUPS})
  add_test_objects(${group}_objects ${SOURCES_IN_${group}})
  set_target_properties(${group}_objects PROPERTIES UNITY_BUILD ${HEED_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  if(OBJECTS)
    list(GET OBJECTS 0 first)
    target_precompile_headers(${group}_objects REUSE_FROM ${first})
  else()
    target_precompile_headers(${group}_objects PRIVATE ${STANDARD} <sstream> tests/test.hpp tests/json.hpp)
  endif()
  list(APPEND OBJECTS ${group}_objects)
  add_test_program(${group} ${group}_objects)
  set_target_properties(${group} PROPERTIES EXCLUDE_FROM_ALL ON)
endforeach()
foreach(suite ${SUITES})
  add_custom_target(suite_${suite})
  add_dependencies(suite_${suite} ${GROUP_OF_${suite}})
endforeach()
if(TARGET suite_operations) # and the samples that it draws
  file(GLOB SAMPLES CONFIGURE_DEPENDS tests/autograd/samples/*.cpp)
  add_test_objects(tests_samples ${SAMPLES})
  set_target_properties(tests_samples PROPERTIES UNITY_BUILD ${HEED_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  target_precompile_headers(tests_samples REUSE_FROM ${first})
  target_link_libraries(${GROUP_OF_operations} PRIVATE tests_samples)
  list(APPEND OBJECTS tests_samples)
endif()
if(TARGET suite_package) # it links these two anew, with a score more
  add_dependencies(suite_package suite_attention_gradients suite_attention_properties)
endif()
add_test_program(heed_tests ${OBJECTS})

# What no suite holds, because it is measured: tests/benchmarks/NAME.cpp is the program bench_NAME.
if(TARGET heed AND NOT bench IN_LIST ROOMS_LEFT_OUT)
  foreach(name hessian ops scaling)
    add_executable(bench_${name} EXCLUDE_FROM_ALL tests/benchmarks/${name}.cpp)
    target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(bench_${name} PRIVATE ${PARTS})
  endforeach()
endif()

# What tests/faults/run.sh loads before the C library.
if(TARGET heed AND NOT HEED_SANITIZE AND NOT APPLE)
  add_library(heed_faults MODULE tests/faults/shim.cpp)
  target_compile_options(heed_faults PRIVATE -Wno-shadow) # there is a struct flock beside the function
  target_link_libraries(heed_faults PRIVATE ${CMAKE_DL_LIBS})
endif()

set(SUITE_ENVIRONMENT UBSAN_OPTIONS=print_stacktrace=1)
# The suite NAME, from the program of all tests, or as ./heed test NAME runs it.
function(add_suite name)
  cmake_parse_arguments(SUITE "" "CONFIGURATIONS" "COMMAND" ${ARGN})
  add_test(NAME ${name} CONFIGURATIONS ${SUITE_CONFIGURATIONS} COMMAND ${SUITE_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    TIMEOUT 600
    ENVIRONMENT "${SUITE_ENVIRONMENT}"
    FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endfunction()
enable_testing()
# What ./heed test leaves to ./heed test --all: manuals, packages, exchange of whole models, and what else runs for more than ten seconds
# (`operations` stays: it is what proves a machine's derivatives right).
set(LONG_SUITES ablation ablation_results attention_dropout changed_function evaluate exchange finetuning infinite_results interrupted_study judge keep_best malformed manuals mpi package
  peeking resume scaled_arms softmax_length study sweep what_was_read)
foreach(suite ${SUITES})
  add_suite(${suite} COMMAND heed_tests --test-suite=${suite})
  add_suite(alone.${suite} CONFIGURATIONS alone COMMAND ${GROUP_OF_${suite}} --test-suite=${suite})
  if(suite IN_LIST LONG_SUITES)
    set_tests_properties(${suite} PROPERTIES LABELS long COST 10) # and first, so that no core waits for them at the end
  endif()
endforeach()

# A test case outside its file's suite would never run.
list(JOIN SUITES "," SUITES)
add_test(NAME every_case_has_a_suite COMMAND heed_tests --list-test-cases --test-suite-exclude=${SUITES})
set_tests_properties(every_case_has_a_suite PROPERTIES PASS_REGULAR_EXPRESSION "passing the current filters: 0\n")

# --- Fuzzing ---------------------------------------------------------------------------------------------------------------------

# tests/fuzz/NAME.cpp is the program fuzz_NAME; tests/fuzz/run.sh runs them.
if(HEED_FUZZ)
  foreach(room nn nn_loops experiments experiments_loops) # whatever reads files
    target_compile_options(heed_${room} PRIVATE -fsanitize=fuzzer-no-link) # counts what is reached
  endforeach()
  file(GLOB FUZZ CONFIGURE_DEPENDS tests/fuzz/*.cpp)
  foreach(file ${FUZZ})
    get_filename_component(target ${file} NAME_WE)
    add_executable(fuzz_${target} ${file})
    target_include_directories(fuzz_${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(fuzz_${target} PRIVATE ${PARTS})
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
  endforeach()
endif()
