// The application of the tests. It needs no display, and keeps settings and data in a folder of its
// own. A test that restarts the program shares this folder with its child (TRAINYARD_GUI_HOME).
#pragma once

#include <QString>
#include <chrono>
#include <filesystem>
#include <functional>

namespace trainyard {

std::filesystem::path gui_home();
std::filesystem::path example(const std::string& name);
// Runs the event loop until `holds` is true; false: it never became so. The limit guards against
// hangs only and is a little below the time that ctest gives a test: under sanitizers on a busy
// machine a calibration takes two minutes.
bool wait_until(const std::function<bool()>& holds,
                std::chrono::milliseconds most = std::chrono::minutes(8));
// Writes a file with this text in gui_home() and returns its path.
std::filesystem::path written(const std::string& name, const std::string& text);

}  // namespace trainyard
