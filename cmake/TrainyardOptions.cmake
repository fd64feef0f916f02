# trainyard_options: what every target of the project is compiled with. Linked PRIVATE, so nothing of it leaks out.

option(TRAINYARD_WERROR "Treat warnings as errors (the presets switch it on)" OFF)
set(TRAINYARD_ONLY "" CACHE STRING "executor: the commands run and calibrate and what they need, of the tests those of the GPU")
if(TRAINYARD_ONLY AND NOT TRAINYARD_ONLY STREQUAL "executor")
  message(FATAL_ERROR "TRAINYARD_ONLY names '${TRAINYARD_ONLY}'; allowed is executor")
endif()
set(TRAINYARD_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

find_program(TRAINYARD_CCACHE ccache)
mark_as_advanced(TRAINYARD_CCACHE)
if(TRAINYARD_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TRAINYARD_CCACHE})
endif()

set(CMAKE_CXX_EXTENSIONS OFF)

add_library(trainyard_options INTERFACE)
add_library(trainyard::options ALIAS trainyard_options)
target_compile_features(trainyard_options INTERFACE cxx_std_20)
target_include_directories(trainyard_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(trainyard_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-align -Wcast-qual -Wextra-semi -Wformat=2 -Wmissing-declarations -Wundef
  -Wzero-as-null-pointer-constant
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond;-Wduplicated-branches;-Wlogical-op>
  # GCC 12 sees overlapping copies in `"literal" + std::string` that are not there (GCC bug 105651, fixed in 13).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # Designated initialisers name the fields they set and leave the rest at their defaults on purpose.
  -Wno-missing-field-initializers
  # A tenth of the time of a compilation goes into looking for memory that the compiler could use again, if it may not keep 1 GiB.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>
  $<$<BOOL:${TRAINYARD_WERROR}>:-Werror>)
target_compile_definitions(trainyard_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

# For what computes, where the presets have the rest compiled sooner: at -O2, and under sanitizers at -Og, with which a test of
# what computes takes a fourth more time than with -O1.
add_library(trainyard_computes INTERFACE)
add_library(trainyard::computes ALIAS trainyard_computes)
target_compile_options(trainyard_computes INTERFACE $<$<CONFIG:Release>:-O3> $<$<CONFIG:Debug>:-O1>)

# trainyard_computes(<library>): as above, and its copies of inline functions come first. Of the copies that several objects have
# of one, the linker keeps the first that it meets, which would be that of a test or of a command, compiled without optimising:
# what runs over a program's operations takes six times as long with it.
function(trainyard_computes library)
  target_link_libraries(${library} PRIVATE trainyard::computes)
  target_link_options(${library} INTERFACE
    "$<$<CONFIG:Debug>:LINKER:--whole-archive,$<TARGET_FILE:${library}>,--no-whole-archive>")
endfunction()

if(TRAINYARD_SANITIZE)
  target_compile_options(trainyard_options INTERFACE
    -fsanitize=${TRAINYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # A fourth of the time of a build goes into these five: AddressSanitizer sees what a bad pointer reads or writes, and the
    # processors that Trainyard runs on read numbers at any address.
    -fno-sanitize=null,object-size,pointer-overflow,vptr,alignment
    # Instrumented code leads g++ to see uninitialised values in Boost that are none; the release build keeps both warnings.
    -Wno-uninitialized -Wno-maybe-uninitialized)
  target_link_options(trainyard_options INTERFACE -fsanitize=${TRAINYARD_SANITIZE})

  # A call that checks an access is compiled in a fifth less time than the check itself, which is faster when it runs.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TRAINYARD_SANITIZE MATCHES "address")
    target_compile_options(trainyard_options INTERFACE --param=asan-instrumentation-with-call-threshold=0)
    target_compile_options(trainyard_computes INTERFACE --param=asan-instrumentation-with-call-threshold=7000)  # the default
  endif()
endif()
