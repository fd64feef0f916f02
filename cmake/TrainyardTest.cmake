# trainyard_test(<name> LABEL <unit|law|case|gui|mpi|gpu> SOURCES <file>... [LIBS <target>...] [APART <suite>...] [COMPUTES])
# One test program, usually one per folder, under the label. ctest runs each of its suites as a test: to start a process takes
# longer than most tests do, under AddressSanitizer a tenth of a second. A test has a process to itself where it starts
# others or has windows (gui, mpi) and where its suite is too long for one (APART); those begin first. COMPUTES: most of its
# time goes into code of its own.
find_package(GTest 1.12 REQUIRED)

function(trainyard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "COMPUTES" "LABEL" "SOURCES;LIBS;APART")
  if(NOT test_LABEL MATCHES "^(unit|law|case|gui|mpi|gpu)$")
    message(FATAL_ERROR "trainyard_test(${name}): LABEL is '${test_LABEL}'; allowed are unit law case gui mpi gpu")
  endif()
  if(NOT test_SOURCES)  # until the folder has its first test
    return()
  endif()
  if(test_LABEL MATCHES "^(gui|mpi)$")
    set(test_APART ALL)
  endif()
  add_executable(${name} ${test_SOURCES})
  target_link_libraries(${name} PRIVATE ${test_LIBS} trainyard::test_support trainyard::options)
  # What is tested is optimised; a test itself is compiled twice as fast without, under sanitizers a quarter faster.
  target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  if(test_COMPUTES)
    target_link_libraries(${name} PRIVATE $<$<CONFIG:Debug>:trainyard::computes>)
  else()
    target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug>>:-O0>)
  endif()
  if(CMAKE_UNITY_BUILD AND NOT test_COMPUTES AND NOT test_LABEL STREQUAL "gui")  # Qt's code is compiled for any place
    target_precompile_headers(${name} REUSE_FROM trainyard_test_support)
  endif()
  # ctest asks the program for its suites, so that it is not started while it is built.
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  file(GENERATE OUTPUT ${suites} CONTENT "set(program \"$<TARGET_FILE:${name}>\")
set(label ${test_LABEL})
set(apart ${test_APART})
include(\"${PROJECT_SOURCE_DIR}/cmake/TestsOfProgram.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites})
endfunction()
