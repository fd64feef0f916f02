# trainyard_library(<folder> [IN_BATCHES]): the static library trainyard_<folder>, alias trainyard::<folder>. Its sources are
# added by the CMakeLists.txt of the folder and of its subfolders with target_sources().
# IN_BATCHES: where CMAKE_UNITY_BUILD is on (scripts/test), several sources are compiled as one, for it is their headers that
# take the time. A name of an anonymous namespace is then the only one of its library. A family's files all have the same
# names, so its library stays apart.
function(trainyard_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 library "IN_BATCHES" "" "")
  add_library(trainyard_${folder} STATIC)
  add_library(trainyard::${folder} ALIAS trainyard_${folder})
  target_include_directories(trainyard_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_features(trainyard_${folder} PUBLIC cxx_std_20)
  target_link_libraries(trainyard_${folder} PRIVATE trainyard::options)
  if(NOT library_IN_BATCHES)
    set_target_properties(trainyard_${folder} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()
