#include "gui/theme.h"

#include <QApplication>
#include <QPainter>
#include <QPalette>
#include <QProxyStyle>
#include <QSettings>
#include <QStyleOption>

#include "gui/charts/colours.h"

namespace trainyard {
namespace {

struct Shades {
  QRgb window, base, alternate, button, text, muted, link;
};

constexpr Shades kLight = {0xfff4f3ef, 0xfffcfcfb, 0xfff0efe9, 0xffeceae4,
                           0xff0b0b0b, 0xff898781, 0xff1c5cab};
constexpr Shades kDark = {0xff32322f, 0xff1a1a19, 0xff232321, 0xff454541,
                          0xfff5f4ef, 0xff898781, 0xff86b6ef};

constexpr QRgb kEdgeInDark = 0xff7a7872;

QPalette palette_of(const Shades& shades) {
  QPalette palette(QColor::fromRgb(shades.button), QColor::fromRgb(shades.window));
  const auto set = [&palette](QPalette::ColorRole role, QRgb colour) {
    palette.setColor(role, QColor::fromRgb(colour));
  };
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText,
                          QPalette::ToolTipText, QPalette::BrightText}) {
    set(role, shades.text);
  }
  set(QPalette::Base, shades.base);
  set(QPalette::AlternateBase, shades.alternate);
  set(QPalette::ToolTipBase, shades.button);
  set(QPalette::PlaceholderText, shades.muted);
  set(QPalette::Link, shades.link);
  set(QPalette::Highlight, 0xff2a78d6);
  set(QPalette::HighlightedText, 0xffffffff);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, QColor::fromRgb(shades.muted));
  }
  return palette;
}

// Fusion draws edges darker than the window, which nobody sees on a dark one: boxes to tick and
// fields get one that is lighter.
class EdgedStyle : public QProxyStyle {
 public:
  EdgedStyle() : QProxyStyle(QStringLiteral("Fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool has_edge = element == PE_IndicatorCheckBox || element == PE_FrameLineEdit;
    if (!has_edge || !is_dark(option->palette)) return;
    painter->save();
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QColor::fromRgb(kEdgeInDark));
    painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
    painter->restore();
  }
};

void apply(Theme theme) {
  QApplication::setStyle(new EdgedStyle);
  QApplication::setPalette(
      theme == Theme::desktop ? QPalette() : palette_of(theme == Theme::dark ? kDark : kLight));
}

}  // namespace

void set_theme(Theme theme) {
  QSettings().setValue(QStringLiteral("theme"), static_cast<int>(theme));
  apply(theme);
}

void restore_theme() {
  apply(static_cast<Theme>(QSettings().value(QStringLiteral("theme"), 0).toInt()));
}

}  // namespace trainyard
