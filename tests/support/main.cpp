#include <gmock/gmock.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>

// Every test program runs under the locale that TRAINYARD_TEST_LOCALE names, as it would inside a
// Qt program, which switches the C locale on: a decimal comma must change neither what is read nor
// what is written. Absent: the C locale.
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const char* locale = std::getenv("TRAINYARD_TEST_LOCALE");
  if (locale != nullptr && std::setlocale(LC_ALL, locale) == nullptr) {
    std::fprintf(stderr, "TRAINYARD_TEST_LOCALE: this machine has no locale %s\n", locale);
    return 1;
  }
  return RUN_ALL_TESTS();
}
