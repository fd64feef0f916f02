#include "scenarios/machine/device_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/kernels/families.h"

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

// The part of `source` about the origin of `label`, with its semicolon; empty: there is none.
std::string part_about(std::string_view source, std::string_view label) {
  const std::string begin = fmt::format("; {}: ", label);
  const std::size_t at = source.find(begin);
  if (at == std::string_view::npos) return "";
  return std::string(source.substr(at, source.find("; ", at + begin.size()) - at));
}

// What `before` says about parameters for which the fit of `now` had no rows.
std::string kept_parts(std::string_view pointer, const Json& before, std::string_view now) {
  const auto families = kernel_families();
  const auto family = std::ranges::find(families, pointer, &KernelFamily::source);
  if (family == families.end() || !before.is_string()) return "";
  std::string kept;
  for (const std::string_view label : family->untabled) {
    const bool fitted = now.find(fmt::format(", {} ", label)) != std::string_view::npos;
    if (!fitted) kept += part_about(before.get_ref<const std::string&>(), label);
  }
  return kept;
}

}  // namespace

Expected<DeviceDocument> read_device(const std::string& reference, std::string_view asker) {
  auto named = read_named(device_section(), reference, asker);
  if (!named) return tl::unexpected(std::move(named.error()));
  return DeviceDocument{std::move(named->content), std::move(named->value)};
}

std::string device_document(const Device& device, const DeviceDocument& original,
                            const std::vector<std::pair<std::string, std::string>>& provenance) {
  Json json = {{"trainyard", "device/1"}};
  json.update(device_section().write(device));
  copy_sources(original.value, json);
  if (device.interval_widening == 1 && json.contains("sources")) {
    json["sources"].erase("interval_widening");
    if (json["sources"].empty()) json.erase("sources");
  }
  for (const auto& [pointer, text] : provenance) {
    Json& source = json[Json::json_pointer(pointer)];
    source = text + kept_parts(pointer, source, text);
  }
  return text_of(json);
}

Expected<void> check_device_document(const std::string& text, const std::filesystem::path& file) {
  return check_written(device_section(), text, file);
}

}  // namespace trainyard
