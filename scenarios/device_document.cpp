#include "scenarios/device_document.h"

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

// Copies the `sources` of an object, and those of the objects in it.
void copy_sources(const Json& from, Json& to) {
  if (!from.is_object() || !to.is_object()) return;
  if (from.contains("sources")) to["sources"] = from["sources"];
  for (auto& [key, member] : to.items()) {
    if (key != "sources" && from.contains(key)) copy_sources(from[key], member);
  }
}

}  // namespace

Expected<DeviceDocument> read_device(const std::string& reference, std::string_view asker) {
  const Document command_line{std::string(asker), std::filesystem::current_path() / "-", nullptr};
  auto opened = open_reference("device", reference, {&command_line, ""});
  if (!opened) return tl::unexpected(std::move(opened.error()));
  OpenDocument& document = **opened;
  if (auto fits = check(device_section().spec(), document.value, document.root()); !fits) {
    return tl::unexpected(std::move(fits.error()));
  }
  DeviceDocument result;
  if (auto done = device_section().read(document.value, result.device, document.root()); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  if (result.device.name.empty()) result.device.name = reference;
  result.value = std::move(document.value);
  return result;
}

std::string device_document(const Device& device, const DeviceDocument& original,
                            const std::vector<std::pair<std::string, std::string>>& provenance) {
  Json json = {{"trainyard", "device/1"}};
  json.update(device_section().write(device));
  copy_sources(original.value, json);
  for (const auto& [pointer, text] : provenance) json[Json::json_pointer(pointer)] = text;
  return text_of(json);
}

}  // namespace trainyard
