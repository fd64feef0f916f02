#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <string>

// The pass under de_DE.UTF-8 is worth something only if the locale is really on: then the C library
// writes 1,5.
TEST(TestLocale, HasADecimalCommaInTheGermanPass) {
  const char* locale = std::getenv("TRAINYARD_TEST_LOCALE");
  const bool german = locale != nullptr && std::string(locale).starts_with("de_");
  EXPECT_STREQ(std::localeconv()->decimal_point, german ? "," : ".");
}
