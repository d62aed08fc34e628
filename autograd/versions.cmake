# What heed is known to work with, and what holds a library that was found against it. Fills HEED_MISSING with what is not there or too old,
# HEED_NEWER with what is newer than anything that heed was tried with, and HEED_VERSIONS with what was found.

# The versions that heed is known to work with: the oldest are Debian 12's, the newest those of Debian's next release. Debian 12's package.
# And a header that says the version, by which macro: it is what will be compiled, whatever package CMake has found.
set(HEED_KNOWN
  # name          oldest newest Debian's package       header macro
  "GNU            12     16.2   g++"
  "Clang          14     19     clang"
  "AppleClang     15     -      -"
  "CMake          3.25   4.3    cmake"
  "xtensor        0.24   0.27   libxtensor-dev         xtensor/core/xtensor_config.hpp|xtensor/xtensor_config.hpp XTENSOR_VERSION"
  "xtensor-blas   0.20   0.23   libxtensor-blas-dev    xtensor-blas/xblas_config.hpp XTENSOR_BLAS_VERSION"
  "xsimd          8.1    14.3   libxsimd-dev           xsimd/config/xsimd_config.hpp XSIMD_VERSION"
  "OpenBLAS       0.3.21 0.3.34 libopenblas-openmp-dev openblas_config.h OPENBLAS_VERSION"
  "Random123      -      -      librandom123-dev"
  "fmt            9.1    11.1   libfmt-dev             fmt/base.h|fmt/core.h FMT_VERSION"
  "nlohmann_json  3.11   3.11   nlohmann-json3-dev     nlohmann/detail/abi_macros.hpp NLOHMANN_JSON_VERSION"
  "OpenSSL        -      -      libssl-dev"
  "Threads        -      -      libc6-dev"
  "yaml-cpp       0.7    0.9    libyaml-cpp-dev"
  "utf8proc       2.8    2.9    libutf8proc-dev        utf8proc.h UTF8PROC_VERSION"
  "CLI11          2.1    2.6    libcli11-dev           CLI/Version.hpp CLI11_VERSION"
  "CURL           -      -      libcurl4-openssl-dev"
  "Boost.Math     -      -      libboost-math-dev"
  "doctest        2.4.9  2.5    doctest-dev            doctest/doctest.h DOCTEST_VERSION")

set(HEED_MISSING "")
set(HEED_NEWER "")
set(HEED_VERSIONS "")

# heed_row(NAME): its line of the table.
macro(heed_row name)
  set(HEED_ROW ${HEED_KNOWN})
  list(FILTER HEED_ROW INCLUDE REGEX "^${name} ")
  string(REGEX MATCHALL "[^ ]+" HEED_ROW "${HEED_ROW}")
  list(GET HEED_ROW 1 HEED_OLDEST)
  list(GET HEED_ROW 2 HEED_NEWEST)
  list(GET HEED_ROW 3 HEED_DEBIAN)
  set(HEED_KNOWN_TO_WORK "${HEED_OLDEST} to ${HEED_NEWEST}")
  if(HEED_NEWEST STREQUAL "-")
    set(HEED_KNOWN_TO_WORK "${HEED_OLDEST} or newer")
  endif()
  if(HEED_DEBIAN STREQUAL "-")
    set(HEED_DEBIAN "")
  else()
    set(HEED_DEBIAN " (Debian: ${HEED_DEBIAN})")
  endif()
endmacro()

# heed_is_missing(NAME): adds a library to the list of those to install.
macro(heed_is_missing name)
  heed_row(${name})
  list(APPEND HEED_MISSING "${name}${HEED_DEBIAN}")
endmacro()

# heed_has(NAME VERSION PLACE ADVICE): holds a version that was found against the table.
macro(heed_has name version place advice)
  heed_row(${name})
  if(NOT HEED_OLDEST STREQUAL "-" AND NOT "${version}" STREQUAL "")
    list(APPEND HEED_VERSIONS "${name} ${version}")
    if("${version}" VERSION_LESS HEED_OLDEST)
      list(APPEND HEED_MISSING "${name} ${HEED_KNOWN_TO_WORK}${HEED_DEBIAN}: ${version} in ${place} is too old: ${advice}")
    elseif(NOT HEED_NEWEST STREQUAL "-" AND "${version}" VERSION_GREATER HEED_NEWEST AND NOT "${version}." MATCHES "^${HEED_NEWEST}[.]") # 14.3.1 is a 14.3
      list(APPEND HEED_NEWER "${name} ${version} is newer than ${HEED_NEWEST}, the newest that heed was tried with")
    endif()
  endif()
