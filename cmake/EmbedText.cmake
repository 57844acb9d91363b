# Run by the build: puts texts into a C++ header, each as a constant.
#   cmake -DOUT=x.h -DFOLDER=dir -DPARTS=kName=file;... -P EmbedText.cmake
set(text "// Generated from the files of ${FOLDER}.\n\n")
foreach(part IN LISTS PARTS)
  string(REPLACE "=" ";" pair "${part}")
  list(GET pair 0 name)
  list(GET pair 1 file)
  file(READ "${FOLDER}/${file}" content)
  string(APPEND text "static constexpr const char ${name}[] = R\"dualpipe(${content})dualpipe\";\n")
endforeach()
file(WRITE "${OUT}" "${text}")
