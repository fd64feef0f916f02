#include "gui/charts/colours.h"

#include <QPalette>
#include <algorithm>
#include <array>

namespace trainyard {
namespace {

struct Named {
  std::string_view key;
  QRgb light, dark;
};

// Work is blue, communication is warm, waiting is grey. Memory has a colour for each purpose.
constexpr std::array kColours = {
    Named{"compute", 0xff2a78d6, 0xff3987e5},
    Named{"embedding_head", 0xff86b6ef, 0xff9ec5f4},
    Named{"tensor_parallel", 0xffeb6834, 0xffd95926},
    Named{"context_parallel", 0xffeda100, 0xffc98500},
    Named{"expert_parallel", 0xffe87ba4, 0xffd55181},
    Named{"pipeline", 0xffe34948, 0xffe66767},
    Named{"data_parallel", 0xff4a3aa7, 0xff9085e9},
    Named{"optimizer", 0xff1baf7a, 0xff199e70},
    Named{"recompute", 0xff22a6c4, 0xff3fbcd8},
    Named{"offload", 0xff7a5230, 0xffb08968},
    Named{"launch", 0xff008300, 0xff33a033},
    Named{"bubble", 0xffb4b2aa, 0xff6b6a66},
    Named{"other", 0xff898781, 0xff898781},
    Named{"parameters", 0xff2a78d6, 0xff3987e5},
    Named{"gradients", 0xffeb6834, 0xffd95926},
    Named{"activations", 0xffeda100, 0xffc98500},
    Named{"recomputation", 0xff22a6c4, 0xff3fbcd8},  // the same as "recompute"
    Named{"logits", 0xffe87ba4, 0xffd55181},
    Named{"buffers", 0xff4a3aa7, 0xff9085e9},
    Named{"runtime", 0xff898781, 0xff898781},
    Named{"fragmentation", 0xffc3c2b7, 0xff5c5b57},
    Named{"forward", 0xff2a78d6, 0xff3987e5},
    Named{"backward", 0xff1b4a8a, 0xff2a5fa8},
    Named{"weight_gradient", 0xff8fa31e, 0xffa3b82e},
    Named{"copy", 0xff7a5230, 0xffb08968},
};

}  // namespace

bool is_dark(const QPalette& palette) { return palette.color(QPalette::Base).lightnessF() < 0.5F; }

QColor colour_of(std::string_view key, bool dark) {
  const auto* found = std::ranges::find(kColours, key, &Named::key);
  if (found == kColours.end()) found = std::ranges::find(kColours, "other", &Named::key);
  return QColor::fromRgb(dark ? found->dark : found->light);
}

QColor grid_colour(const QPalette& palette) {
  return is_dark(palette) ? QColor(0x3a, 0x3a, 0x38) : QColor(0xdd, 0xdc, 0xd6);
}

QColor muted_text(const QPalette& palette) {
  return is_dark(palette) ? QColor(0xb4, 0xb2, 0xaa) : QColor(0x5c, 0x5b, 0x57);
}

QColor alarm_colour(const QPalette& palette) {
  return is_dark(palette) ? QColor(0xff, 0x7b, 0x72) : QColor(0xb4, 0x23, 0x18);
}

QColor text_on(const QColor& background) {
  const float light =
      0.2126F * background.redF() + 0.7152F * background.greenF() + 0.0722F * background.blueF();
  return light > 0.45F ? QColor(Qt::black) : QColor(Qt::white);
}

}  // namespace trainyard
