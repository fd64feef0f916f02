# A family is a folder of interchangeable things, one constant per file: adding one is adding one file.
#
#   trainyard_family(TARGET trainyard_model FOLDER kinds TYPE Schedule HEADER model/schedule/schedule.h FUNCTION schedules)
#
# globs FOLDER/*.cpp, adds the files to TARGET and writes a table, sorted by file name. FOLDER/gpipe.cpp must define
#
#   namespace trainyard::kinds {
#   extern const Schedule gpipe = {...};   // constant name = file name, or the link fails; namespace = folder name
#   }
#
# and HEADER declares the function that the table defines: `std::span<const Schedule* const> schedules();`
# These are the only globs in the build. (A registry filled by static objects would lose entries in a static library.)
function(trainyard_family)
  cmake_parse_arguments(PARSE_ARGV 0 family "" "TARGET;FOLDER;TYPE;HEADER;FUNCTION" "")
  file(GLOB files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${CMAKE_CURRENT_SOURCE_DIR}/${family_FOLDER}/*.cpp)
  list(SORT files)
  set(externs "")
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
      message(FATAL_ERROR "${file}: the file name must be an identifier, it names the constant")
    endif()
    string(APPEND externs "extern const ${family_TYPE} ${name};\n")
    string(APPEND entries "    &${family_FOLDER}::${name},\n")
  endforeach()
  list(LENGTH files count)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${family_FUNCTION}_table.cpp)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT [[
// Written by trainyard_family() in cmake/TrainyardFamily.cmake.
#include <array>

#include "@family_HEADER@"

namespace trainyard {
namespace @family_FOLDER@ {
// NOLINTBEGIN(readability-identifier-naming): named after their files
@externs@// NOLINTEND(readability-identifier-naming)
}  // namespace @family_FOLDER@

std::span<const @family_TYPE@* const> @family_FUNCTION@() {
  static constexpr std::array<const @family_TYPE@*, @count@> kTable = {
@entries@  };
  return kTable;
}

}  // namespace trainyard
]])
  target_sources(${family_TARGET} PRIVATE ${files} ${table})
  # The same function has the same name in each file of the family.
  set_source_files_properties(${files} TARGET_DIRECTORY ${family_TARGET} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
