// Light, dark, or as the desktop has it.
#pragma once

namespace trainyard {

enum class Theme { desktop, light, dark };

// Takes effect at once and is remembered.
void set_theme(Theme theme);
Theme chosen_theme();
void restore_theme();

}  // namespace trainyard
