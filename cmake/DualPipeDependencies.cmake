# What the runtime is built with. Needed: header-only libraries. Optional: math libraries.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)            # used as fmt::fmt-header-only
find_package(nlohmann_json REQUIRED) # used as nlohmann_json::nlohmann_json
find_package(Flatbuffers QUIET)
set(DUALPIPE_SCHEMA_HEADERS "" CACHE PATH "Headers that flatc has made of runtime/program/program.fbs; empty where flatc is at hand")
if(NOT DUALPIPE_SCHEMA_HEADERS)
  find_program(FLATC flatc REQUIRED)
endif()
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
find_path(DLPACK_INCLUDE_DIR dlpack/dlpack.h REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # used header-only, with XXH_INLINE_ALL

find_package(ZLIB QUIET)
if(ZLIB_FOUND)
  dualpipe_note("pages of --emit=html: compressed (zlib)")
else()
  dualpipe_note("pages of --emit=html: not compressed (zlib not found)")
endif()

# By hand: the package's own CMake file insists on OpenCL, which the CPU engine does not need.
find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  set(DNNL_FOUND TRUE)
  dualpipe_note("float32 math: oneDNN")
else()
  set(DNNL_FOUND FALSE)
  dualpipe_note("float32 math: plain loops (oneDNN not found)")
endif()

find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu)
find_library(OPENBLAS_LIBRARY openblas)
if(OPENBLAS_INCLUDE_DIR AND OPENBLAS_LIBRARY)
  set(OPENBLAS_FOUND TRUE)
  dualpipe_note("float64 math: OpenBLAS")
else()
  set(OPENBLAS_FOUND FALSE)
  dualpipe_note("float64 math: plain loops (OpenBLAS not found)")
endif()

dualpipe_note("MPI: left out (the mpi transport is not part of this version)")
