# Copies what the runtime is built with into a folder that find_package and find_path understand, for
# machines without network: cmake -DOUT=FOLDER -DSCHEMA=program.fbs -P BringHeaders.cmake
# All of it is used header-only.

foreach(header fmt/core.h nlohmann/json.hpp flatbuffers/flatbuffers.h CLI/CLI.hpp dlpack/dlpack.h)
  string(REGEX MATCH "^[^/]+" folder ${header})
  unset(found CACHE)
  find_path(found ${header} PATHS /usr/include /usr/local/include REQUIRED)
  file(COPY ${found}/${folder} DESTINATION ${OUT}/include)
endforeach()
unset(found CACHE)
find_path(found xxhash.h PATHS /usr/include /usr/local/include REQUIRED)
file(COPY ${found}/xxhash.h DESTINATION ${OUT}/include)

set(head "get_filename_component(prefix \${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)\n")
function(write_package name target definitions)
  file(WRITE ${OUT}/cmake/${name}/${name}Config.cmake
    "${head}add_library(${target} INTERFACE IMPORTED)\n"
    "set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES \${prefix}/include\n"
    "  INTERFACE_COMPILE_DEFINITIONS \"${definitions}\")\n")
endfunction()
write_package(fmt fmt::fmt-header-only FMT_HEADER_ONLY=1)
write_package(nlohmann_json nlohmann_json::nlohmann_json "")

find_program(FLATC flatc PATHS /usr/bin /usr/local/bin REQUIRED)
execute_process(COMMAND ${FLATC} --cpp --scoped-enums -o ${OUT}/generated ${SCHEMA} COMMAND_ERROR_IS_FATAL ANY)
