// On random legal plans, the program's FLOP, kernel times and bytes on the wire equal those of the
// operators and of the estimate's traffic. The program is derived from neither.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <map>
#include <random>
#include <utility>

#include "model/cost/messages/traffic.h"
#include "model/plan/layer_shard.h"
#include "model/program/check.h"
#include "model/program/flop.h"
#include "model/program/lower.h"
#include "model/program/price.h"
#include "model/program/view.h"
#include "model/schedule/schedule.h"
#include "tests/model/cost/data_parallel_traffic.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/program/unit_links.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

PreparedJob job_of(Transformer model) {
  PreparedJob job = llama_8b_on_h100(2, 32);
  model.layers = 8;
  job.job.model = std::move(model);
  job.job.training.sequence_length = 4096;
  job.job.training.stack.fused_cross_entropy = false;
  return prepare(job.job);
}

template <typename T>
T one_of(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

PlanRequest random_request(std::mt19937_64& random, const Transformer& model) {
  PlanRequest request;
  request.tensor_parallel = one_of(random, {1, 2, 4, 8});
  request.sequence_parallel = request.tensor_parallel > 1 && (model.experts > 0 || random() % 2);
  request.context_parallel = one_of(random, {1, 1, 2, 4});
  request.context_parallel_algorithm = one_of(
      random, {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses});
  request.pipeline_parallel = one_of(random, {1, 2, 4});
  request.schedule = schedules()[random() % schedules().size()]->name;
  request.virtual_stages = find_schedule(request.schedule)->needs_chunks ? 2 : 1;
  request.zero_stage = one_of(random, {0, 1, 2, 3});
  request.expert_parallel = model.experts > 0 ? one_of(random, {1, 2, 4, 8}) : 1;
  request.expert_tensor_parallel = model.experts > 0 ? one_of(random, {1, 1, 2}) : 1;
  return request;
}

// Gives the experts on several ranks loads and capacities, above and below each other, that leave
// whole rows.
void spread_unevenly(std::size_t place, PlanRequest& request) {
  if (request.expert_parallel == 1) return;
  if (place % 4 == 1) request.load_imbalance = 1.25;
  if (place % 5 == 2) request.capacity_factor = 1.5;
  if (place % 5 == 3) request.capacity_factor = 0.75;
}

struct Case {
  PreparedJob job;
  Plan plan;
  Program program;
  std::string name;
};

// A job in a recipe of low precision: the device gets the rates of one width for the next narrower
// one, and the stack one of the ways to cast.
PreparedJob in_low_precision(PreparedJob job, std::mt19937_64& random) {
  const auto index = [](Dtype dtype) { return static_cast<std::size_t>(dtype); };
  Device& device = job.job.cluster.device;
  device.peak[index(Dtype::fp4)] = device.peak[index(Dtype::fp8)];
  device.rates.gemm[index(Dtype::fp4)] = device.rates.gemm[index(Dtype::fp8)];
  Training& training = job.job.training;
  training.precision =
      *find_precision_recipe(one_of<std::string_view>(random, {"fp8", "mxfp8", "nvfp4"}));
  training.stack.quantised_gathers = random() % 2;
  training.stack.expert_padding = random() % 2;
  training.stack.fused_expert_casts = random() % 2;
  training.stack.delayed_scaling = random() % 2;
  training.stack.fused_activation_casts = random() % 2;
  training.stack.quantised_activation_input = random() % 2;
  return prepare(job.job);
}

// Jobs with one layer of multi-token prediction, with two, and with one and a tied head.
std::vector<PreparedJob> jobs_with_mtp() {
  std::vector<Transformer> models = {llama_8b(), deepseek_v3(), mixtral_8x7b(), llama_8b()};
  for (Transformer& model : models) model.mtp_layers = 1;
  models[2].mtp_layers = 2;
  models[3].tied_embeddings = true;
  std::vector<PreparedJob> jobs;
  for (Transformer& model : models) jobs.push_back(job_of(std::move(model)));
  return jobs;
}

std::vector<Case> random_cases(int count, std::uint64_t seed, bool low_precision,
                               const std::vector<PreparedJob>& jobs) {
  std::mt19937_64 random(seed);
  std::vector<Case> cases;
  while (static_cast<int>(cases.size()) < count) {
    PreparedJob job = jobs[random() % jobs.size()];
    if (low_precision) job = in_low_precision(std::move(job), random);
    job.job.training.stack.copies_sharded_sequences = cases.size() % 2 == 1;
    job.job.training.stack.deduplicated_dispatch = cases.size() % 3 > 0;
    PlanRequest request = random_request(random, job.job.model);
    spread_unevenly(cases.size(), request);
    const auto plan = plan_if_legal(request, job.job.model, job.job.cluster, job.job.training);
    if (!plan) continue;
    auto program = lower(job.job.model, job.job.training, *plan);
    if (!program) ADD_FAILURE() << program.error().message;
    cases.push_back(
        {job, *plan, program.value_or(Program{}),
         fmt::format("{}{} + {} {} t {} c {} p {} D {} e {} e_t {} zero {} {}: ",
                     job.job.model.tied_embeddings ? "tied " : "", job.job.model.hidden_size,
                     job.job.model.mtp_layers, job.job.training.precision.name,
                     plan->tensor_parallel, plan->context_parallel, plan->pipeline_parallel,
                     plan->data_parallel, plan->expert_parallel, plan->expert_tensor_parallel,
                     plan->zero_stage, plan->schedule->name)});
  }
  return cases;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    const std::vector<PreparedJob> jobs = {job_of(llama_8b()), job_of(mixtral_8x7b()),
                                           job_of(deepseek_v3()), job_of(gpt_oss_20b())};
    std::vector<Case> both = random_cases(80, 20261121, false, jobs);
    for (std::vector<Case> more : {random_cases(80, 20261122, true, jobs),
                                   random_cases(60, 20261123, false, jobs_with_mtp()),
                                   random_cases(30, 20261124, true, jobs_with_mtp())}) {
      std::move(more.begin(), more.end(), std::back_inserter(both));
    }
    return both;
  }();
  return all;
}

