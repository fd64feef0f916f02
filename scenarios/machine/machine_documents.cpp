#include "scenarios/machine/machine_documents.h"

#include "scenarios/fields/documents.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
std::string node_document(const MeasuredNode& node) {
  Node written;
  written.name = node.name;
  written.source = node.source;
  written.device.name = node.device;
  written.devices = node.devices;
  written.intra = node.intra;
  written.nics = 1;
  written.nic_bandwidth = node.nic_bandwidth;
  written.nvlink_domain = node.devices;
  written.host_memory_bandwidth = node.host_memory_bandwidth;
  Json json = {{"trainyard", "node/1"}};
  json.update(node_section().write(written));
  json["device"] = node.device;
  return text_of(json);
}

std::string fabric_document(const MeasuredFabric& fabric) {
  Json json = {{"trainyard", "fabric/1"}};
  json.update(fabric_section().write(
      {.name = fabric.name, .source = fabric.source, .inter = fabric.inter, .measured = {}}));
  for (const char* key : {"bandwidth", "efficiency", "latency", "small_latency", "small_share"}) {
    if (json.contains(key)) json["sources"][key] = fabric.figures;
  }
  return text_of(json);
}

std::string measured_stack_document(const Stack& stack, const FigureSources& sources) {
  Json json = {{"trainyard", "stack/1"}};
  json.update(stack_section().write(stack));
  for (const auto& [key, text] : sources) json["sources"][key] = text;
  return text_of(json);
}

}  // namespace trainyard
