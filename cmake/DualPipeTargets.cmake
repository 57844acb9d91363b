# Functions that add our targets with one set of warnings, and ccache where it is found.

find_program(DUALPIPE_CCACHE ccache)
if(DUALPIPE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${DUALPIPE_CCACHE})
  # The sloppiness that ccache asks for before it caches what uses precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${DUALPIPE_CCACHE})
endif()

if(DUALPIPE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(DUALPIPE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(DUALPIPE_SANITIZE)
  message(FATAL_ERROR "DUALPIPE_SANITIZE is '${DUALPIPE_SANITIZE}', expected thread, address or empty")
endif()

# The sanitizers' presets put several sources into one, which takes a quarter of the time. What is
# local to a source is local to all of them then; where two names collide, one source is left out
# of it (SKIP_UNITY_BUILD_INCLUSION).
if(CMAKE_UNITY_BUILD)
  add_compile_options(-Wno-subobject-linkage)
endif()

# Warnings are errors in our own code.
function(dualpipe_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
  # g++ 12 sees overlapping and overlong copies in "text" + std::string where there are none (GCC
  # bugs 105329 and 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds
      -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# dualpipe_add_library(NAME sources... [LINK_LIBS libs...])
function(dualpipe_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  dualpipe_set_warnings(${name})
endfunction()

# dualpipe_add_executable(NAME sources... [LINK_LIBS libs...])
function(dualpipe_add_executable name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  dualpipe_set_warnings(${name})
endfunction()

# What was found and what was left out, printed at the end of configuration.
set_property(GLOBAL PROPERTY DUALPIPE_SUMMARY "")
function(dualpipe_note text)
  set_property(GLOBAL APPEND PROPERTY DUALPIPE_SUMMARY "${text}")
endfunction()
function(dualpipe_print_summary)
  get_property(lines GLOBAL PROPERTY DUALPIPE_SUMMARY)
  foreach(line IN LISTS lines)
    message(STATUS "dualpipe: ${line}")
  endforeach()
endfunction()