template <typename Visit>
void for_each_operation(const Case& of, const Visit& visit) {
  for (int stage = 0; stage < of.plan.pipeline_parallel; ++stage) {
    for (const IssuedOperation issued : operations_of(of.program, stage)) visit(issued);
  }
}

void expect_close(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, 1e-9 * std::abs(expected)) << what;
}

OperatorList operators_of(const Case& c, LayerKind kind) {
  const Job& job = c.job.job;
  return layer_operators(job.model, job.training, layer_shard(c.plan), kind);
}

TEST(ProgramAccounts, HoldsForRandomPlans) {
  for (const Case& c : cases()) {
    const auto checked = check(c.program, RankLayout(c.plan, c.job.job.model.kv_heads));
    EXPECT_TRUE(checked) << c.name << (checked ? "" : checked.error().message);
  }
}

// Work that several ranks repeat counts once (handbook §12.2).
TEST(ProgramAccounts, FlopOfAllRanksAreTheModelFlop) {
  for (const Case& c : cases()) {
    std::map<std::pair<int, OperatorKind>, double> replicas;
    for (int kind = 0; kind < kLayerKinds; ++kind) {
      for (const Operator& op : operators_of(c, layer_kind_at(c.job.job.model, kind))) {
        replicas[{kind, op.kind}] = op.replicas;
      }
    }
    for (const Operator& op :
         head_operators(c.job.job.model, c.job.job.training, layer_shard(c.plan))) {
      replicas[{-1, op.kind}] = op.replicas;
    }
    double flop = 0;
    for_each_operation(c, [&](const IssuedOperation& issued) {
      const Operation& op = *issued.operation;
      if (!op.part || op.recomputed) return;
      const int kind = issued.call->layer < 0 ? -1 : index_of(issued.block->kind);
      const double work = flop_of(op).value();
      if (work > 0) flop += work / replicas.at({kind, *op.part});
    });
    const double ranks = c.plan.devices() / c.plan.pipeline_parallel;
    expect_close(flop * ranks, c.job.model_flop.value(), c.name + "FLOP");
  }
}

