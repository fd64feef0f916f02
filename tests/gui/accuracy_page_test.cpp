// The Accuracy page of the real window: errors over properties of the runs.
#include "gui/pages/accuracy_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>

#include "gui/charts/scatter.h"
#include "gui/presenters/accuracy_check.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string run_of(const std::string& model) {
  return R"({"trainyard": "scenario/1", "name": ")" + model + R"(", "model": ")" + model +
         R"(", "cluster": {"node": "dgx-h100-80gb", "nodes": 64},
    "training": {"global_batch": 512, "sequence_length": 4096},
    "plan": {"tensor_parallel": 8, "pipeline_parallel": 2},
    "measured": {"step_time": "2 s", "source": "made up"}})";
}

TEST_F(Window, ErrorsBySizeStandFromTheSmallestToTheLargest) {
  window_.accuracy().start(
      {written("sizes.json", "[" + run_of("llama-3.1-405b") + "," + run_of("llama-3.1-8b") + "," +
                                 run_of("llama-3.1-70b") + "]")});
  ASSERT_TRUE(wait_until([&] { return window_.accuracy().report() != nullptr; }));
  auto& page = *window_.findChild<AccuracyPage*>();
  auto& picture = *page.findChild<QComboBox*>();
  picture.setCurrentIndex(picture.findText(QStringLiteral("Error by size")));
  const QString data = page.findChild<Scatter*>()->data_text();
  EXPECT_TRUE(data.startsWith(QStringLiteral("parameters\terror\t"))) << data.toStdString();
  const QStringList lines = data.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  ASSERT_EQ(lines.size(), 4);
  const std::pair<const char*, const char*> places[] = {
      {"llama-3.1-8b", "0"}, {"llama-3.1-70b", "1"}, {"llama-3.1-405b", "2"}};
  for (const auto& [name, place] : places) {
    const QStringList found = lines.filter(QLatin1String(name));
    ASSERT_EQ(found.size(), 1) << name;
    EXPECT_EQ(found.front().section(QLatin1Char('\t'), 0, 0), QLatin1String(place)) << name;
  }
  // No run has a measured memory.
  EXPECT_THAT(window_.accuracy().summary().toStdString(), Not(HasSubstr("memory")));
}

}  // namespace
}  // namespace trainyard
