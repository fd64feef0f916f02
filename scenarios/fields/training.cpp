// The fields of `training`: batch, sequence, precision recipe, optimizer and software stack.
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

constexpr std::string_view kDefaultPrecision = "bf16";
constexpr std::string_view kDefaultOptimizer = "adam";
constexpr std::string_view kDefaultStack = "megatron-core";

// A release begins with year and month, as in "26.04.01 NeMo Container".
const TextShape kRelease{"[0-9]{2}[.](0[1-9]|1[0-2])([^0-9].*)?",
                         "year and month first, such as \"25.04\" or \"25.04.01\""};

// One of the records of a table in model/, chosen by name.
template <typename Record>
Field<Training> one_of(std::string_view key, Record Training::*member,
                       std::span<const Record> records, std::string_view doc) {
  ChoiceShape shape;
  for (const Record& record : records) shape.names.emplace_back(record.name);
  return {{.key = std::string(key), .shape = {shape}, .doc = std::string(doc)},
          [member, records](const Json& value, Training& training, const Place&) -> Expected<void> {
            const auto& name = value.get_ref<const std::string&>();
            training.*member = *std::ranges::find(records, name, &Record::name);
            return {};
          },
          [member](const Training& training) -> std::optional<Json> {
            const std::string_view name = (training.*member).name;
            return name.empty() ? std::nullopt : std::optional<Json>(std::string(name));
          }};
}

std::vector<Field<Training>> training_fields() {
  using T = Training;
  return {
      count("global_batch", &T::global_batch, "B: sequences per step", {.most = 1e8}).required(),
      count("sequence_length", &T::sequence_length, "s: tokens per sequence", {.most = 1e8})
          .required(),
      one_of("precision", &T::precision, precision_recipes(),
             "precision recipe: the dtype of every tensor and of every GEMM")
          .absent("`\"bf16\"`"),
      one_of("optimizer", &T::optimizer, optimizers(), "optimizer of the training")
          .absent("`\"adam\"`"),
      reference<stack_section>("stack", &T::stack, "software that runs the step")
          .absent("`\"megatron-core\"`"),
      text("release", &T::release, "release of the stack, by year and month", {kRelease})
          .absent("that of `measured`; else the stack as its document describes it"),
      count("tokens", &T::tokens, "tokens that the whole run trains on", {.most = 1e18})
          .absent("not said"),
  };
}

Expected<void> finish_training(Training& training, const Place& place) {
  if (training.precision.name.empty()) {
    training.precision = *find_precision_recipe(kDefaultPrecision);
  }
  if (training.optimizer.name.empty()) training.optimizer = *find_optimizer(kDefaultOptimizer);
  if (!training.stack.name.empty()) return {};
  return read_reference(stack_section(), Json(std::string(kDefaultStack)), training.stack, place);
}

}  // namespace

const Section<Training>& training_section() {
  static const Section<Training> section("training", "How the network is trained.",
                                         training_fields(), {.finish = finish_training});
  return section;
}

}  // namespace trainyard
