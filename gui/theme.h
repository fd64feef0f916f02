// The colours of the window: light, dark, or those of the desktop.
#pragma once

namespace trainyard {

enum class Theme { desktop, light, dark };

// Takes effect at once and is remembered for the next start.
void set_theme(Theme theme);
Theme chosen_theme();
void restore_theme();

}  // namespace trainyard
