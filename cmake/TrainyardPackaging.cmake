# `cmake --install` puts the program into bin/; `cpack` in a build folder makes a Debian package of it. The catalog is compiled in.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the Trainyard authors")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
