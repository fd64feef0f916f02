// scenarios/schema/ and docs/scenarios.md are generated from the tables of fields and checked in.
// The tests compare them, or write them if TRAINYARD_WRITE_GENERATED=1. scripts/derive-devices
// writes what devices take from other devices.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "scenarios/fields/example.h"
#include "scenarios/fields/kinds.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"
#include "scenarios/schema.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

void expect_current(const std::filesystem::path& file, const std::string& text) {
  if (std::getenv("TRAINYARD_WRITE_GENERATED") != nullptr) {
    ASSERT_TRUE(write_file(file, text).has_value());
  }
  EXPECT_TRUE(read_file(file).value_or("") == text)
      << file << " is not current: TRAINYARD_WRITE_GENERATED=1 ctest -R GeneratedFiles";
}

TEST(GeneratedFiles, SchemasAreCurrent) {
  for (const std::string_view kind : document_kinds()) {
    const auto file = source_folder() / "scenarios" / "schema" / (std::string(kind) + ".json");
    expect_current(file, json_schema(kind).value());
  }
}

TEST(GeneratedFiles, DocumentationIsCurrent) {
  expect_current(source_folder() / "docs" / "scenarios.md", documents_reference());
}

void expect_allowed_examples(const SectionSpec& section) {
  const Document document{section.name, {}, nullptr};
  for (const FieldSpec& field : section.fields) {
    const auto fits = check(field.shape, example_of(section, field), {&document, "/" + field.key});
    EXPECT_TRUE(fits.has_value()) << fits.error().where << ": " << fits.error().message;
  }
}

TEST(GeneratedFiles, HaveAnAllowedExampleOfEveryKey) {
  for (const DocumentKind& kind : kinds()) {
    expect_allowed_examples(kind.section());
    for (const SectionSpec* part : parts_of(kind.section())) expect_allowed_examples(*part);
  }
}

TEST(GeneratedFiles, DerivedDevicesAreCurrent) {
  const auto script = source_folder() / "scripts" / "derive-devices";
  EXPECT_EQ(std::system(("/usr/bin/python3 '" + script.string() + "' --check").c_str()), 0)
      << "not current: scripts/derive-devices";
}

TEST(GeneratedFiles, SchemaOfAnUnknownKindSaysWhichThereAre) {
  EXPECT_EQ(
      json_schema("secnario").error().message,
      "found \"secnario\"; allowed: scenario, model, device, node, fabric, stack, passes, profile, "
      "sweep");
}

}  // namespace
}  // namespace trainyard
