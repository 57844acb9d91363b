# LLVM and MLIR 22 as shared libraries, and tablegen for our dialects.

if(NOT MLIR_DIR AND EXISTS /usr/lib/llvm-22/lib/cmake/mlir)
  set(MLIR_DIR /usr/lib/llvm-22/lib/cmake/mlir)
endif()
find_package(MLIR REQUIRED CONFIG)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "found LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}, expected 22")
endif()
dualpipe_note("LLVM ${LLVM_PACKAGE_VERSION}")

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})
include_directories(SYSTEM ${PROJECT_BINARY_DIR}) # generated code has unused parameters

# MLIR's headers are most of the compile time, so they are compiled once. Every target that reuses
# them must be compiled with the same options.
function(dualpipe_set_mlir_options target)
  # LLVM 22 is built without exceptions; ours follow it. RTTI is on in Debian's build.
  target_compile_options(${target} PRIVATE -fno-exceptions)
  target_link_libraries(${target} PUBLIC fmt::fmt-header-only)
endfunction()

file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp "")
dualpipe_add_library(dualpipe_mlir_headers ${PROJECT_BINARY_DIR}/precompiled.cpp)
dualpipe_set_mlir_options(dualpipe_mlir_headers)
target_precompile_headers(dualpipe_mlir_headers PRIVATE
  <mlir/Bytecode/BytecodeOpInterface.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/OpImplementation.h>
  <mlir/Pass/PassManager.h>)

# dualpipe_add_mlir_library(NAME sources... [DEPENDS targets...] [LINK_LIBS libs...])
# MLIR and LLVM come from the shared libraries, once, for every tool that links this.
function(dualpipe_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  dualpipe_add_library(${name} ${ARG_UNPARSED_ARGUMENTS} LINK_LIBS ${ARG_LINK_LIBS} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  dualpipe_set_mlir_options(${name})
  target_precompile_headers(${name} REUSE_FROM dualpipe_mlir_headers)
endfunction()