// The kernel times of every kind of layer are those of its operators, each counted once.
TEST(ProgramAccounts, ALayerCostsWhatItsOperatorsCost) {
  for (const Case& c : cases()) {
    const OperationPrices prices(c.job, c.plan);
    for (int index = 0; index < kLayerKinds; ++index) {
      const LayerKind kind = layer_kind_at(c.job.job.model, index);
      Seconds priced;
      bool has_kind = false;
      for (const Block& block : c.program.blocks) {
        const bool pass = block.name == "layer forward" || block.name == "layer backward";
        if (!pass || !(block.kind == kind)) continue;
        has_kind = true;
        for (const Operation& operation : block.operations) {
          priced += prices.of(c.program, block, operation);
        }
      }
      if (!has_kind) continue;
      Seconds expected;
      for (const Operator& op : operators_of(c, kind)) {
        const OperatorTime time = operator_time(c.job.job.cluster.device, c.job.job.training, op);
        expected += time.forward + time.input_gradient + time.weight_gradient;
      }
      expect_close(priced.value(), expected.value(), c.name + "layer");
    }
  }
}

// ---- The update -----------------------------------------------------------------------------

// For a rank of a stage, what Muon takes longer than Lion, which moves the same bytes per layer:
// priced by the program, and expected by the estimate.
struct MuonOverLion {
  Seconds priced, expected;
};

MuonOverLion muon_over_lion(const Case& c, int stage) {
  std::vector<StageParameters> stages;
  stage_parameters(c.job, c.plan, stages);
  const auto with = [&](std::string_view optimizer) {
    PreparedJob job = c.job;
    job.job.training.optimizer = *find_optimizer(optimizer);
    const OperationPrices prices(job, c.plan);
    MuonOverLion time;
    for (const IssuedOperation issued : operations_of(c.program, stage)) {
      if (issued.operation->kind != OperationKind::optimizer_step) continue;
      time.priced += prices.of(c.program, *issued.block, *issued.operation);
    }
    time.expected = optimizer_time(job, c.plan, stages[static_cast<std::size_t>(stage)]);
    return time;
  };
  const MuonOverLion muon = with("muon"), lion = with("lion");
  return {muon.priced - lion.priced, muon.expected - lion.expected};
}

TEST(ProgramAccounts, UpdatesOfWholeMatricesHaveTheProductsOfTheEstimate) {
  for (const Case& c : cases()) {
    for (int stage = 0; stage < c.plan.pipeline_parallel; ++stage) {
      const MuonOverLion time = muon_over_lion(c, stage);
      EXPECT_GT(time.priced, Seconds(0)) << c.name;
      expect_close(time.priced.value(), time.expected.value(), c.name + "products");
    }
  }
}

TEST(ProgramAccounts, UpdatesOfStatesOutsideTheDeviceHaveTheirProductsToo) {
  constexpr OffloadTarget kHost = OffloadTarget::host;
  int plans = 0;
  for (const Offload& offload :
       {Offload{.optimizer = kHost}, Offload{.gradients = kHost}, Offload{.parameters = kHost},
        Offload{.parameters = kHost, .gradients = kHost, .optimizer = kHost}}) {
    for (const int zero : {0, 1, 2, 3}) {
      const PlanRequest request{
          .tensor_parallel = 2, .expert_parallel = 2, .zero_stage = zero, .offload = offload};
      const PreparedJob job = job_of(mixtral_8x7b());
      const auto plan = plan_if_legal(request, job.job.model, job.job.cluster, job.job.training);
      if (!plan) continue;
      const auto program = lower(job.job.model, job.job.training, *plan);
      ASSERT_TRUE(program);
      const MuonOverLion time = muon_over_lion({job, *plan, *program, ""}, 0);
      EXPECT_GT(time.priced, Seconds(0));
      expect_close(time.priced.value(), time.expected.value(), fmt::format("zero {}", zero));
      ++plans;
    }
  }
  EXPECT_GE(plans, 12);
}

