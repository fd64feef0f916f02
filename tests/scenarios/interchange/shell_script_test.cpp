// Scripts as people write them for Megatron-LM: strings and arrays of arguments, arithmetic,
// branches. Every expected text is what bash makes of the script, except for commands, loops and
// unset variables.
#include <gmock/gmock.h>

#include "scenarios/interchange/shell/arithmetic.h"
#include "scenarios/interchange/shell/script.h"
#include "tests/scenarios/interchange/foreign.h"

namespace trainyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The words of the last command and of those before it, joined.
std::string words_of_script(const std::string& text) {
  const auto read = commands_of(foreign(text));
  if (!read) return line_of(read.error());
  std::string joined;
  for (const ShellWord& word : read->words) joined += (joined.empty() ? "" : " ") + word.text;
  return joined;
}

std::vector<std::string> assumptions_of(const std::string& text) {
  return commands_of(foreign(text)).value().assumptions;
}

std::optional<std::int64_t> number(std::string_view expression) {
  return shell_number(expression, [](std::string_view name) {
    return name == "TP" ? std::optional<std::string_view>("4") : std::nullopt;
  });
}

TEST(ShellArithmetic, IsThatOfC) {
  EXPECT_EQ(number("2 + 3 * TP"), 14);
  EXPECT_EQ(number("(2 + 3) * TP % 7"), 6);
  EXPECT_EQ(number("10 - 2 - 3"), 5);
  EXPECT_EQ(number("-7 / 2"), -3);
  EXPECT_EQ(number("(TP > 1) ? 10 : 20"), 10);
  EXPECT_EQ(number("TP <= 4 && TP != 3 || 0"), 1);
  EXPECT_EQ(number("!TP"), 0);
}

TEST(ShellArithmetic, DoesNotGuess) {
  for (const char* text : {"", "1 +", "UNKNOWN", "1 / 0", "9223372036854775807 + 1", "010", "1 2",
                           "(1", "x = 3", "-9223372036854775807 - 2"}) {
    EXPECT_EQ(number(text), std::nullopt) << text;
  }
  EXPECT_EQ(number(std::string(100'000, '(')), std::nullopt);
  EXPECT_EQ(number(std::string(100'000, '-') + "1"), std::nullopt);
}

// examples/pretrain_gpt_distributed_with_mp.sh of Megatron-LM, shortened.
TEST(ShellScript, SplitsAStringOfArgumentsWhereItIsUsed) {
  EXPECT_EQ(words_of_script(R"(
GPT_ARGS="
    --num-layers 24 \
    --hidden-size 1024
"
EXTRA=" --cpu-offload"
torchrun run.py $GPT_ARGS $EXTRA --name "two words"
)"),
            "torchrun run.py --num-layers 24 --hidden-size 1024 --cpu-offload --name two words");
}

// examples/mixtral/train_mixtral_8x7b_distributed.sh of Megatron-LM, shortened.
TEST(ShellScript, PutsInArraysDefaultsAndSums) {
  const std::string script = R"sh(
NNODES=${SLURM_NNODES:-"2"}
GPUS=8
WORLD=$((${GPUS} * NNODES))
ARGS=(
    --nnodes $NNODES
#    --not-this
    --seed 1   # nor this
)
ARGS+=(--world "$WORLD")
torchrun ${ARGS[@]} "${NEVER_SET[@]}" --log "$(date)" --tag `date` $OTHER
)sh";
  EXPECT_EQ(words_of_script(script),
            "torchrun --nnodes 2 --seed 1 --world 16 --log $(date) --tag `date` $OTHER");
  EXPECT_THAT(assumptions_of(script), ElementsAre(HasSubstr("\"NEVER_SET\" is empty")));
}

// examples/llama/train_llama3_8b_h100_fp8.sh of Megatron-LM, shortened. Bash splits the elements of
// an unquoted array and keeps those of a quoted one whole.
TEST(ShellScript, SplitsElementsOfArraysWithoutQuotes) {
  const std::string script = R"sh(
DTYPE_ARGS=()
DTYPE_ARGS+=("--fp8-format hybrid" "--fp8-param-gather")
ALL=("${DTYPE_ARGS[@]}" --bf16)
torchrun ${ALL[@]} "${DTYPE_ARGS[@]}"
)sh";
  const auto read = commands_of(foreign(script)).value();
  std::vector<std::string> words;
  for (const ShellWord& word : read.words) words.push_back(word.text);
  EXPECT_THAT(words, ElementsAre("torchrun", "--fp8-format", "hybrid", "--fp8-param-gather",
                                 "--bf16", "--fp8-format hybrid", "--fp8-param-gather"));
}

// The script is started without arguments.
TEST(ShellScript, TakesDefaultsOfItsOwnArguments) {
  EXPECT_EQ(
      words_of_script("TOK=${3:-\"MOCK\"}\nL=${1:-32}\nif [[ \"$TOK\" == MOCK ]]; then M=--mock; "
                      "fi\nrun --layers $L $M\n"),
      "run --layers 32 --mock");
  EXPECT_EQ(words_of_script("TP=$1\nif [ -z \"$1\" ]; then A=--none; fi\n"
                            "if [ -z \"$TP\" ]; then B=--neither; fi\nrun --tp ${TP:-4} $A $B\n"),
            "run --tp 4 --none --neither");
  EXPECT_EQ(words_of_script("run --tp $1 ${12:-x} ${@:-y} ${2}\n"), "run --tp $1 x y ${2}");
}

TEST(ShellScript, TakesTheBranchThatItsVariablesChoose) {
  const std::string script = R"(
SIZE=7B
if [ $SIZE = 70B ]; then
  LAYERS=80
elif [[ "$SIZE" == 7* && $((2 * 3)) -gt 5 ]]
then
  LAYERS=32; if (( LAYERS > 40 )); then DEEP=--deep; else DEEP=--flat; fi
else
  LAYERS=1
fi
case $SIZE in
  70B|65B) HIDDEN=8192 ;;
  7?) HIDDEN=4096
    ;;
  *) HIDDEN=1 ;;
esac
[ $LAYERS -ge 32 ] && SP=--sequence-parallel || SP=
[ -z "$UNSET" ] || SP=--wrong
run --layers $LAYERS --hidden $HIDDEN $SP $DEEP
)";
  EXPECT_EQ(words_of_script(script), "run --layers 32 --hidden 4096 --sequence-parallel --flat");
  EXPECT_THAT(assumptions_of(script), IsEmpty());
}

TEST(ShellScript, TakesWhatItAsksOfTheMachineAsNoAndSaysSo) {
  const std::string script = R"(
A=--plain
if [ -f latest.txt ] || command -v nvidia-smi; then A=--load; fi
run $A
)";
  EXPECT_EQ(words_of_script(script), "run --plain");
  EXPECT_THAT(assumptions_of(script), ElementsAre(HasSubstr("line 3: a condition")));
}

