#include "scenarios/interchange/hardware/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr int kMostNvlinks = 18;  // of one device, up to NVLink 5
constexpr std::size_t kMostColumns = 1000;

// The text without colours and underlines: ESC [ … letter.
std::string without_escapes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      plain += text[at];
      continue;
    }
    while (at + 1 < text.size() && (text[at] < 'A' || text[at] == '[')) ++at;
  }
  return plain;
}

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 &&
         std::ranges::all_of(word.substr(3), [](char c) { return c >= '0' && c <= '9'; });
}

struct LinkMatrix {
  std::vector<std::string> columns;                      // devices, in order
  std::map<std::string, std::vector<std::string>> rows;  // cells of each GPU
  int gpus = 0;
};

// The NVLinks of a cell: 12 for "NV12"; 0 for any other known word; −1 for an unknown one.
int links_of(std::string_view cell) {
  int links = 0;
  if (cell.starts_with("NV")) {
    const auto parsed = std::from_chars(cell.data() + 2, cell.data() + cell.size(), links);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == cell.data() + cell.size();
    return whole && links >= 1 && links <= 1000 ? links : -1;
  }
  constexpr auto kWords =
      std::to_array<std::string_view>({"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB"});
  return std::ranges::find(kWords, cell) != kWords.end() ? 0 : -1;
}

class MatrixReader {
 public:
  explicit MatrixReader(const ForeignFile& file) : file_(file) {}

  Expected<LinkMatrix> read() {
    const std::string plain = without_escapes(file_.text);
    std::string_view rest = plain;
    for (std::size_t line = 1; !rest.empty(); ++line) {
      const auto words = words_of(take_line(rest));
      if (words.empty() || !is_gpu(words.front())) continue;
      const bool header = matrix_.columns.empty();
      auto done = header ? read_header(words, line) : read_row(words, line);
      if (!done) return tl::unexpected(done.error());
    }
    if (matrix_.columns.empty()) {
      return file_.error("found no row of GPU0, GPU1, …; allowed: what nvidia-smi topo -m prints");
    }
    if (matrix_.rows.size() != static_cast<std::size_t>(matrix_.gpus)) {
      return file_.error(fmt::format("found the rows of {} GPU{}; allowed: those of all {}",
                                     matrix_.rows.size(), matrix_.rows.size() == 1 ? "" : "s",
                                     matrix_.gpus));
    }
    return std::move(matrix_);
  }

 private:
  // Devices stand before "CPU Affinity"; NICs are NIC0, … or, in older drivers, mlx5_0, ….
  Expected<void> read_header(const std::vector<std::string_view>& words, std::size_t line) {
    for (const std::string_view word : words) {
      if (word == "CPU" || word == "NUMA") break;
      matrix_.columns.emplace_back(word);
      matrix_.gpus += is_gpu(word) ? 1 : 0;
    }
    if (matrix_.columns.size() <= kMostColumns) return {};
    return file_.error_in_line(line, fmt::format("found {} columns; allowed: at most {}",
                                                 matrix_.columns.size(), kMostColumns));
  }

  Expected<void> read_row(const std::vector<std::string_view>& words, std::size_t line) {
    const std::string name(words.front());
    const auto wanted = static_cast<std::size_t>(matrix_.gpus);
    if (words.size() < wanted + 1) {
      return file_.error_in_line(
          line, fmt::format("found {} cell{} of {}; allowed: one a GPU ({})", words.size() - 1,
                            words.size() == 2 ? "" : "s", name, wanted));
    }
    for (std::size_t i = 1; i <= wanted; ++i) {
      if (links_of(words[i]) >= 0) continue;
      return file_.error_in_line(
          line, fmt::format("found {}; allowed: X, SYS, NODE, PHB, PXB, PIX or NV and a number",
                            shown(words[i])));
    }
    if (!matrix_.rows.emplace(name, std::vector<std::string>(words.begin() + 1, words.end()))
             .second) {
      return file_.error_in_line(line, fmt::format("found {} twice; allowed: once", name));
    }
    return {};
  }

  const ForeignFile& file_;
  LinkMatrix matrix_;
};

struct Links {
  int fewest = 0, most = 0;                      // between a pair of GPUs
  int fewest_of_device = 0, most_of_device = 0;  // summed over all pairs of a device
};

Links count_links(const LinkMatrix& matrix) {
  Links links{.fewest = 1000, .fewest_of_device = 1'000'000};
  for (const auto& [name, cells] : matrix.rows) {
    int sum = 0;
    for (int other = 0; other < matrix.gpus; ++other) {
      const auto column = static_cast<std::size_t>(other);
      if (matrix.columns[column] == name) continue;
      const int count = links_of(cells[column]);
      links.fewest = std::min(links.fewest, count);
      links.most = std::max(links.most, count);
      sum += count;
    }
    links.fewest_of_device = std::min(links.fewest_of_device, sum);
    links.most_of_device = std::max(links.most_of_device, sum);
  }
  if (matrix.gpus == 1) links = {};
  return links;
}

