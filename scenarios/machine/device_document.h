// A device as the command line names it, and a fitted one as a document.
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
  Json value;  // as it was written, tag taken off: its remarks
};

// A catalog name, or a path relative to the working folder. `asker` is whose value `reference` is
// ("--device"), for the error line.
Expected<DeviceDocument> read_device(const std::string& reference, std::string_view asker);

// A complete device/1 document that reads back to `device`, where check_device_document says so.
// The `sources` of `original` stay, but for those that `provenance` replaces: JSON pointer and
// text; of these stays what is said of parameters that were not fitted (KernelFamily::untabled).
std::string device_document(const Device& device, const DeviceDocument& original,
                            const std::vector<std::pair<std::string, std::string>>& provenance);

// Whether `text`, which is to be written to `file`, reads back; the error says where it does not.
Expected<void> check_device_document(const std::string& text, const std::filesystem::path& file);

}  // namespace trainyard
