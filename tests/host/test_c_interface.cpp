// The C interface: errors, options and schedules are those of the C++ interface.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <halfstep.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "c/handles.h"

using namespace halfstep;

namespace {

struct Made {
  hs_graph* graph = nullptr;

  Made() { REQUIRE(hs_graph_create(&graph) == HS_OK); }
  ~Made() { hs_graph_free(graph); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
};

/// The names of functions of the header whose declaration has `part`.
std::set<std::string> declared(const std::string& part) {
  std::ifstream file(HALFSTEP_SOURCE "/engine/bindings/c/halfstep.h");
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  static const std::regex function(R"re(HS_API ([\w ]+[ *])(hs_\w+)\(([^;]*)\);)re");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it) {
    if (it->str(0).find(part) != std::string::npos) names.insert(it->str(2));
  }
  return names;
}

}  // namespace

TEST_CASE("C: every function that returns a tensor refuses none, and NULL, with a text") {
  // Every one is called by a test of this file or of tests/bindings.
  std::string tests;
  for (const char* file : {"tests/host/test_c_interface.cpp", "tests/host/test_c_graphs.cpp",
                           "tests/bindings/everything.c", "tests/bindings/guest.c", "tests/bindings/caches.c"}) {
    std::ifstream source(std::string(HALFSTEP_SOURCE "/") + file);
    std::stringstream all;
    all << source.rdbuf();
    tests += all.str();
  }
  int seen = 0;
  for (const std::string& name : declared("HS_API ")) {
    seen++;
    const std::string bare = name.substr(3);
    const bool tested = tests.find(name + "(") != std::string::npos || tests.find("ONE(" + bare) != std::string::npos ||
                        tests.find("TWO(" + bare) != std::string::npos;
    CHECK_MESSAGE(tested, name << " is not tested");
  }
  CHECK(seen > 140);
  CHECK(hs_relu(nullptr, 1) == 0);
  CHECK(std::string(hs_error_text()) == "[halfstep] expected a graph, got NULL");
  const Made made;
  CHECK(hs_relu(made.graph, 1) == 0);
  CHECK(hs_graph_status(made.graph) == HS_BAD_ARGUMENT);
  const std::string first = hs_error_text();
  CHECK(first == "[graph] expected one of its 0 tensors, got number 1");
  // What follows changes nothing of it.
  CHECK(hs_input(made.graph, "x", HS_F32, HS_SHAPE(2)) == 0);
  CHECK(hs_graph_status(made.graph) == HS_BAD_ARGUMENT);
  CHECK(hs_error_text() == first);
}

TEST_CASE("C: bad arguments are refused by name") {
  const auto refused = [](auto&& make, const std::string& text) {
    const Made made;
    CHECK(make(made.graph) == 0);
    CHECK(hs_graph_status(made.graph) != HS_OK);
    CHECK_MESSAGE(std::string(hs_error_text()).find(text) != std::string::npos, std::string(hs_error_text()));
  };
  const auto x = [](hs_graph* g) { return hs_input(g, "x", HS_F32, HS_SHAPE(2, 3)); };
  refused([&](hs_graph* g) { return hs_input(g, nullptr, HS_F32, HS_SHAPE(2)); }, "a name");
  refused([&](hs_graph* g) { return hs_input(g, "x", HS_WIDEST, HS_SHAPE(2)); }, "HS_F32");
  refused([&](hs_graph* g) { return hs_input(g, "x", HS_F32, hs_shape{9, {}}); }, "rank");
  refused([&](hs_graph* g) { return hs_input(g, "x", HS_F32, hs_shape{-1, {}}); }, "rank");
  refused([&](hs_graph* g) { return hs_parameter(g, "w", HS_SHAPE(2), hs_initializer{7, 0, 0}); }, "initializer");
  refused([&](hs_graph* g) { return hs_parameter(g, "w", HS_SHAPE(2), hs_he(0)); }, "initializer");
  for (const hs_initializer& wrong :
       {hs_constant(NAN), hs_uniform(2, 1), hs_normal(0, -1), hs_normal(NAN, 1), hs_initializer{2, 0, INFINITY}}) {
    refused([&](hs_graph* g) { return hs_parameter(g, "a/w", HS_SHAPE(2), wrong); }, "'a/w'");
    refused([&](hs_graph* g) { return hs_state(g, "a/s", HS_SHAPE(2), wrong); }, "'a/s'");
  }
  refused([&](hs_graph* g) { return hs_matmul(g, x(g), 1, 0, 0); }, "[matmul]");
  refused([&](hs_graph* g) { return hs_concat(g, nullptr, 3, 0); }, "tensors");
  refused([&](hs_graph* g) { return hs_image_model(g, "", "resnet9", x(g), 10); }, "resnet9");
  const auto tokens = [](hs_graph* g) { return hs_input(g, "x", HS_U32, HS_SHAPE(2, 3)); };
  hs_transformer_options layers{};
  layers.size = sizeof layers;
  layers.layers = -1;
  refused([&](hs_graph* g) { return hs_gpt(g, "", tokens(g), &layers); }, "[gpt] expected 1 layer or more, got -1");
  refused([&](hs_graph* g) { return hs_bert_classifier(g, "", tokens(g), 0, 0, 2, &layers); },
          "[bert] expected 1 layer");
  hs_conv2d_options sizeless{};
  sizeless.groups = 2;
  refused([&](hs_graph* g) { return hs_conv2d(g, x(g), 1, 0, &sizeless); }, "size");
}