// ---- Bytes on the wire: rings without latency at one byte a second --------------------------

const GroupLinks* links_of(const PlanLinks& links, Group group) {
  switch (group) {
    case Group::tensor:
      return &links.tensor;
    case Group::context:
      return &links.context;
    case Group::dense_gradient:
      return &links.dense_gradient;
    case Group::dense_shard:
      return &links.dense_shard;
    case Group::dense_replica:
      return &links.dense_replica;
    case Group::expert:
      return &links.expert;
    case Group::expert_tensor:
      return &links.expert_tensor;
    case Group::expert_data:
      return &links.expert_data;
    default:
      return nullptr;
  }
}

struct Wire {
  Seconds tensor, context, expert, data;
  Seconds again;  // second gather of saved inputs
};

// Leaves out the small all-reduces of replicated weights' gradients and of the norm, which the
// estimate does not count.
Wire wire_of(const Case& c, const PlanLinks& links) {
  Wire wire;
  for_each_operation(c, [&](const IssuedOperation& issued) {
    const Operation& op = *issued.operation;
    const GroupLinks* group = links_of(links, op.group);
    const auto kind = collective_of(op.kind);
    if (group == nullptr || !kind) return;
    const bool norm = op.phase == Phase::update && op.message <= Bytes(4);
    const Seconds time = norm ? Seconds(0) : collective_time(*kind, *group, op.message, links);
    const bool inside = op.phase != Phase::weight_gradient && op.phase != Phase::update;
    if (op.group == Group::tensor) {
      if (inside) wire.tensor += time;
      const bool gathers = op.kind == OperationKind::all_gather;
      if (gathers && op.phase == Phase::weight_gradient) wire.again += time;
    } else if (op.group == Group::context) {
      wire.context += time;
    } else if (op.group == Group::expert || op.group == Group::expert_tensor) {
      if (inside) wire.expert += time;
    } else {
      wire.data += time;
    }
  });
  return wire;
}

Seconds both(PassTraffic traffic) { return traffic.forward + traffic.backward; }

Wire expected_wire(const Case& c, const PlanLinks& links) {
  Wire wire;
  const TensorTraffic tensor = tensor_traffic(c.job, c.plan, links);
  for (int layer = 0; layer < layers_with_mtp(c.job.job.model); ++layer) {
    const LayerTraffic traffic =
        layer_traffic(c.job, c.plan, links, tensor, layer_kind(c.job.job.model, layer));
    wire.tensor += both(traffic.tensor_parallel);
    const bool blocks =
        !layer_kind(c.job.job.model, layer).moe || c.job.job.model.shared_experts > 0;
    wire.again += (blocks ? 2 : 1) * traffic.gathered_again + traffic.mtp_gathered_again;
    wire.expert += both(traffic.expert_parallel);
    wire.context += both(traffic.context_parallel);
  }
  const LayerTraffic head = head_traffic(c.job, c.plan, links, tensor);
  const double ends = 1 + c.job.job.model.mtp_layers;
  wire.tensor += ends * (both(embedding_traffic(c.plan, tensor)) + both(head.tensor_parallel));
  wire.again += ends * head.gathered_again;
  const double times = c.plan.microbatches;
  wire = {wire.tensor * times, wire.context * times, wire.expert * times, {}, wire.again * times};
  std::vector<StageParameters> stages;
  stage_parameters(c.job, c.plan, stages);
  for (const StageParameters& stage : stages) {
    wire.data += data_parallel_traffic(c.job, c.plan, links, stage);
  }
  return wire;
}

