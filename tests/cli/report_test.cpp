// trainyard report and trainyard diff.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// 2 × 3 points, one of which is refused: three devices cannot share 32 heads.
fs::path swept(const std::string& name, const std::string& nic = "400 Gbit/s") {
  const PrintedJson sweep = {
      {"trainyard", "sweep/1"},
      {"name", name},
      {"scenario",
       {{"name", "small"},
        {"model", "llama-3.1-8b"},
        {"cluster",
         {{"node",
           {{"name", name},
            {"device", "h100-sxm-80gb"},
            {"devices", 8},
            {"intra_node", {{"kind", "nvswitch"}, {"bandwidth", "450 GB/s"}}},
            {"nics", 8},
            {"nic_bandwidth", nic}}},
          {"nodes", 2}}},
        {"training", {{"global_batch", 64}, {"sequence_length", 4096}}},
        {"plan", {{"tensor_parallel", 1}}}}},
      {"vary",
       {{{"key", "cluster.nodes"}, {"values", {2, 4}}},
        {{"key", "plan.tensor_parallel"}, {"values", {1, 3, 4}}}}}};
  const fs::path file = write_scratch("sweep.json", sweep.dump());
  const fs::path out = scratch_folder() / ("results-" + nic.substr(0, 3) + ".sqlite");
  const Ran ran = run_trainyard("sweep '" + file.string() + "' -o '" + out.string() + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
  return out;
}

std::string reported(const fs::path& results, const std::string& format) {
  const fs::path out = scratch_folder() / ("report." + format);
  const Ran ran = run_trainyard("report '" + results.string() + "' -o '" + out.string() +
                                "' --format " + format);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return read_text(out);
}

TEST(ReportCommand, WritesOnePageThatNeedsNothingElse) {
  const std::string page = reported(swept("small sweep"), "html");
  for (const char* part :
       {"<!DOCTYPE html>", "<svg", "Strategies: memory, speed, scale", "rule of thumb", "plain DDP",
        "What was assumed", "SHA-256", "<script>", "TP + DP", "cluster.nodes", "</html>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  for (const char* outside : {"src=", "href=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
}

// As text "800 Gbit/s" would be more than "1 Tbit/s". The scenario is shown line by line.
TEST(ReportCommand, SortsQuantitiesByWhatTheyAreAndKeepsLines) {
  const fs::path sweep = write_scratch("nics.json", R"({ "trainyard": "sweep/1",
    "scenario": { "model": "llama-3.1-8b", "cluster": { "node": "dgx-h100-80gb", "nodes": 2 },
      "training": { "global_batch": 64, "sequence_length": 4096 }, "plan": { "zero_stage": 1 } },
    "vary": [ { "key": "cluster.node.nic_bandwidth", "values": ["800 Gbit/s", "1 Tbit/s"] } ] })");
  const fs::path out = scratch_folder() / "nics.sqlite";
  ASSERT_EQ(run_trainyard("sweep '" + sweep.string() + "' -o '" + out.string() + "'").status, 0);
  const std::string page = reported(out, "html");
  EXPECT_THAT(page, HasSubstr("<td data-v=\"100000000000\">800 Gbit/s</td>"));
  EXPECT_THAT(page, HasSubstr("<td data-v=\"125000000000\">1 Tbit/s</td>"));
  EXPECT_THAT(page, HasSubstr("\n  &quot;scenario&quot;: {\n"));
}

TEST(ReportCommand, EscapesNamesWhoeverWroteThem) {
  const std::string page =
      reported(swept("</title></pre><script>alert(1)</script>\" onclick='x' & <b>"), "html");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("</pre><script")));
  EXPECT_THAT(page, Not(HasSubstr("onclick='x'")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot; onclick=&#39;x&#39; "
                              "&amp; &lt;b&gt;"));
}