TEST(ShellScript, KnowsNothingOfWhatALoopCounts) {
  EXPECT_EQ(words_of_script("TP=1\nfor TP in 2 4; do\n run --tp $TP\ndone\n"), "run --tp $TP");
}

TEST(ShellScript, LeavesOutHereDocuments) {
  EXPECT_EQ(words_of_script("cat <<EOT > config\n{ \"it's\": --mine }\nEOT\nrun --a 1 | tee log\n"),
            "cat EOT config run --a 1 tee log");
}

TEST(ShellScript, ReadsACommandInQuotes) {
  EXPECT_EQ(words_of_script("N=2\nsrun bash -c \"cd x; run --nodes $N\"\n"),
            "srun bash -c cd x; run --nodes 2");
}

TEST(ShellScript, MayBeAListOfVariablesForAnother) {
  EXPECT_EQ(words_of_script("ARGS=(--a 1)\nMORE=\"--b 2\"\n"), "--a 1 --b 2");
}

TEST(ShellScript, GivesOneLineForWhatCannotBe) {
  EXPECT_EQ(words_of_script("x\nif [ a = b ]\nrun --a 1\n"),
            "foreign: line 2: found no \"then\" to what begins here");
  EXPECT_EQ(words_of_script("if [ a = b ]; then\nrun --a 1\n"),
            "foreign: found an if, a case or a loop without its end");
  EXPECT_THAT(words_of_script("else --a\n"), HasSubstr("line 1: found else without if"));
}

// An array doubled 64 times would be 2^64 words.
TEST(ShellScript, DoesNotGrow) {
  std::string script = "A=(--x)\n";
  for (int i = 0; i < 64; ++i) script += "A=(${A[@]} \"${A[@]}\")\n";
  EXPECT_THAT(words_of_script(script), HasSubstr("more text than a command line has"));
  std::string blocks;
  for (int i = 0; i < 1000; ++i) blocks += "if true; then\n";
  EXPECT_THAT(words_of_script(blocks), HasSubstr("more text than a command line has"));
  EXPECT_THAT(words_of_script("x $(( " + std::string(10'000, '(')), HasSubstr("x "));
}

}  // namespace
}  // namespace trainyard
