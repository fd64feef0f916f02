# trainyard_library(<folder>): the static library trainyard_<folder>, alias trainyard::<folder>. Its sources are
# added by the CMakeLists.txt of the folder and of its subfolders with target_sources().
# Where CMAKE_UNITY_BUILD is on (scripts/test), several sources are compiled as one, for it is their headers that take the
# time. A name of an anonymous namespace is therefore the only one of its library, but for a family's files, which stay apart.
function(trainyard_library folder)
  add_library(trainyard_${folder} STATIC)
  add_library(trainyard::${folder} ALIAS trainyard_${folder})
  target_include_directories(trainyard_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_features(trainyard_${folder} PUBLIC cxx_std_20)
  target_link_libraries(trainyard_${folder} PRIVATE trainyard::options)
endfunction()