// The baseline of plain DDP for point 0 is what `estimate` gives for the same scenario with that
// plan.
TEST(ReportCommand, GivesEveryPointWithItsBaselines) {
  const PrintedJson report = PrintedJson::parse(reported(swept("small"), "json"));
  EXPECT_EQ(report.at("trainyard"), "report/1");
  ASSERT_EQ(report.at("points").size(), 6u);
  PrintedJson scenario = {{"trainyard", "scenario/1"}};
  scenario.update(report.at("document").at("scenario"));
  scenario["plan"] = {{"zero_stage", 0}};
  const fs::path plain = write_scratch("plain.json", scenario.dump());
  const PrintedJson estimated =
      PrintedJson::parse(run_trainyard("estimate '" + plain.string() + "' --format json").out);
  const PrintedJson& first = report.at("points").at(0);
  EXPECT_EQ(first.at("baselines").at("plain_ddp").at("step_time_s"), estimated.at("step_time_s"));
  EXPECT_EQ(first.at("baselines").at("plain_ddp").at("feasible"), estimated.at("feasible"));
  EXPECT_TRUE(first.at("baselines").at("rule_of_thumb").at("feasible").get<bool>());
  EXPECT_EQ(report.at("points").at(1).at("status"), "refused");
  const auto lines = lines_of(reported(swept("small"), "csv"));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[0], HasSubstr("point,status,note,cluster.nodes,plan.tensor_parallel,strategy"));
  EXPECT_THAT(lines[6], HasSubstr("5,done,,4,4,"));
}

TEST(ReportCommand, RefusesWhatIsNoResultFileInOneLine) {
  const fs::path text = write_scratch("notes.txt", "hello\n");
  const Ran ran = run_trainyard("report '" + text.string() + "' -o '" +
                                (scratch_folder() / "r.html").string() + "'");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_FALSE(fs::exists(scratch_folder() / "r.html"));
}

// Copies of the file, each with another page spoilt.
std::vector<fs::path> broken_copies(const fs::path& results) {
  const std::string whole = read_text(results);
  const auto byte_at = [&whole](std::size_t at) {
    return static_cast<unsigned char>(whole.at(at));
  };
  const std::size_t page = 256 * byte_at(16) + byte_at(17);  // bytes, as the file's head says
  std::vector<fs::path> copies;
  for (std::size_t at = page; at < whole.size(); at += page) {
    std::string broken = whole;
    broken.at(at) = '\x7f';
    copies.push_back(write_scratch(fmt::format("broken-{}.sqlite", at / page), broken));
  }
  return copies;
}

// Some errors are found only after everything else has been read.
TEST(ReportCommand, RefusesBrokenResultsWhereverTheyAreBroken) {
  const fs::path results = swept("small");
  const fs::path page = scratch_folder() / "r.html";
  for (const fs::path& broken : broken_copies(results)) {
    for (const std::string& command : {"report " + quoted(broken) + " -o " + quoted(page),
                                       "diff " + quoted(broken) + " " + quoted(results),
                                       "diff " + quoted(results) + " " + quoted(broken)}) {
      const Ran ran = run_trainyard(command);
      if (ran.status == 0) continue;  // nothing of that page is asked for
      EXPECT_EQ(ran.status, 2) << command;
      EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
      EXPECT_THAT(ran.err, HasSubstr(broken.string() + ": ")) << command;
    }
  }
}

TEST(ReportCommand, DoesNotReplaceTheResultsThatItReads) {
  const fs::path results = swept("small");
  const fs::path link = scratch_folder() / "link.sqlite";
  fs::create_symlink(results, link);
  const std::string before = read_text(results);
  for (const fs::path& out : {results, link}) {
    const Ran ran = run_trainyard("report " + quoted(results) + " -o " + quoted(out));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(out.string() + ": found a file that is read; allowed: "));
    EXPECT_EQ(read_text(results), before);
  }
}

// The changes of the parts sum to the change of the step.
TEST(DiffCommand, SaysWhatChangedAndWhichPartsMoved) {
  const fs::path a = small_scenario(R"(, "plan": { "tensor_parallel": 2 })");
  const fs::path copy = scratch_folder() / "a.json";
  fs::copy_file(a, copy);
  const fs::path b = small_scenario(R"(, "plan": { "tensor_parallel": 8 })");
  const std::string files = "'" + copy.string() + "' '" + b.string() + "'";
  const PrintedJson json =
      PrintedJson::parse(run_trainyard("diff " + files + " --format json").out);
  EXPECT_EQ(json.at("changes"),
            PrintedJson::parse(R"([{ "key": "plan.tensor_parallel", "a": 2, "b": 8 }])"));
  double moved = 0;
  for (const PrintedJson& part : json.at("parts")) moved += part.at("change").get<double>();
  EXPECT_NEAR(
      moved,
      json.at("b").at("step_time_s").get<double>() - json.at("a").at("step_time_s").get<double>(),
      1e-9);
  const Ran text = run_trainyard("diff " + files);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("tensor-parallel"));
  EXPECT_THAT(text.out, HasSubstr("plan.tensor_parallel"));
}