TEST_CASE("C: options of older and newer programs") {
  struct Newer {
    hs_pool2d_options known{};
    std::int64_t unknown = 0;
  } newer;
  newer.known.size = sizeof newer;
  newer.known.kernel[0] = 3;
  const hs_pool2d_options read = c::read(&newer.known, "pool");
  CHECK(read.kernel[0] == 3);
  newer.unknown = 1;
  CHECK_THROWS_WITH_AS(c::read(&newer.known, "pool"),
                       "[pool] got an option of a newer version of the library than this", Error);
  hs_pool2d_options older{};
  older.size = offsetof(hs_pool2d_options, padding);
  older.kernel[0] = 5;
  older.padding[0] = 7;  // beyond what it knew
  const hs_pool2d_options from_older = c::read(&older, "pool");
  CHECK(from_older.kernel[0] == 5);
  CHECK(from_older.padding[0] == 0);
  hs_pool2d_options reserved{};
  reserved.size = sizeof reserved;
  reserved.reserved = 1;
  CHECK_THROWS_WITH_AS(c::read(&reserved, "pool"), "[pool] got an option of a newer version of the library than this",
                       Error);
}

TEST_CASE("C: a size that no version of a struct has is refused, and nothing is read") {
  hs_pool2d_options options{};
  hs_report report{};
  // Not set; a member cut in two; what was in memory.
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, sizeof options - 4, SIZE_MAX & ~std::size_t{7}}) {
    CAPTURE(size);
    options.size = size;
    CHECK_THROWS_WITH_AS(c::read(&options, "pool"), doctest::Contains("[pool] expected the size of the struct"), Error);
    report.size = size;
    CHECK_THROWS_WITH_AS(c::write(hs_report{}, &report, "report"),
                         doctest::Contains("[report] expected the size of the struct"), Error);
  }
}

