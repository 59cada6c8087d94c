# How targets are made here: options that hold for all, a library per room, programs, tests.

add_library(saccade_options INTERFACE)
target_compile_features(saccade_options INTERFACE cxx_std_20)
target_include_directories(saccade_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(saccade_options INTERFACE SACCADE_VERSION="${PROJECT_VERSION}" QT_NO_KEYWORDS QT_NO_CAST_TO_ASCII)
# g++ 12 warns of copies inside std::string and std::vector themselves (GCC bugs 105651, 105329).
target_compile_options(saccade_options INTERFACE
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>"
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SACCADE_WERROR}>>:-Werror>)
if(SACCADE_SANITIZE)
  target_compile_options(saccade_options INTERFACE -fsanitize=${SACCADE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(saccade_options INTERFACE -fsanitize=${SACCADE_SANITIZE})
  target_compile_definitions(saccade_options INTERFACE SACCADE_NO_CLONES)
endif()
if(SACCADE_COVERAGE)
  # Threads may lose a count to each other, never the first: counting atomically, which -pthread would ask for, makes the kernels many times
  # slower. -fprofile-update=single would say so, but ccache passes over what is compiled with it.
  target_compile_options(saccade_options INTERFACE --coverage)
  target_link_options(saccade_options INTERFACE --coverage)
  target_compile_definitions(saccade_options INTERFACE SACCADE_NO_CLONES)
endif()
if(SACCADE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SACCADE_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  set(fuzz_options -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_compile_options(saccade_options INTERFACE ${fuzz_options} -fno-omit-frame-pointer)
  target_link_options(saccade_options INTERFACE ${fuzz_options})
  target_compile_definitions(saccade_options INTERFACE SACCADE_NO_CLONES)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache takes sources with precompiled headers only when told that macros of theirs and times do not matter.
  # Paths below the checkout count from it, so that another checkout finds what was compiled in this one.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Headers that most sources of a target read, compiled once. A source still includes all that it uses: clang_test reads each
# one without them.
option(SACCADE_PRECOMPILE "Compile common headers once" ON)
function(saccade_precompile target)
  if(SACCADE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory>
      <optional> <span> <string> <string_view> <vector> ${ARGN})
  endif()
endfunction()

# A room: every source below its folder, as saccade_<room> for the programs that are installed and, made of the same objects, as shared library
# saccade_<room>_shared for the many that test: with kernels for GPUs in it, each of those would have 200 MB. models and ui are OBJECT libraries
# because their files register themselves, and a linker drops objects of a static library that nobody names.
function(saccade_module name kind)
  cmake_parse_arguments(ARG "" "" "LINKS;PRECOMPILE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cpp ${CMAKE_SOURCE_DIR}/${name}/*.h)
  add_library(saccade_${name} ${kind} ${sources})
  target_link_libraries(saccade_${name} PUBLIC saccade_options ${ARG_LINKS})
  saccade_precompile(saccade_${name} ${ARG_PRECOMPILE})
  set_target_properties(saccade_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
  if(name STREQUAL "ui")
    set_target_properties(saccade_${name} PROPERTIES AUTOMOC ON AUTORCC ON)
  endif()
  if(SACCADE_TESTS)
    add_library(saccade_${name}_shared SHARED $<TARGET_OBJECTS:saccade_${name}>)
    list(TRANSFORM ARG_LINKS REPLACE "^(saccade_.+)$" "\\1_shared")
    target_link_libraries(saccade_${name}_shared PUBLIC saccade_options ${ARG_LINKS})
    set_target_properties(saccade_${name}_shared PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# Links a program with a room and all rooms below it (object libraries must be named by the program itself); a program that tests links with
# saccade_<room>_shared alone.
function(saccade_link target room)
  set(rooms kernels models analysis ui)
  list(FIND rooms ${room} index)
  math(EXPR count "${index} + 1")
  list(SUBLIST rooms 0 ${count} used)
  list(REVERSE used)
  foreach(name IN LISTS used)
    target_link_libraries(${target} PRIVATE saccade_${name})
  endforeach()
endfunction()

# Tells one source file which commit is being built; empty outside a git checkout.
function(saccade_commit source)
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} describe --always --dirty --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/${source} PROPERTIES COMPILE_DEFINITIONS SACCADE_COMMIT="${commit}")
endfunction()
