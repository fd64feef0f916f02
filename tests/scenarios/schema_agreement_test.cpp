// The reader and the JSON Schema are generated from one table. Here an independent validator
// (python3-jsonschema) checks that the schema judges every document as the reader does: the
// catalog, the examples, the measured runs, the bad documents, and thousands of mutations of good
// ones.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "scenarios/catalog.h"
#include "scenarios/fields/kinds.h"
#include "scenarios/fields/reference.h"
#include "scenarios/json/file.h"
#include "tests/scenarios/test_folder.h"
#include "tests/support/random_cases.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// Whether the reader's check of shapes accepts `document` as the kind that its tag names, or as a
// scenario without a tag. References are not followed.
bool has_its_shape(Json document) {
  const Document name{.name = "test"};
  const Place place{&name, ""};
  for (const DocumentKind& kind : kinds()) {
    const bool tagged = document.is_object() &&
                        document.value("trainyard", Json()) == fmt::format("{}/1", kind.name);
    if (!tagged) continue;
    return take_tag(document, kind.name, place).has_value() &&
           check(kind.section(), document, place).has_value();
  }
  return false;
}

// Keys that name a member of a growing family (schedules, algorithms), which the schema does not
// list.
bool names_a_family_member(std::string_view pointer) {
  return pointer.find("/schedule") != std::string_view::npos || pointer == "/plan/collective";
}

// All entries of a list follow one rule, so two of them stand for all.
bool is_later_entry(const std::string& pointer) {
  static const std::regex kThirdOrLater("/([2-9]|[1-9][0-9]+)(/|$)");
  return std::regex_search(pointer, kThirdOrLater);
}

// The corpus has one line per document: its kind, the expected verdict of the schema, the document.
class Corpus {
 public:
  explicit Corpus(const fs::path& file) : stream_(file) {}

  void add(const Json& document, std::string_view kind, bool good) {
    stream_ << kind << '\t' << (good ? "good" : "bad") << '\t' << document.dump() << '\n';
    ++size_;
  }
  // Replaces every value of `document` in turn by each odd value (in a list, only the first two
  // entries), and removes every key in turn.
  void add_mutations(const Json& document, std::string_view kind) {
    const Json flat = document.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      if (names_a_family_member(pointer) || is_later_entry(pointer)) continue;
      for (const Json& odd : odd_values()) {
        if (is_next_tried()) mutate(document, kind, pointer, odd);
      }
    }
    for (const auto& [key, value] : document.items()) {
      Json without = document;
      without.erase(key);
      add(without, kind, has_its_shape(without));
      mutate(document, kind, fmt::format("/{}", key), Json::array());
      mutate(document, kind, fmt::format("/{}x", key), value);
    }
  }
  std::size_t size() const { return size_; }

 private:
  static const std::vector<Json>& odd_values() {
    static const std::vector<Json> values = {nullptr,
                                             true,
                                             -1,
                                             0,
                                             1,
                                             3,
                                             2.5,
                                             1e308,
                                             "",
                                             "bf16",
                                             "1 GB",
                                             "1 GB/s",
                                             "0 s",
                                             "1e-7 s",
                                             "x/y",
                                             "two\nlines",
                                             "none",
                                             "1f1b",
                                             "700 W",
                                             "ring",
                                             "-1 s",
                                             "1.5 h",
                                             "1e5 B",
                                             Json::object(),
                                             {1, 2},
                                             {"a"},
                                             Json{{"full", 2}},
                                             Json{{"full", 0}}};
    return values;
  }
  void mutate(const Json& document, std::string_view kind, const std::string& pointer,
              const Json& value) {
    Json mutated = document;
    mutated[Json::json_pointer(pointer)] = value;
    add(mutated, kind, has_its_shape(mutated));
  }

  std::ofstream stream_;
  std::size_t size_ = 0;
};

Json parsed(const fs::path& file) { return parse_json(read_file(file).value()).value(); }

