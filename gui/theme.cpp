#include "gui/theme.h"

#include <QApplication>
#include <QPainter>
#include <QPalette>
#include <QProxyStyle>
#include <QSettings>
#include <QSlider>
#include <QStyleOption>
#include <algorithm>

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

// The style Fusion draws edges and ticks darker than the window, which is invisible on a dark one.
// This style draws lighter ones on check boxes, fields, frames and sliders.
class EdgedStyle : public QProxyStyle {
 public:
  EdgedStyle() : QProxyStyle(QStringLiteral("Fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool has_edge =
        element == PE_IndicatorCheckBox || element == PE_FrameLineEdit || element == PE_Frame;
    if (!has_edge || !is_dark(option->palette)) return;
    painter->save();
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QColor::fromRgb(kEdgeInDark));
    painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
    painter->restore();
  }

  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                          QPainter* painter, const QWidget* widget) const override {
    QProxyStyle::drawComplexControl(control, option, painter, widget);
    const auto* slider = qstyleoption_cast<const QStyleOptionSlider*>(option);
    const bool has_ticks = control == CC_Slider && slider != nullptr &&
                           (slider->tickPosition & QSlider::TicksBelow) != 0;
    if (has_ticks && is_dark(option->palette)) draw_ticks(*slider, *painter, widget);
  }

 private:
  // Below a horizontal slider, where Fusion has its ticks.
  void draw_ticks(const QStyleOptionSlider& slider, QPainter& painter,
                  const QWidget* widget) const {
    const int handle = pixelMetric(PM_SliderLength, &slider, widget);
    const int high = pixelMetric(PM_SliderTickmarkOffset, &slider, widget);
    const int bottom = slider.rect.bottom() - 1;
    painter.save();
    painter.setPen(QColor::fromRgb(kEdgeInDark));
    const int step = std::max(1, slider.tickInterval);
    for (int at = slider.minimum; at <= slider.maximum; at += step) {
      const int x = handle / 2 + sliderPositionFromValue(slider.minimum, slider.maximum, at,
                                                         slider.rect.width() - handle);
      painter.drawLine(x, bottom - high, x, bottom);
    }
    painter.restore();
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

Theme chosen_theme() {
  return static_cast<Theme>(QSettings().value(QStringLiteral("theme"), 0).toInt());
}

void restore_theme() { apply(chosen_theme()); }

}  // namespace trainyard