// One node of eight: eight replicas without tensor parallelism, four with two ranks of it.
TEST(DiffCommand, SaysWhatFollowsOnlyWhereOneScenarioSaysIt) {
  const fs::path whole = small_scenario(R"(, "plan": { "tensor_parallel": 1, "zero_stage": 1,
      "data_parallel": 8, "virtual_stages": 1, "overlap": { "pipeline": true } })");
  const fs::path a = scratch_folder() / "whole.json";
  fs::copy_file(whole, a);
  const fs::path b = small_scenario(R"(, "plan": { "tensor_parallel": 2, "overlap": {} })");
  const Ran ran = run_trainyard("diff " + quoted(a) + " " + quoted(b) + " --format json");
  EXPECT_EQ(PrintedJson::parse(ran.out).at("changes"), PrintedJson::parse(R"([
      { "key": "plan.tensor_parallel", "a": 1, "b": 2 },
      { "key": "plan.data_parallel", "a": 8, "b": 4 }])"));
}

// The price is twice as high and devices fail twice as often. The step stays, but cost and goodput
// change.
TEST(DiffCommand, SaysWhatMovedBesideTheStep) {
  const auto priced = [](const char* name, int dollars, int days) {
    const fs::path file = small_scenario(fmt::format(R"(, "plan": {{ "tensor_parallel": 2 }},
        "price": "{} USD/h", "power": {{ "carbon_intensity": "360 gCO2/kWh" }},
        "reliability": {{ "device_mtbf": "{} days" }})",
                                                     dollars, days));
    fs::copy_file(file, scratch_folder() / name, fs::copy_options::overwrite_existing);
    return quoted(scratch_folder() / name);
  };
  const std::string a = priced("a.json", 1, 20), dear = priced("dear.json", 2, 20),
                    frail = priced("frail.json", 1, 10);
  const PrintedJson price =
      PrintedJson::parse(run_trainyard(fmt::format("diff {} {} --format json", a, dear)).out);
  const double before = price.at("a").at("cost_per_step_usd").get<double>();
  EXPECT_NEAR(price.at("b").at("cost_per_step_usd").get<double>(), 2 * before, 1e-9 * before);
  EXPECT_EQ(price.at("a").at("goodput"), price.at("b").at("goodput"));
  EXPECT_NEAR(price.at("a").at("carbon_per_step_g").get<double>(),
              1e-4 * price.at("a").at("energy_per_step_joule").get<double>(), 1e-9);
  const PrintedJson failures =
      PrintedJson::parse(run_trainyard(fmt::format("diff {} {} --format json", a, frail)).out);
  EXPECT_LT(failures.at("b").at("goodput"), failures.at("a").at("goodput"));
  const std::string text = run_trainyard(fmt::format("diff {} {}", a, dear)).out;
  EXPECT_THAT(text, HasSubstr("cost of a step"));
  EXPECT_THAT(text, HasSubstr("+100"));
  EXPECT_THAT(text, Not(HasSubstr("goodput")));
  EXPECT_THAT(run_trainyard(fmt::format("diff {} {}", a, frail)).out, HasSubstr("goodput"));
}

// Four and two nodes of A100 beside two of H100.
TEST(DiffCommand, SaysHowGroupsOfUnlikeNodesAreUsed) {
  const fs::path a = unlike_groups(2);
  const fs::path b = unlike_groups(4);
  const std::string files = "diff '" + a.string() + "' '" + b.string() + "'";
  const PrintedJson json = PrintedJson::parse(run_trainyard(files + " --format json").out);
  EXPECT_TRUE(json.at("parts").is_null());
  const PrintedJson plan =
      PrintedJson::parse(run_trainyard("plan '" + b.string() + "' --format json").out);
  EXPECT_EQ(json.at("b").at("plan"), plan.at("plans").at(0));
  EXPECT_EQ(json.at("b").at("step_time_s"), plan.at("plans").at(0).at("step_time_s"));
  EXPECT_LT(json.at("b").at("step_time_s"), json.at("a").at("step_time_s"));
  const Ran text = run_trainyard(files);
  EXPECT_NE(text.out.find("how B uses its groups"), std::string::npos) << text.out;
}