TEST(ProgramAccounts, BytesOnTheWireAreThoseOfTheTraffic) {
  for (const Case& c : cases()) {
    const PlanLinks links = unit_links(c.plan);
    const Wire found = wire_of(c, links);
    const Wire expected = expected_wire(c, links);
    expect_close(found.tensor.value(), expected.tensor.value(), c.name + "tensor");
    expect_close(found.again.value(), expected.again.value(), c.name + "gathered again");
    expect_close(found.context.value(), expected.context.value(), c.name + "context");
    expect_close(found.expert.value(), expected.expert.value(), c.name + "expert");
    expect_close(found.data.value(), expected.data.value(), c.name + "data");
  }
}

// Ranks that share an expert gather the dispatched tokens and scatter the sums of their results
// (handbook §4). Every row counts, even if deduplicated dispatch carried a token only once.
TEST(ProgramAccounts, ExpertTensorCollectivesMoveEveryRow) {
  int collectives = 0;
  for (const Case& c : cases()) {
    for_each_operation(c, [&](const IssuedOperation& issued) {
      const Operation& op = *issued.operation;
      const bool inside = op.phase == Phase::forward || op.phase == Phase::input_gradient;
      if (op.group != Group::expert_tensor || !inside) return;
      Bytes whole;
      for (const Operand& operand : op.operands) {
        const auto& buffer = c.program.buffer(operand.buffer);
        if (buffer.columns == c.job.job.model.hidden_size) whole = std::max(whole, buffer.bytes());
      }
      expect_close(op.message.value(), whole.value(), c.name + "rows");
      ++collectives;
    });
  }
  EXPECT_GT(collectives, 100);
}

// Mixtral sends 4,096 tokens to 2 experts each, and two ranks share an expert: 2 · 4,096 · 2 rows
// of 4,096 elements in 16 bits, in each of the four collectives of a layer.
TEST(ProgramAccounts, ExpertTensorCollectivesOfMixtralMove128MiB) {
  PreparedJob job = job_of(mixtral_8x7b());
  job.job.training.stack.deduplicated_dispatch = true;
  const Plan plan = legal_plan(job, {.expert_parallel = 2, .expert_tensor_parallel = 2});
  const auto program = lower(job.job.model, job.job.training, plan);
  ASSERT_TRUE(program);
  int collectives = 0;
  for_each_operation({job, plan, *program, ""}, [&](const IssuedOperation& issued) {
    if (issued.operation->group != Group::expert_tensor) return;
    EXPECT_EQ(issued.operation->message, 128.0_MiB);
    ++collectives;
  });
  EXPECT_EQ(collectives, 4 * 8 * plan.microbatches);
}

// For sequences that are sharded in their second dimension, PyTorch copies what was gathered and
// what will be scattered, whole; except for inputs that are gathered for the weight gradient.
TEST(ProgramAccounts, CopiesBesideCollectivesMoveTheirBytes) {
  int with_copies = 0;
  for (const Case& c : cases()) {
    if (c.job.job.model.mtp_layers > 0) continue;  // no stack that copies has it
    Bytes exchanged, copied;
    for_each_operation(c, [&](const IssuedOperation& issued) {
      const Operation& op = *issued.operation;
      const bool shards =
          op.kind == OperationKind::all_gather || op.kind == OperationKind::reduce_scatter;
      const bool inside = op.phase != Phase::weight_gradient && op.phase != Phase::update;
      if (shards && inside && op.group == Group::tensor) exchanged += op.message;
      if (!op.part || !is_sequence_copy(*op.part)) return;
      EXPECT_EQ(op.stream, ProgramStream::compute);
      copied += c.program.buffer(op.operands.back().buffer).bytes();
    });
    if (!c.job.job.training.stack.copies_sharded_sequences) exchanged = Bytes(0);
    expect_close(copied.value(), exchanged.value(), c.name + "copies");
    with_copies += copied > Bytes(0) ? 1 : 0;
  }
  EXPECT_GT(with_copies, 20);
}

}  // namespace
}  // namespace trainyard
