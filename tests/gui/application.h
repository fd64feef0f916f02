// The application of the tests: no display, and settings and data in a folder of its own, which
// tests of what survives a program may share with a child (TRAINYARD_GUI_HOME).
#pragma once

#include <QString>
#include <chrono>
#include <filesystem>
#include <functional>

namespace trainyard {

std::filesystem::path gui_home();
std::filesystem::path example(const std::string& name);
// Runs the event loop until it holds; false: it never did. Against hangs only, and a little less
// than ctest gives a test: a calibration under sanitizers takes two minutes on a busy machine.
bool wait_until(const std::function<bool()>& holds,
                std::chrono::milliseconds most = std::chrono::minutes(8));
// A file of that text in gui_home().
std::filesystem::path written(const std::string& name, const std::string& text);

}  // namespace trainyard