TEST(DiffCommand, ComparesTheResultsOfTwoSweeps) {
  const fs::path fast = swept("small");
  const fs::path slow = swept("small", "100 Gbit/s");
  const std::string files = "diff '" + fast.string() + "' '" + slow.string() + "'";
  const PrintedJson json = PrintedJson::parse(run_trainyard(files + " --format json").out);
  EXPECT_EQ(json.at("changes"),
            PrintedJson::parse(R"([{ "key": "scenario.cluster.node.nic_bandwidth",
                                                  "a": "400 Gbit/s", "b": "100 Gbit/s" }])"));
  // Two of six points are refused in both; the others reduce gradients over the NICs.
  EXPECT_EQ(json.at("same"), 2);
  EXPECT_EQ(json.at("moved"), 4);
  EXPECT_EQ(json.at("largest").at(0).at("largest_part"), "data_parallel_s");
  EXPECT_GT(json.at("largest").at(0).at("step_time_change").get<double>(), 0);
  const Ran text = run_trainyard(files);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("largest moves"));
}

// The same steps with a carbon intensity that is three times as high.
TEST(DiffCommand, SaysWhichFigureOfASweepMoved) {
  const auto swept_at = [](int grams) {
    const fs::path sweep = write_scratch("grid.json", fmt::format(R"({{ "trainyard": "sweep/1",
      "scenario": {{ "model": "llama-3.1-8b", "cluster": {{ "node": "dgx-h100-80gb", "nodes": 2 }},
        "training": {{ "global_batch": 64, "sequence_length": 4096 }}, "plan": {{ "zero_stage": 1 }},
        "power": {{ "carbon_intensity": "{} gCO2/kWh" }} }},
      "vary": [ {{ "key": "cluster.nodes", "values": [2, 4] }} ] }})",
                                                                  grams));
    const fs::path out = scratch_folder() / fmt::format("grid-{}.sqlite", grams);
    EXPECT_EQ(run_trainyard("sweep " + quoted(sweep) + " -o " + quoted(out)).status, 0);
    return quoted(out);
  };
  const std::string files = fmt::format("diff {} {}", swept_at(100), swept_at(300));
  const PrintedJson json = PrintedJson::parse(run_trainyard(files + " --format json").out);
  EXPECT_EQ(json.at("same"), 0);
  EXPECT_EQ(json.at("moved"), 2);
  EXPECT_EQ(json.at("largest").at(0).at("largest_figure"), "carbon_per_step_g");
  EXPECT_TRUE(json.at("largest").at(0).at("largest_part").is_null());
  EXPECT_EQ(json.at("largest").at(0).at("step_time_change"), 0);
  const std::string text = run_trainyard(files).out;
  EXPECT_THAT(text, HasSubstr("0 points of both have the same answer, 2 moved"));
  EXPECT_THAT(text, HasSubstr("carbon_per_step_g"));
}

// The refusal comes at once, on either side, because nobody writes to the FIFO.
TEST(DiffCommand, RefusesAFifo) {
  const fs::path scenario = small_scenario();
  const fs::path pipe = scratch_folder() / "pipe";
  ASSERT_EQ(std::system(("mkfifo " + quoted(pipe)).c_str()), 0);
  for (const auto& [a, b] : {std::pair{scenario, pipe}, {pipe, scenario}}) {
    const Ran ran = run_trainyard("diff " + quoted(a) + " " + quoted(b), "timeout 60");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("is a FIFO; allowed: a regular file"));
  }
}

TEST(DiffCommand, RefusesAScenarioBesideResults) {
  const Ran ran =
      run_trainyard("diff '" + swept("small").string() + "' '" + small_scenario().string() + "'");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
}

}  // namespace
}  // namespace trainyard