// The number of GPUs that NVLinks join with one, also over other GPUs.
int reached_from(const LinkMatrix& matrix, std::size_t first) {
  std::vector<bool> reached(static_cast<std::size_t>(matrix.gpus));
  std::vector<std::size_t> open = {first};
  reached[first] = true;
  int count = 0;
  while (!open.empty()) {
    const auto row = matrix.rows.find(matrix.columns[open.back()]);
    open.pop_back();
    ++count;
    if (row == matrix.rows.end()) continue;
    for (std::size_t other = 0; other < reached.size(); ++other) {
      if (reached[other] || links_of(row->second[other]) == 0) continue;
      reached[other] = true;
      open.push_back(other);
    }
  }
  return count;
}

int largest_island(const LinkMatrix& matrix) {
  int largest = 1;
  for (std::size_t gpu = 0; gpu < static_cast<std::size_t>(matrix.gpus); ++gpu) {
    largest = std::max(largest, reached_from(matrix, gpu));
    if (largest == matrix.gpus) break;
  }
  return largest;
}

// Whether NVLinks go through an NVSwitch. Then every pair shows all links of a device (if some are
// missing, those of the device with fewer), which together are more than a device can have.
bool switched(const Links& links) {
  return links.fewest > 0 && links.most_of_device > kMostNvlinks;
}

// Counts the NICs behind the same PCIe switch as a GPU, if there are any; the others serve storage.
void count_nics(const LinkMatrix& matrix, ImportedNode& imported) {
  const auto devices = static_cast<std::size_t>(matrix.gpus);
  std::size_t all = 0, near = 0;
  for (std::size_t column = devices; column < matrix.columns.size(); ++column) {
    ++all;
    near += std::ranges::any_of(matrix.rows, [&](const auto& row) {
      const auto& cells = row.second;
      return column < cells.size() && (cells[column] == "PIX" || cells[column] == "PXB");
    });
  }
  imported.node.nics = static_cast<int>(near > 0 ? near : std::max<std::size_t>(all, 1));
  if (near > 0 && near < all) imported.assumptions.push_back(near_nics_in_words(all, near));
  if (all == 0) imported.assumptions.emplace_back("the file has no NIC: one");
}

struct Guess {
  const KnownDevice* device = nullptr;
  std::string why;
};

// Guesses the device by its NVLinks; NVLinks that do not join all GPUs are bridges between cards.
Guess guess_of(int nvlinks, bool bridges) {
  if (bridges) {
    return {known_device("h100-nvl-94gb"), "the file names none; a card with NVLink bridges"};
  }
  const KnownDevice* fits = device_of_links(nvlinks);
  return {fits != nullptr ? fits : known_device("a100-sxm-80gb"),
          fmt::format("the file names none; the usual one with {} NVLinks", nvlinks)};
}

void read_links(const LinkMatrix& matrix, const Links& links, ImportedNode& imported) {
  const int island = largest_island(matrix);
  if (island < matrix.gpus || links.fewest_of_device == 0) {
    return assume_pcie(
        imported, island > 1 ? islands_in_words(island, matrix.gpus) : "the file has no NVLink");
  }
  const bool through_switch = switched(links);
  const int fewest = through_switch ? links.fewest : links.fewest_of_device;
  const int most = through_switch ? links.most : links.most_of_device;
  if (fewest < most) {
    imported.assumptions.push_back(fewest_links_in_words(fewest, most, through_switch));
  }
  IntraNode& intra = imported.node.intra;
  intra.kind = through_switch ? IntraNodeKind::nvswitch : IntraNodeKind::nvlink_mesh;
  intra.bandwidth = nvlink_bandwidth(imported, fewest, most);
}

}  // namespace

Expected<ImportedNode> nvidia_smi_node(const ForeignFile& file,
                                       const std::optional<NamedDevice>& device) {
  const auto matrix = MatrixReader(file).read();
  if (!matrix) return tl::unexpected(matrix.error());
  const Links links = count_links(*matrix);
  const int island = largest_island(*matrix);
  ImportedNode imported;
  imported.node.name = file.stem;
  imported.node.devices = matrix->gpus;
  const Guess guess = guess_of(switched(links) ? links.most : links.most_of_device,
                               island > 1 && island < matrix->gpus);
  choose_device(imported, device, guess.device, guess.why);
  read_links(*matrix, links, imported);
  count_nics(*matrix, imported);
  const KnownDevice* known = known_device(imported);
  imported.node.nic_bandwidth =
      known != nullptr ? known->nic_bandwidth : guess.device->nic_bandwidth;
  imported.assumptions.push_back(fmt::format("NICs of {:.4g} Gbit/s: the file has no speed",
                                             imported.node.nic_bandwidth.value() * 8 / 1e9));
  note_rack(imported);
  return imported;
}

Expected<Imported> import_nvidia_smi(const std::filesystem::path& path, const std::string& device) {
  const auto named = named_device(device);
  if (!named) return tl::unexpected(named.error());
  const auto file = read_foreign_file(path);
  if (!file) return tl::unexpected(file.error());
  const auto node = nvidia_smi_node(*file, *named);
  if (!node) return tl::unexpected(node.error());
  return Imported{node_document(*node, fmt::format("nvidia-smi topo -m: {}", file->name)),
                  node_summary(*node),
                  node->assumptions,
                  {}};
}

}  // namespace trainyard