TEST_CASE("C: optimizers and precisions have C++'s defaults, and their own members only") {
  const auto kind = [](hs_optimizer_kind which) {
    hs_optimizer optimizer{};
    optimizer.size = sizeof optimizer;
    optimizer.kind = which;
    return optimizer;
  };
  CHECK(c::optimizer_of(nullptr)->name() == "sgd");
  const std::array<Optimizer, 6> defaults{Sgd{}, Adam{}, AdamW{}, Lion{}, RmsProp{}, Muon{}};
  for (int i = 0; i < 6; i++) {
    const hs_optimizer given = kind(static_cast<hs_optimizer_kind>(i));
    const Optimizer made = c::optimizer_of(&given);
    CHECK(made->name() == defaults.at(static_cast<std::size_t>(i))->name());
    CHECK(made->rate().rates == defaults.at(static_cast<std::size_t>(i))->rate().rates);
    CHECK(made->weight_decay() == defaults.at(static_cast<std::size_t>(i))->weight_decay());
  }
  hs_optimizer adamw = kind(HS_ADAMW);
  adamw.weight_decay = HS_ZERO;
  CHECK(c::optimizer_of(&adamw)->weight_decay() == 0);
  adamw.momentum = 0.9F;
  CHECK_THROWS_WITH_AS(c::optimizer_of(&adamw), "[optimizer] expected members of its kind only, got momentum", Error);
  const hs_optimizer unknown = kind(static_cast<hs_optimizer_kind>(6));
  CHECK_THROWS_AS(c::optimizer_of(&unknown), Error);
  CHECK(c::precision_of(nullptr).name == "mixed");
  hs_precision precision{};
  CHECK_THROWS_AS(c::precision_of(&precision), Error);  // without its size
  precision.size = sizeof precision;
  precision.preset = "O3";
  precision.norms = HS_F32;
  precision.pairs = HS_WIDEST;
  precision.loss_scale = HS_SCALE_DYNAMIC;
  precision.scale_interval = 7;
  precision.round_weights = HS_NEAREST;
  precision.overflow = HS_SATURATE;
  precision.stop_on = HS_STOP_ON_INVALID;
  const hs_dtype_of layer{"fc", HS_F32};
  precision.layers = &layer;
  precision.layer_count = 1;
  const Precision made = c::precision_of(&precision);
  CHECK(made.name == "float16");
  CHECK(made.lists.norms == DType::f32);
  CHECK(made.lists.pairs == widest);
  CHECK(made.loss_scale.kind == LossScale::Kind::dynamic);
  CHECK(made.loss_scale.initial == 65536);
  CHECK(made.loss_scale.interval == 7);
  CHECK(made.rounding.weights == Rounding::nearest);
  CHECK(made.overflow == Overflow::saturate);
  CHECK(made.stop_on.invalid);
  CHECK_FALSE(made.stop_on.overflow);
  CHECK(made.layers == std::vector<std::pair<std::string, DType>>{{"fc", DType::f32}});
  precision.stop_on = 8;
  CHECK_THROWS_AS(c::precision_of(&precision), Error);
  precision.stop_on = 0;
  precision.preset = "O4";
  CHECK_THROWS_AS(c::precision_of(&precision), Error);
}

TEST_CASE("C: schedules have C++'s rates") {
  std::vector<float> rates(10, -1);
  const auto same = [&](hs_status status, const Schedule& schedule) {
    CHECK(status == HS_OK);
    std::vector<float> expected = schedule.rates;
    expected.resize(rates.size(), expected.back());
    CHECK(rates == expected);
  };
  same(hs_schedule_step(1, 3, 0.5F, 10, rates.data()), Schedule::step(1, 3, 0.5F, 10));
  same(hs_schedule_linear(1, 0, 10, rates.data()), Schedule::linear(1, 0, 10));
  same(hs_schedule_cosine(1, 2, 10, 0.1F, rates.data()), Schedule::cosine(1, 2, 10, 0.1F));
  same(hs_schedule_polynomial(1, 2, 0.1F, 10, rates.data()), Schedule::polynomial(1, 10, 2, 0.1F));
  same(hs_schedule_one_cycle(1, 0.3F, 10, rates.data()), Schedule::one_cycle(1, 10, 0.3F));
  // With its end, which only a training that goes on reaches.
  const auto whole = [&](const Schedule& schedule) {
    rates.resize(11);
    rates[10] = 0.1F;
    CHECK(rates == schedule.rates);
    rates.resize(10);
  };
  hs_schedule_cosine(1, 2, 10, 0.1F, rates.data());
  whole(Schedule::cosine(1, 2, 10, 0.1F));
  hs_schedule_polynomial(1, 2, 0.1F, 10, rates.data());
  whole(Schedule::polynomial(1, 10, 2, 0.1F));
  CHECK(hs_schedule_linear(1, 0, 10, nullptr) == HS_BAD_ARGUMENT);
  CHECK(hs_schedule_linear(1, 0, -1, rates.data()) == HS_BAD_ARGUMENT);
}

TEST_CASE("C: a text that is too long is cut between characters") {
  std::string text(2046, 'a');
  text += "é";
  c::failed(HS_SYSTEM, text);
  CHECK(std::string(hs_error_text()) == std::string(2046, 'a'));
  DeviceInfo device;
  for (const std::size_t letters : {253U, 254U}) {
    device.name = std::string(letters, 'a') + "é";
    CHECK(std::string(c::info_of(device).name) == device.name.substr(0, letters == 253 ? 255 : 254));
  }
  CHECK(std::string(hs_version()) == version());
}
