# `cmake --install` puts the programs into bin/, with the licence and the example scenarios; `cpack` in a build folder makes a
# Debian package of it. The catalog is compiled in.
install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY scenarios/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/trainyard/scenarios)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "the Trainyard authors")
set(CPACK_PACKAGE_CONTACT "the Trainyard authors")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin) # mpirun, which `run` and `calibrate` start
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
