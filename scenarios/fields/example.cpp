#include "scenarios/fields/example.h"

#include <algorithm>
#include <array>
#include <variant>

#include "scenarios/catalog.h"

namespace trainyard {
namespace {

// Examples for fields whose default and shape suggest none.
struct Example {
  std::string_view section, key, value;  // the value as JSON
};
constexpr std::array kExamples = {
    Example{"use_of_groups", "order", "[1, 0]"},
    Example{"use_of_groups", "micro_batches", "[8, 5]"},
    Example{"use_of_groups", "recompute", R"(["none", "full"])"},
    Example{"racks", "mtbf", R"("200 days")"},
    Example{"leaves", "mtbf", R"("60 days")"},
    Example{"silent", "mtbf", R"("20000 days")"},
    Example{"stragglers", "mtbf", R"("5000 days")"},
    Example{"maintenance", "every", R"("7 days")"},
    Example{"trace", "at", R"("3 days")"},
    Example{"run", "work", R"("30 days")"},
    Example{"run", "duration", R"("54 days")"},
    Example{"checkpoint", "interval", R"("30 min")"},
    Example{"checkpoint", "bytes", R"("5.7 TB")"},
    Example{"tiers", "write_bandwidth", R"("2 TB/s")"},
    Example{"tiers", "read_bandwidth", R"("2 TB/s")"},
    Example{"measured", "step_time", R"("13.75 s")"},
    Example{"step", "time", R"("13.75 s")"},
    Example{"training", "release", R"("26.04")"},
    Example{"training", "global_batch", "2048"},
    Example{"training", "sequence_length", "8192"},
    Example{"training", "tokens", "15600000000000"},
    Example{"passes", "passes", R"([["F0", "B0"]])"},
    Example{"plan", "overlap", R"({"tensor_parallel": true})"},
    Example{"plan", "offload", R"({"optimizer": "host"})"},
    Example{"plan", "tensor_parallel", "8"},
    Example{"plan", "pipeline_parallel", "4"},
    Example{"planner", "rank_order", R"("tp-cp-ep-dp-pp")"},
    Example{"stack", "rank_orders", R"(["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"])"},
    Example{"releases", "since", R"("25.11")"},
    Example{"releases", "before", R"("26.04")"},
    Example{"sweep_axis", "key", R"("plan.tensor_parallel")"},
    Example{"sweep_axis", "from", R"("100 Gbit/s")"},
    Example{"sweep_axis", "to", R"("800 Gbit/s")"},
    Example{"sweep_axis", "values", "[1, 2, 4, 8]"},
    Example{"sweep_column", "key", R"("price")"},
    Example{"sweep_column", "from", R"("1 USD/h")"},
    Example{"sweep_column", "to", R"("4 USD/h")"},
    Example{"sweep", "where", R"(["plan.tensor_parallel * plan.pipeline_parallel <= 64"])"},
    Example{"slow_devices", "from", R"("1.5 s")"},
    Example{"slow_devices", "until", R"("2.5 s")"},
    Example{"slow_devices", "speed", "0.8"},
    Example{"sequences", "mean", "2048"},
    Example{"sequences", "lengths", "[4096, 512, 1024]"},
    Example{"degraded_links", "of", R"("nic 3")"},
    Example{"degraded_links", "to", R"("leaf 0")"},
    Example{"sweep", "overrides", R"("points.csv")"},
};

// Depth to which an example writes the required keys of objects.
constexpr int kDeepestExample = 4;

Json example_at(const Shape& shape, int depth);

// Whether a document can have the value; some defaults are values that it cannot.
bool is_written(const Json& value, const Shape& shape) {
  const bool empty = value.is_null() || (value.is_structured() && value.empty());
  static const Document kNowhere{.name = "example"};
  return !empty && check(shape, value, {&kNowhere, ""}).has_value();
}

Json example_at(std::string_view section, const FieldSpec& field, int depth) {
  const auto* known = std::ranges::find_if(kExamples, [&](const Example& example) {
    return example.section == section && example.key == field.key;
  });
  if (known != kExamples.end()) return Json::parse(known->value);
  const bool said = field.default_value && is_written(*field.default_value, field.shape);
  return said ? *field.default_value : example_at(field.shape, depth);
}

Json example_form(const QuantityShape& shape, int /*depth*/) {
  return std::string(record_of(shape.dimension).example);
}
Json example_form(const CountShape& shape, int /*depth*/) {
  return static_cast<std::int64_t>(std::max(shape.least, std::min(shape.most, 8.0)));
}
Json example_form(const NumberShape& shape, int /*depth*/) {
  return std::max(shape.least, std::min(shape.most, 0.5));
}
Json example_form(const FlagShape& /*shape*/, int /*depth*/) { return true; }
Json example_form(const TextShape& /*shape*/, int /*depth*/) { return "a line of text"; }
Json example_form(const ChoiceShape& shape, int /*depth*/) { return shape.names.front(); }
Json example_form(const ReferenceShape& shape, int /*depth*/) {
  const std::vector<std::string> names = catalog_names(shape.kind);
  return names.empty() ? std::string(shape.kind) + ".json" : names.front();
}
Json example_form(const PathShape& /*shape*/, int /*depth*/) { return "folder/file"; }
Json example_form(const ValueShape& /*shape*/, int /*depth*/) { return 8; }
Json example_form(const ObjectShape& shape, int depth) {
  Json object = Json::object();
  if (depth == kDeepestExample) return object;
  for (const FieldSpec& field : shape.section().fields) {
    if (field.required || field.key == shape.marker) {
      object[field.key] = example_at(shape.section().name, field, depth + 1);
    }
  }
  return object;
}
Json example_form(const ListShape& shape, int depth) {
  const std::size_t size = std::max<std::size_t>(1, shape.size);
  return Json(std::vector<Json>(size, example_at(shape.element.front(), depth + 1)));
}
Json example_form(const AnyShape& shape, int depth) {
  return example_at(shape.alternatives.front(), depth);
}

Json example_at(const Shape& shape, int depth) {
  return std::visit([depth](const auto& form) { return example_form(form, depth); }, shape.form);
}

}  // namespace

Json example_of(const SectionSpec& section, const FieldSpec& field) {
  return example_at(section.name, field, 0);
}

}  // namespace trainyard
