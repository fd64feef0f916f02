// The fields of a pass list (`passes/1`): a user's own pipeline schedule for one p, v and m.
#include <fmt/format.h>

#include <charconv>

#include "model/schedule/listed.h"
#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr std::string_view kPass =
    "(F|B|I|W)[0-9]{1,6}([.][0-9]{1,3})?|F[0-9]{1,6}([.][0-9]{1,3})?[+]B[0-9]{1,6}([.][0-9]{1,3})?";

constexpr std::array<std::pair<char, PassKind>, 4> kPassLetters = {
    {{'F', PassKind::forward},
     {'B', PassKind::backward},
     {'I', PassKind::input_gradient},
     {'W', PassKind::weight_gradient}}};

int number_in(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Requires: one pass that matches kPass.
Pass pass_of(std::string_view text) {
  const auto* kind =
      std::ranges::find(kPassLetters, text.front(), [](const auto& k) { return k.first; });
  const auto dot = text.find('.');
  return {.kind = kind->second,
          .microbatch = number_in(text.substr(1, dot == text.npos ? text.npos : dot - 1)),
          .chunk = dot == text.npos ? 0 : number_in(text.substr(dot + 1))};
}

void add_passes(std::string_view text, std::vector<Pass>& list) {
  const auto plus = text.find('+');
  list.push_back(pass_of(text.substr(0, plus)));
  if (plus == text.npos) return;
  list.back().paired = true;
  list.push_back(pass_of(text.substr(plus + 1)));
}

std::string text_of_pass(const Pass& pass) {
  const auto* kind =
      std::ranges::find(kPassLetters, pass.kind, [](const auto& k) { return k.second; });
  const std::string chunk = pass.chunk == 0 ? "" : fmt::format(".{}", pass.chunk);
  return fmt::format("{}{}{}", kind->first, pass.microbatch, chunk);
}

std::vector<std::string> texts_of(const std::vector<Pass>& list) {
  std::vector<std::string> texts;
  bool paired = false;
  for (const Pass& pass : list) {
    if (paired) {
      texts.back() += "+" + text_of_pass(pass);
    } else {
      texts.push_back(text_of_pass(pass));
    }
    paired = pass.paired;
  }
  return texts;
}

Field<PassTable> passes_field() {
  const Shape pass{
      TextShape{kPass, "a pass such as \"F0\", \"B3.1\", \"I2\", \"W2\" or \"F4+B1\""}};
  const Shape stage{ListShape{{pass}}};
  return Field<PassTable>{
      {.key = "passes",
       .shape = {ListShape{{stage}}},
       .doc =
           "for every stage its passes in order: F forward, B backward, or I input gradient and W "
           "weight gradient, then micro-batch and .chunk; F and B joined by + run side by side"},
      [](const Json& value, PassTable& table, const Place&) -> Expected<void> {
        table.passes = value.get<std::vector<std::vector<std::string>>>();
        return {};
      },
      [](const PassTable& table) -> std::optional<Json> {
        return table.passes.empty() ? std::nullopt : std::optional<Json>(table.passes);
      }}
      .required();
}

}  // namespace

const Section<PassTable>& passes_section() {
  using P = PassTable;
  using NamedRoute = Named<Route>;
  static const Section<P> section(
      "passes", "A pipeline schedule written out, for one p, v and m.",
      {
          text("name", &P::name, "name that tables show").absent("`listed`"),
          remark<P>("source", "where the schedule comes from"),
          count("stages", &P::stages, "p: number of pipeline stages", {.most = 4096}).required(),
          count("virtual_stages", &P::virtual_stages,
                "v: number of chunks of layers that a stage holds", {.most = 1000}),
          count("micro_batches", &P::microbatches, "m: number of micro-batches in a step")
              .required(),
          choice("route", &P::route,
                 std::array{NamedRoute{"loop", Route::loop}, NamedRoute{"vee", Route::vee},
                            NamedRoute{"both-ways", Route::both_ways}},
                 "path of a micro-batch through the stages: loop: v times from first to last; vee: "
                 "there and back; both-ways: half of them from either end"),
          flag("optimizer_barrier", &P::optimizer_barrier,
               "whether all stages wait for each other before the optimizer step"),
          passes_field(),
      });
  return section;
}

Expected<std::shared_ptr<const ListedSchedule>> schedule_of(const PassTable& table,
                                                            const Place& place) {
  const PipelineShape shape{table.stages, table.virtual_stages, table.microbatches, table.route};
  if (shape.route == Route::vee && shape.chunks != 2) {
    return (place / "virtual_stages")
        .error(fmt::format("found {}; allowed: 2 with route \"vee\"", shape.chunks));
  }
  if (shape.route == Route::both_ways && (shape.chunks != 1 || shape.microbatches % 2 != 0)) {
    return place.error(
        "found route \"both-ways\"; allowed: with virtual_stages 1 and an even micro_batches");
  }
  PassList lists;
  for (const std::vector<std::string>& stage : table.passes) {
    lists.emplace_back();
    for (const std::string& text : stage) add_passes(text, lists.back());
  }
  auto schedule = list_schedule(table.name.empty() ? "listed" : table.name, shape, std::move(lists),
                                table.optimizer_barrier);
  if (schedule) return schedule;
  return (place / "passes")
      .error(fmt::format("found a list that cannot be played: {}; allowed: every pass once, in an "
                         "order that ends",
                         schedule.error().message));
}

PassTable pass_table_of(const ListedSchedule& schedule) {
  PassTable table{.name = schedule.name,
                  .stages = schedule.shape.stages,
                  .virtual_stages = schedule.shape.chunks,
                  .microbatches = schedule.shape.microbatches,
                  .route = schedule.shape.route,
                  .optimizer_barrier = schedule.optimizer_barrier,
                  .passes = {}};
  for (const std::vector<Pass>& list : schedule.passes) table.passes.push_back(texts_of(list));
  return table;
}

}  // namespace trainyard
