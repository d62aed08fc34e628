# What heed's libraries stand on, for its own build and for find_package(heed) alike. Fills HEED_MISSING with what is not there, each with
# Debian 12's package.

set(HEED_MISSING "")

macro(heed_needs package debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND HEED_MISSING "${package} (Debian: ${debian})")
  endif()
endmacro()

heed_needs(Threads libc6-dev)
heed_needs(fmt libfmt-dev)
heed_needs(xsimd libxsimd-dev)
heed_needs(xtensor libxtensor-dev)
heed_needs(nlohmann_json nlohmann-json3-dev)
heed_needs(OpenSSL libssl-dev)

# Debian installs flavours of OpenBLAS side by side and an alternative decides at run time which of them a program gets. This is
# the OpenMP flavour by its own path, in link and rpath alike.
find_library(OPENBLAS openblas PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp openblas)
if(OPENBLAS AND OPENBLAS_INCLUDE)
  get_filename_component(OPENBLAS_FOLDER ${OPENBLAS} DIRECTORY)
  if(NOT TARGET heed::openblas)
    add_library(heed::openblas INTERFACE IMPORTED GLOBAL)
    target_link_libraries(heed::openblas INTERFACE ${OPENBLAS})
    target_link_options(heed::openblas INTERFACE -Wl,-rpath,${OPENBLAS_FOLDER})
    target_include_directories(heed::openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
  endif()
else()
  list(APPEND HEED_MISSING "OpenBLAS (Debian: libopenblas-openmp-dev)")
endif()

list(JOIN HEED_MISSING ", " HEED_MISSING)
