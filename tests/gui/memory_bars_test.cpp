#include "gui/charts/memory_bars.h"

#include <gtest/gtest.h>

#include <QImage>
#include <set>

#include "gui/charts/colours.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

// All parts have size zero, so their colours occur in the legend alone.
TEST(MemoryBars, HaveAKeyForEveryPartAtAnySizeOfTheFont) {
  const std::vector<std::string> keys = {"parameters",  "gradients",     "optimizer",
                                         "activations", "recomputation", "logits",
                                         "buffers",     "runtime",       "fragmentation"};
  std::vector<BarPart> parts;
  std::set<QRgb> expected;
  for (const std::string& key : keys) {
    parts.push_back({key, QStringLiteral("some bytes of memory"), {}, 0});
    expected.insert(colour_of(key, false).rgb());
  }
  ASSERT_EQ(expected.size(), keys.size());  // each part has its own colour
  for (const int size : {9, 12, 20}) {
    MemoryBars bars;
    QFont font = bars.font();
    font.setPointSize(size);
    bars.setFont(font);
    bars.resize(480, 400);
    bars.set_stages({{QStringLiteral("0"), parts}}, 80e9);
    const QImage image = bars.grab().toImage();
    std::set<QRgb> seen;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        if (expected.contains(image.pixel(x, y))) seen.insert(image.pixel(x, y));
      }
    }
    EXPECT_EQ(seen, expected) << size;
  }
}

}  // namespace
}  // namespace trainyard