// The tag names the kind of a good document; a bad document is meant as a scenario.
std::string kind_of(const Json& document) {
  const std::string tag = document.at("trainyard");
  return tag.substr(0, tag.find('/'));
}

std::vector<Json> good_documents() {
  std::vector<Json> documents;
  for (const CatalogEntry& entry : catalog()) documents.push_back(parse_json(entry.text).value());
  for (const fs::path& folder : {source_folder() / "scenarios" / "examples",
                                 source_folder() / "scenarios" / "cases", test_folder() / "good"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const Json document = parsed(entry.path());
      if (document.contains("trainyard")) documents.push_back(document);
    }
  }
  return documents;
}

std::vector<Json> measured_documents() {
  std::vector<Json> documents;
  if (!shared_data()) return documents;
  for (const auto& entry : fs::directory_iterator(*shared_data() / "measured" / "runs")) {
    for (const Json& row : parsed(entry.path())) documents.push_back(row);
  }
  return documents;
}

// Returns 0 if all verdicts agree, 1 if not (the script says where), 2 if the validator is not
// installed.
int compare_with_schemas(const fs::path& corpus) {
  const std::string command =
      "/usr/bin/python3 '" + (test_folder() / "schema_agreement.py").string() + "' '" +
      (source_folder() / "scenarios" / "schema").string() + "' '" + corpus.string() + "'";
  return WEXITSTATUS(std::system(command.c_str()));
}

void expect_agreement(const fs::path& corpus) {
  const int status = compare_with_schemas(corpus);
  fs::remove(corpus);
  if (status == 2) {
    ASSERT_FALSE(shared_data_required()) << "CI=true, and python3-jsonschema is not installed";
    GTEST_SKIP() << "python3-jsonschema is not installed";
  }
  EXPECT_EQ(status, 0) << "reader and schema disagree, see above";
}

fs::path corpus_file(const char* name) {
  return fs::path(::testing::TempDir()) / (std::string(name) + "." + std::to_string(::getpid()));
}

TEST(SchemaAgreement, OnGoodDocumentsBothSayYes) {
  const fs::path file = corpus_file("good");
  {
    Corpus corpus(file);
    for (const std::vector<Json>& documents : {good_documents(), measured_documents()}) {
      for (const Json& document : documents) {
        EXPECT_TRUE(has_its_shape(document)) << document.dump().substr(0, 200);
        corpus.add(document, kind_of(document), true);
      }
    }
  }
  expect_agreement(file);
}

// Both refuse shape/; the schema accepts exactly the documents of meaning/.
TEST(SchemaAgreement, OnBadDocumentsAsFarAsASchemaSees) {
  const fs::path file = corpus_file("bad");
  {
    Corpus corpus(file);
    for (const std::string folder : {"shape", "meaning"}) {
      for (const auto& entry : fs::directory_iterator(test_folder() / "bad" / folder)) {
        if (!entry.is_regular_file()) continue;
        // Not parse_json, which would refuse duplicate keys.
        const Json document = Json::parse(read_file(entry.path()).value());
        EXPECT_FALSE(folder == "shape" && has_its_shape(document)) << entry.path();
        corpus.add(document, "scenario", folder == "meaning");
      }
    }
  }
  expect_agreement(file);
}

TEST(SchemaAgreement, OnMutationsOfGoodDocuments) {
  const fs::path file = corpus_file("mutations");
  {
    Corpus corpus(file);
    for (const char* name : {"everything", "spelled_out", "mixture", "fabric"}) {
      const Json document = parsed(test_folder() / "good" / (std::string(name) + ".json"));
      corpus.add_mutations(document, kind_of(document));
    }
    for (const auto& [kind, name] :
         {std::pair{"device", "a100-sxm-40gb"}, {"node", "gb200-nvl72"}, {"stack", "internevo"}}) {
      corpus.add_mutations(parse_json(find_in_catalog(kind, name)->text).value(), kind);
    }
    EXPECT_GT(corpus.size(), static_cast<std::size_t>(random_cases(3000)));
  }
  expect_agreement(file);
}

}  // namespace
}  // namespace trainyard
