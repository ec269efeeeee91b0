// Lists the machine's Vulkan devices and how Halfstep can use each.
//
//   $ bin/devices
//   #  device                            type  memory   tier                   driver                              ...
//   0  llvmpipe (LLVM 15.0.6, 256 bits)  cpu   2.0 GiB  native 16-bit storage  llvmpipe Mesa 22.3.6 (LLVM 15.0.6)  ...
//
// The last column tells whether the device can be used, and why or why not: "yes: Vulkan 1.3.230, a compute queue". A
// device is selected by its number or part of its name: HALFSTEP_DEVICE=0, HALFSTEP_DEVICE=llvmpipe.
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "samples/common/command_line.h"

namespace {

constexpr std::size_t columns = 7;
using Row = std::array<std::string, columns>;

Row row(const halfstep::DeviceInfo& device) {
  const double gib = static_cast<double>(device.memory_bytes) / (1 << 30);
  const std::string usable =
      device.usable ? fmt::format("yes: Vulkan {}, a compute queue", device.api_version) : "no: " + device.reason;
  return {std::to_string(device.index),
          device.name,
          device.type,
          fmt::format("{:.1f} GiB", gib),
          device.tier,
          device.driver,
          usable};
}

void print_table(const std::vector<halfstep::DeviceInfo>& devices) {
  std::vector<Row> rows{{"#", "device", "type", "memory", "tier", "driver", "usable"}};
  for (const halfstep::DeviceInfo& device : devices) rows.push_back(row(device));
  std::array<std::size_t, columns> widths{};
  for (const Row& cells : rows) {
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  for (const Row& cells : rows) {
    for (std::size_t i = 0; i + 1 < columns; ++i) fmt::print("{:<{}}  ", cells[i], widths[i]);
    fmt::print("{}\n", cells.back());
  }
}

void print_json(const std::vector<halfstep::DeviceInfo>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const halfstep::DeviceInfo& device : devices) {
    list.push_back({{"index", device.index},
                    {"name", device.name},
                    {"type", device.type},
                    {"driver", device.driver},
                    {"api_version", device.api_version},
                    {"memory_bytes", device.memory_bytes},
                    {"tier", device.tier},
                    {"usable", device.usable},
                    {"reason", device.reason}});
  }
  // Names come from drivers and may not be UTF-8.
  fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Lists the machine's Vulkan devices, the tier that each trains in, and whether it can be used.");
  bool json = false;
  app.add_flag("--json", json, "Print JSON instead of a table");
  return samples::run_program(app, argc, argv, [&] {
    const std::vector<halfstep::DeviceInfo> devices = halfstep::Device::list();
    json ? print_json(devices) : print_table(devices);
    return samples::exit_done;
  });
}
