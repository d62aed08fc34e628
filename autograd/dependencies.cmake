# What heed's libraries stand on, for its own build and for find_package(heed) alike. Fills HEED_MISSING, HEED_NEWER and HEED_VERSIONS
# (versions.cmake).
include("${CMAKE_CURRENT_LIST_DIR}/versions.cmake")

if(APPLE) # Homebrew keeps these two out of its own prefix, since the system has others of their names
  foreach(folder /opt/homebrew /usr/local)
    list(APPEND CMAKE_PREFIX_PATH ${folder} ${folder}/opt/openblas ${folder}/opt/openssl@3)
  endforeach()
endif()

heed_needs(Threads)
heed_needs(fmt)
heed_needs(xsimd)
heed_needs(xtensor)
heed_needs(nlohmann_json)
heed_needs(OpenSSL)

# Debian installs flavours of OpenBLAS side by side and an alternative decides at run time which of them a program gets. This is
# the OpenMP flavour by its own path, in link and rpath alike. Fedora calls that openblaso, and a serial one openblas.
option(HEED_ACCELERATE "On macOS: Apple's Accelerate, though there is OpenBLAS" OFF)
find_library(OPENBLAS NAMES openblaso openblas PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp openblas)
if(APPLE AND (HEED_ACCELERATE OR NOT OPENBLAS OR NOT OPENBLAS_INCLUDE))
  if(NOT TARGET heed::openblas)
    add_library(heed::openblas INTERFACE IMPORTED GLOBAL)
    target_link_libraries(heed::openblas INTERFACE "-framework Accelerate")
    target_compile_definitions(heed::openblas INTERFACE HEED_ACCELERATE)
  endif()
  set(OPENBLAS Accelerate)
elseif(OPENBLAS AND OPENBLAS_INCLUDE)
  get_filename_component(OPENBLAS_FOLDER ${OPENBLAS} DIRECTORY)
  if(NOT TARGET heed::openblas)
    add_library(heed::openblas INTERFACE IMPORTED GLOBAL)
    target_link_libraries(heed::openblas INTERFACE ${OPENBLAS})
    target_link_options(heed::openblas INTERFACE -Wl,-rpath,${OPENBLAS_FOLDER})
    target_include_directories(heed::openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
  endif()
  heed_check(OpenBLAS "${OPENBLAS_INCLUDE}" "" "${OPENBLAS_INCLUDE}")
else()
  heed_is_missing(OpenBLAS)
endif()