endmacro()

# heed_read_version(NAME FOLDERS VERSION PLACE): the version by the header that the compiler finds, in these folders or its own; else "".
function(heed_read_version name folders version place)
  heed_row(${name})
  set(${version} "" PARENT_SCOPE)
  list(LENGTH HEED_ROW columns)
  if(columns LESS 6)
    return()
  endif()
  list(GET HEED_ROW 4 headers)
  list(GET HEED_ROW 5 macro)
  string(REPLACE "|" ";" headers "${headers}")
  set(text "")
  set(if "#if")
  foreach(header ${headers})
    string(APPEND text "${if} __has_include(<${header}>)\n#include <${header}>\n")
    set(if "#elif")
  endforeach()
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/heed_version.cpp")
  file(WRITE "${probe}" "${text}#endif\n")
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  foreach(folder ${folders})
    if(NOT folder MATCHES "[$]<" AND NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES) # as CMake, which names none of these
      list(APPEND flags -isystem "${folder}")
    endif()
  endforeach()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flags} -std=c++20 -E -dD "${probe}" OUTPUT_VARIABLE text ERROR_QUIET)
  if(text MATCHES "#define ${macro}_MAJOR +([0-9]+)")
    set(found ${CMAKE_MATCH_1})
    foreach(part MINOR PATCH)
      if(text MATCHES "#define ${macro}_${part} +([0-9]+)")
        string(APPEND found .${CMAKE_MATCH_1})
      endif()
    endforeach()
  elseif(text MATCHES "#define ${macro} +\"[^0-9\"]*([0-9.]+)") # OpenBLAS's
    set(found ${CMAKE_MATCH_1})
  elseif(text MATCHES "#define ${macro} +([0-9]+)") # fmt's, 90100
    math(EXPR major "${CMAKE_MATCH_1} / 10000")
    math(EXPR minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR patch "${CMAKE_MATCH_1} % 100")
    set(found ${major}.${minor}.${patch})
  else()
    return()
  endif()
  list(JOIN headers "|" headers)
  if(text MATCHES "\"([^\"\n]*/(${headers}))\"")
    set(${place} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
  set(${version} ${found} PARENT_SCOPE)
endfunction()

# heed_check(NAME FOLDERS VERSION PLACE): a library that was found: by its header, or by this version of the package in this place.
macro(heed_check name folders version place)
  set(HEED_PLACE "${place}")
  heed_read_version(${name} "${folders}" HEED_VERSION HEED_PLACE)
  if("${HEED_VERSION}" STREQUAL "")
    set(HEED_VERSION "${version}")
  endif()
  set(HEED_VERSION_OF_${name} "${HEED_VERSION}")
  heed_has(${name} "${HEED_VERSION}" "${HEED_PLACE}" "install a newer one, or see that a newer one is found before it")
endmacro()

# heed_needs(NAME): a library that comes with a package for CMake.
macro(heed_needs name)
  find_package(${name} QUIET)
  if(${name}_FOUND)
    set(HEED_FOLDERS "")
    foreach(target ${name} ${name}::${name})
      if(TARGET ${target})
        get_target_property(HEED_FOLDERS ${target} INTERFACE_INCLUDE_DIRECTORIES)
      endif()
    endforeach()
    if(NOT HEED_FOLDERS)
      set(HEED_FOLDERS "")
    endif()
    heed_check(${name} "${HEED_FOLDERS}" "${${name}_VERSION}" "${${name}_DIR}")
  else()
    heed_is_missing(${name})
  endif()
endmacro()

# heed_needs_header(NAME HEADER VARIABLE): a library that is headers alone; the variable becomes their folder.
macro(heed_needs_header name header variable)
  find_path(${variable} ${header})
  if(${variable})
    heed_check(${name} "${${variable}}" "" "${${variable}}")
  else()
    heed_is_missing(${name})
  endif()
endmacro()

# heed_needs_library(NAME HEADER VARIABLE): a library without a package for CMake; the variable becomes its path, VARIABLE_INCLUDE its folder
# of headers.
macro(heed_needs_library name header variable)
  find_library(${variable} ${name})
  find_path(${variable}_INCLUDE ${header})
  if(${variable} AND ${variable}_INCLUDE)
    heed_check(${name} "${${variable}_INCLUDE}" "" "${${variable}_INCLUDE}")
  else()
    heed_is_missing(${name})
  endif()
endmacro()
