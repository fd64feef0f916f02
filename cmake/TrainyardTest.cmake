# trainyard_test(<name> LABEL <unit|law|case|gui|mpi|gpu> SOURCES <file>... [LIBS <target>...])
# One test program, usually one per folder; ctest runs each of its tests on its own, under the label.
find_package(GTest 1.12 REQUIRED)
include(GoogleTest)

function(trainyard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "LABEL" "SOURCES;LIBS")
  if(NOT test_LABEL MATCHES "^(unit|law|case|gui|mpi|gpu)$")
    message(FATAL_ERROR "trainyard_test(${name}): LABEL is '${test_LABEL}'; allowed are unit law case gui mpi gpu")
  endif()
  if(NOT test_SOURCES)  # until the folder has its first test
    return()
  endif()
  add_executable(${name} ${test_SOURCES})
  target_link_libraries(${name} PRIVATE ${test_LIBS} trainyard::test_support trainyard::options)
  # What is tested is optimised; a test itself is compiled twice as fast without.
  target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${test_LABEL} TIMEOUT 300)
endfunction()
