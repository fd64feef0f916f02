// Reads a device that the command line names, and writes a fitted one as a document.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cluster/device.h"
#include "model/expected.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

struct DeviceDocument {
  Device device;
  Json value;  // as written, without its tag, for its remarks
};

// Reads a device by its catalog name or a path relative to the working folder. `asker` is the
// option that gave `reference` ("--device"); errors name it.
Expected<DeviceDocument> read_device(const std::string& reference, std::string_view asker);

// A complete device/1 document, which reads back to `device` if check_device_document agrees. The
// `sources` of `original` stay, except those that `provenance` (JSON pointer, text) replaces. Of a
// replaced text, what it says about parameters that were not fitted stays (KernelFamily::untabled).
std::string device_document(const Device& device, const DeviceDocument& original,
                            const std::vector<std::pair<std::string, std::string>>& provenance);

// Checks that `text`, which is to be written to `file`, reads back.
Expected<void> check_device_document(const std::string& text, const std::filesystem::path& file);

}  // namespace trainyard
