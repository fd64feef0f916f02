#include <gmock/gmock.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

// Temporary files of this program alone, gone when it ends: what a killed one left can have the
// name that a process of the same number would choose.
class OwnTemporaryFolder {
 public:
  OwnTemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "trainyard-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return;
    path_ = name;
    for (const char* variable : {"TMPDIR", "TEST_TMPDIR"}) ::setenv(variable, name.c_str(), 1);
  }
  OwnTemporaryFolder(const OwnTemporaryFolder&) = delete;
  OwnTemporaryFolder& operator=(const OwnTemporaryFolder&) = delete;
  ~OwnTemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

// Every test program runs under the locale that TRAINYARD_TEST_LOCALE names, as it would inside a
// Qt program, which switches the C locale on: a decimal comma must change neither what is read nor
// what is written. Absent: the C locale.
int main(int argc, char** argv) {
  const OwnTemporaryFolder folder;
  testing::InitGoogleMock(&argc, argv);
  const char* locale = std::getenv("TRAINYARD_TEST_LOCALE");
  if (locale != nullptr && std::setlocale(LC_ALL, locale) == nullptr) {
    std::fprintf(stderr, "TRAINYARD_TEST_LOCALE: this machine has no locale %s\n", locale);
    return 1;
  }
  return RUN_ALL_TESTS();
}
