# The program: experiments on nn on autograd, and what a run records about it. Included by the project's CMakeLists.txt.

file(GLOB_RECURSE EXPERIMENTS CONFIGURE_DEPENDS experiments/*.cpp experiments/*.hpp)
list(REMOVE_ITEM EXPERIMENTS ${PROJECT_SOURCE_DIR}/experiments/commands/main.cpp)
leave_out_rooms(EXPERIMENTS)

# A report's styles and its program, as strings (experiments/report/html.hpp).
set(ASSETS page.css viewer.js)
set(STRINGS "")
foreach(asset ${ASSETS})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS experiments/report/${asset})
  file(READ experiments/report/${asset} CONTENT)
  string(REPLACE "." "_" variable ${asset})
  string(APPEND STRINGS "constinit std::string_view const ${variable} = R\"asset(${CONTENT})asset\";\n")
endforeach()
file(CONFIGURE OUTPUT report_assets.cpp @ONLY CONTENT [[
#include "experiments/report/html.hpp"

namespace heed {

@STRINGS@
}  // namespace heed
]])
# What counts, draws or integrates has loops.
set(LOOPS ${EXPERIMENTS})
list(FILTER LOOPS INCLUDE REGEX
  "/experiments/(metric/(sign_flips|power|evidence)|train/gradient_sum|data/(ngram|grammar|tokenizers/byte_pairs|tokenizers/byte_pair_training)|ablation/scaling/quadrature|study/(samples|saturation|softmax_scaling))\\.cpp$")
list(REMOVE_ITEM EXPERIMENTS ${LOOPS})
add_room(experiments SOURCES ${EXPERIMENTS} ${PROJECT_BINARY_DIR}/revision.cpp ${PROJECT_BINARY_DIR}/report_assets.cpp SEES autograd nn experiments)
add_room(experiments_loops SOURCES ${LOOPS} SEES autograd nn experiments)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set_property(SOURCE experiments/study/saturation.cpp tests/autograd/products.cpp tests/autograd/simd.cpp tests/autograd/samples/attention.cpp tests/nn/formula_scores.cpp APPEND PROPERTY COMPILE_OPTIONS
    -Wno-uninitialized -Wno-maybe-uninitialized) # as above
endif()
foreach(part experiments experiments_loops)
  target_include_directories(heed_${part} SYSTEM PRIVATE ${BOOST_MATH} ${UTF8PROC_INCLUDE})
  target_link_libraries(heed_${part} PRIVATE xsimd PUBLIC ${YAML_CPP} ${UTF8PROC} CLI11::CLI11 CURL::libcurl nlohmann_json::nlohmann_json fmt::fmt)
endforeach()
target_compile_options(heed_experiments PRIVATE ${REST} ${OG})
target_precompile_headers(heed_experiments PRIVATE ${STANDARD} <chrono> <filesystem> <fstream> <sstream> <nlohmann/json.hpp> <nn/model.hpp>)
compile_together(heed_experiments 10 ${EXPERIMENTS})
target_compile_options(heed_experiments_loops PRIVATE ${REST} ${O3})
set_target_properties(heed_experiments_loops PROPERTIES UNITY_BUILD ${HEED_UNITY} UNITY_BUILD_BATCH_SIZE 0)
list(PREPEND PARTS heed_experiments heed_experiments_loops)

# Several processes a run, where there is an MPI.
option(HEED_MPI "Data-parallel training (mpirun -n N heed run FILE), if MPI is installed" ON)
if(HEED_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND "-isystem") # of one file: the others are compiled as without
    set_source_files_properties(experiments/train/ranks.cpp PROPERTIES COMPILE_DEFINITIONS HEED_MPI
      COMPILE_OPTIONS "${MPI_CXX_INCLUDE_DIRS};-DOMPI_SKIP_MPICXX;-DMPICH_SKIP_MPICXX")
    target_link_libraries(heed_experiments PUBLIC ${MPI_CXX_LIBRARIES})
  endif()
endif()

# heed::program: the whole program, for one of your own that adds steps (nn/README.md, "Adding a score").
add_library(heed_program INTERFACE)
target_sources(heed_program INTERFACE ${PROJECT_SOURCE_DIR}/experiments/commands/main.cpp)
target_include_directories(heed_program INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(heed_program INTERFACE cxx_std_20)
target_link_libraries(heed_program INTERFACE ${PARTS})
foreach(part ${PARTS}) # objects are linked only into what names them itself
  target_sources(heed_program INTERFACE $<TARGET_OBJECTS:${part}>)
endforeach()
add_library(heed::program ALIAS heed_program)
add_executable(heed)
target_link_libraries(heed PRIVATE heed_program)
install(TARGETS heed RUNTIME COMPONENT program)

# --- What a run records about its program (experiments/config/build_info.hpp) -----------------------------------------------------------

list(JOIN ROOMS_LEFT_OUT ", " WITHOUT)
# git is asked at every build, the file written only when the answer changes: a commit costs one small file and a link.
file(CONFIGURE OUTPUT revision.cmake @ONLY CONTENT [[
execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY "@PROJECT_SOURCE_DIR@"
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "")
endif()
execute_process(COMMAND git status --porcelain -- autograd nn experiments CMakeLists.txt CMakePresets.json
                WORKING_DIRECTORY "@PROJECT_SOURCE_DIR@" OUTPUT_VARIABLE changes ERROR_QUIET)
if(changes)
  set(dirty true)
else()
  set(dirty false)
endif()
file(CONFIGURE OUTPUT "@PROJECT_BINARY_DIR@/revision.cpp" CONTENT [=[
#include "experiments/config/build_info.hpp"

namespace heed {

BuildInfo const& build_info() {
  static BuildInfo const info{
      .revision = "${revision}",
      .dirty = ${dirty},
      .compiler = "@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@",
      .build_type = "@CMAKE_BUILD_TYPE@",
      .flags = "@FLAGS@",
      .blas = "@OPENBLAS@",
      .xtensor = "@HEED_VERSION_OF_xtensor@",
      .xsimd = "@HEED_VERSION_OF_xsimd@",
      .source = "@PROJECT_SOURCE_DIR@",
      .without = "@WITHOUT@",
  };
  return info;
}

}  // namespace heed
]=])
]])
add_custom_target(revision COMMAND ${CMAKE_COMMAND} -P revision.cmake BYPRODUCTS revision.cpp COMMENT "Asking git for the revision" VERBATIM)
set_source_files_properties(${PROJECT_BINARY_DIR}/revision.cpp PROPERTIES GENERATED ON)
add_dependencies(heed_experiments revision)
