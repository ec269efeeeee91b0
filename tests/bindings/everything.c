// Uses all of the C interface that needs a device, on the first device there is: everything FOLDER
// FOLDER is empty, for files.
#include "expect.h"
#include <math.h>
#include <threads.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { batch = 16, samples = 64 };

static const char *file_in(const char *folder, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void devices(hs_device **device) {
  uint32_t count = 0;
  OK(hs_device_count(&count));
  EXPECT(count > 0);
  hs_device_info info = {.size = sizeof info};
  OK(hs_device_describe(0, &info));
  EXPECT(strlen(info.name) > 0);
  FAILS(hs_device_describe(count, &info), HS_BAD_ARGUMENT, "index");
  FAILS(hs_device_count(NULL), HS_BAD_ARGUMENT, "NULL");
  hs_device_settings settings = {.size = sizeof settings, .may_fork = HS_OFF, .tier = "no such"};
  FAILS(hs_device_open(NULL, &settings, device), HS_BAD_ARGUMENT, "no such");
  EXPECT(*device == NULL);
  FAILS(hs_device_open("no such device", NULL, device), HS_BAD_ARGUMENT, "no such device");
  hs_adopted_device none = {.size = sizeof none};
  FAILS(hs_device_adopt(&none, NULL, device), HS_BAD_ARGUMENT, "");
  settings.tier = NULL;
  OK(hs_device_open(NULL, &settings, device));
  OK(hs_device_get_info(*device, &info));
  printf("%s\n", info.name);
}

/// Rows of four numbers and which of three classes they are of.
typedef struct model {
  hs_graph *graph;
  hs_tensor x, labels, logits, loss, accuracy;
} model;

static model build(hs_graph *graph, int64_t rows) {
  model m = {.graph = graph};
  m.x = hs_input(graph, "x", HS_F32, HS_SHAPE(rows, 4));
  m.labels = hs_input(graph, "labels", HS_U32, HS_SHAPE(rows));
  hs_tensor weight = hs_parameter(graph, "first/weight", HS_SHAPE(4, 16), hs_he(4));
  hs_tensor stored = hs_parameter_stored(graph, "last/weight", HS_SHAPE(16, 3), hs_glorot(16, 3), HS_SHAPE(1, 0));
  hs_tensor bias = hs_parameter(graph, "last/bias", HS_SHAPE(3), hs_uniform(-0.1f, 0.1f));
  hs_tensor gain = hs_parameter(graph, "first/gain", HS_SHAPE(16), hs_normal(1, 0.01f));
  hs_tensor steps = hs_state(graph, "steps", HS_SHAPE(1), hs_constant(0));
  OK(hs_update(graph, steps, hs_offset(graph, steps, 1)));
  hs_tensor hidden = hs_relu(graph, hs_mul(graph, hs_linear(graph, m.x, weight, 0), gain));
  m.logits = hs_linear(graph, hidden, stored, bias);
  m.loss = hs_cross_entropy(graph, m.logits, m.labels, 0, HS_IGNORED_LABEL);
  m.accuracy = hs_accuracy(graph, m.logits, m.labels, HS_IGNORED_LABEL);
  OK(hs_graph_status(graph));
  hs_dtype dtype;
  hs_shape shape;
  char name[64];
  OK(hs_tensor_type(graph, m.logits, &dtype, &shape));
  EXPECT(dtype == HS_F32 && shape.rank == 2 && shape.extent[0] == rows && shape.extent[1] == 3);
  OK(hs_tensor_name(graph, weight, name, sizeof name, NULL));
  EXPECT(strcmp(name, "first/weight") == 0);
  EXPECT(hs_graph_parameter_count(graph) == 64 + 48 + 3 + 16);
  return m;
}

static float rows_of_data[samples * 4];
static uint32_t labels_of_data[samples];

static void make_data(void) {
  for (int i = 0; i < samples; i++) {
    labels_of_data[i] = (uint32_t)(i % 3);
    for (int j = 0; j < 4; j++) rows_of_data[4 * i + j] = (j == i % 3 ? 1.0f : 0.0f) + 0.01f * (float)((7 * i + j) % 11);
  }
}

static void data_fields(hs_field fields[2]) {
  fields[0] = (hs_field){.name = "x", .type = HS_ELEMENT_F32, .shape = HS_SHAPE(4), .data = rows_of_data,
                         .bytes = sizeof rows_of_data};
  fields[1] = (hs_field){.name = "labels", .type = HS_ELEMENT_U32, .bound = 3, .data = labels_of_data,
                         .bytes = sizeof labels_of_data};
}

static int lines_logged = 0;
static void count_line(void *user, const char *line) {
  EXPECT(user == &lines_logged && line != NULL);
  lines_logged++;
}

static hs_trainer_options options_of(model m, const hs_metric *metric, const hs_feed *feeds) {
  static const hs_optimizer sgd = {.size = sizeof sgd, .kind = HS_SGD, .rate = 0.05f};
  static const hs_parameter_group groups[] = {{.pattern = "last/*", .rate = 0.5f, .weight_decay = HS_ZERO},
                                              {.pattern = "first/gain", .optimizer = &sgd}};
  static const hs_optimizer adamw = {.size = sizeof adamw, .kind = HS_ADAMW, .rate = 0.05f};
  static const hs_precision mixed = {.size = sizeof mixed, .preset = "mixed"};
  static const char *const classes[] = {"a", "b", "c"};
  hs_trainer_options options = {.size = sizeof options};
  options.loss = m.loss;
  options.metrics = metric;
  options.metric_count = 1;
  options.optimizer = &adamw;
  options.precision = &mixed;
  options.groups = groups;
  options.group_count = COUNT(groups);
  options.feeds = feeds;
  options.feed_count = 2;
  options.ema_decay = 0.9f;
  options.clip_norm = 10;
  options.model = "rows";
  options.classes = classes;
  options.class_count = COUNT(classes);
  options.log = count_line;
  options.log_user = &lines_logged;
  options.snapshot_every = 5;
  return options;
}

static int batches_filled = 0;
static int fill(void *user, const hs_source_batch *wanted) {
  if (user != NULL && wanted->number == 3) return 17;
  EXPECT(wanted->samples == batch && wanted->fields == 2);
  EXPECT(wanted->room_bytes[0] == batch * 4 * sizeof(float) && wanted->room_bytes[1] == batch * sizeof(uint32_t));
  for (size_t i = 0; i < wanted->samples; i++) {
    const size_t sample = wanted->indices[i];
    memcpy((float *)wanted->room[0] + 4 * i, rows_of_data + 4 * sample, 4 * sizeof(float));
    ((uint32_t *)wanted->room[1])[i] = labels_of_data[sample];
  }
  batches_filled++;
  return 0;
}

static void by_source(const hs_device *device, model m, hs_trainer_options options) {
  hs_field fields[2], without_data[2];
  data_fields(fields);
  for (int i = 0; i < 2; i++) {
    without_data[i] = fields[i];
    without_data[i].data = NULL;
    without_data[i].bytes = 0;
  }
  hs_source source = {.size = sizeof source, .name = "made", .count = samples, .fields = without_data,
                      .field_count = 2, .fill = fill};
  options.training_set = NULL;
  options.source = &source;
  hs_trainer *trainer = NULL;
  OK(hs_trainer_create(device, m.graph, &options, &trainer));
  for (int i = 0; i < 40; i++) OK(hs_trainer_step(trainer, NULL, 0));
  OK(hs_trainer_finish(trainer));
  EXPECT(batches_filled >= 40);
  // A trainer over a set draws the same batches.
  float from_source[48], from_set[48];
  OK(hs_trainer_parameter(trainer, "last/weight", HS_CURRENT, from_source, 48));
  hs_trainer_free(trainer);
  hs_dataset *set = NULL, *part = NULL;
  OK(hs_dataset_copy("rows", fields, 2, &set));
  OK(hs_dataset_take(set, 10, &part));
  EXPECT(hs_dataset_count(part) == 10 && hs_dataset_count(set) == samples);
  options.source = NULL;
  options.training_set = set;
  OK(hs_trainer_create(device, m.graph, &options, &trainer));
  hs_dataset_free(set);
  for (int i = 0; i < 40; i++) OK(hs_trainer_step(trainer, NULL, 0));
  OK(hs_trainer_parameter(trainer, "last/weight", HS_CURRENT, from_set, 48));
  EXPECT(memcmp(from_source, from_set, sizeof from_set) == 0);
  hs_evaluation evaluation = {.size = sizeof evaluation};
  OK(hs_trainer_evaluate(trainer, part, HS_AVERAGED, NULL, NULL, &evaluation));
  EXPECT(evaluation.samples == 10);
  hs_trainer_free(trainer);
  hs_dataset_free(part);
  // A failure of the application's function.
  source.user = &source;
  options.source = &source;
  options.training_set = NULL;
  OK(hs_trainer_create(device, m.graph, &options, &trainer));
  hs_status status = HS_OK;
  for (int i = 0; i < 8 && status == HS_OK; i++) status = hs_trainer_step(trainer, NULL, 0);
  FAILS(status, HS_BAD_FILE, "17");
  hs_trainer_free(trainer);
}

static int stop_at_once(void *user) {
  (void)user;
  return 1;
}

static void by_values(const hs_device *device, model m, hs_trainer_options options) {
  const hs_values inputs[] = {{.name = "x", .f32 = rows_of_data, .count = batch * 4},
                              {.name = "labels", .u32 = labels_of_data, .count = batch}};
  const hs_values both[] = {{.name = "x", .f32 = rows_of_data, .u32 = labels_of_data, .count = 1}};
  hs_trainer *trainer = NULL;
  options.training_set = NULL;
  options.feed_count = 0;
  OK(hs_trainer_create(device, m.graph, &options, &trainer));
  OK(hs_trainer_step(trainer, inputs, 2));
  FAILS(hs_trainer_step(trainer, inputs, 1), HS_BAD_ARGUMENT, "labels");
  FAILS(hs_trainer_step(trainer, both, 1), HS_BAD_ARGUMENT, "both");
  FAILS(hs_trainer_step(trainer, NULL, 0), HS_BAD_ARGUMENT, "");
  OK(hs_trainer_finish(trainer));
  hs_trainer_free(trainer);
}

static void train(hs_trainer *trainer, const hs_dataset *set) {
  for (int i = 0; i < 21; i++) OK(hs_trainer_step(trainer, NULL, 0));
  int ended = 0;
  const struct timespec frame = {.tv_nsec = 1000000};
  for (int i = 0; i < 10000 && !ended; i++) {
    OK(hs_trainer_run_for(trainer, 1000000, &ended)); // submits nothing while the device is behind
    thrd_sleep(&frame, NULL);
  }
  EXPECT(ended);
  FAILS(hs_trainer_run_for(trainer, 0, NULL), HS_BAD_ARGUMENT, "");
  OK(hs_trainer_finish(trainer));
  float metric = -1;
  hs_report report = {.size = sizeof report, .metrics = &metric, .metric_count = 1};
  OK(hs_trainer_report(trainer, &report));
  EXPECT(report.step == 22 && report.loss < 1 && metric >= 0 && metric <= 1 && report.metrics == &metric);
  double accuracy = -1;
  hs_evaluation evaluation = {.size = sizeof evaluation, .metrics = &accuracy, .metric_count = 1};
  OK(hs_trainer_evaluate(trainer, set, HS_CURRENT, NULL, NULL, &evaluation));
  EXPECT(evaluation.samples == samples && accuracy == 1);
  OK(hs_trainer_evaluate(trainer, set, HS_CURRENT, stop_at_once, NULL, &evaluation));
  EXPECT(evaluation.samples == 0 && isnan(evaluation.loss));
  size_t needed = 0;
  OK(hs_trainer_plan(trainer, NULL, 0, &needed));
  EXPECT(needed > 100);
  OK(hs_trainer_explain(trainer, NULL, 0, &needed));
  EXPECT(needed > 100);
  float bias[3] = {1, 2, 3}, read[3];
  OK(hs_trainer_set_parameter(trainer, "last/bias", bias, 3));
  OK(hs_trainer_parameter(trainer, "last/bias", HS_CURRENT, read, 3));
  EXPECT(memcmp(bias, read, sizeof bias) == 0);
  FAILS(hs_trainer_parameter(trainer, "last/bias", HS_CURRENT, read, 2), HS_BAD_ARGUMENT, "3 elements");
  FAILS(hs_trainer_parameter(trainer, "last/none", HS_CURRENT, read, 3), HS_BAD_ARGUMENT, "last/none");
}

static void save(hs_trainer *trainer, const hs_device *device, const char *folder) {
  hs_resume_point point = {0, 0, 0};
  hs_checkpoint *checkpoint = NULL;
  OK(hs_trainer_save(trainer, file_in(folder, "state.safetensors")));
  OK(hs_trainer_checkpoint(trainer, &checkpoint));
  for (int i = 0; i < 5; i++) OK(hs_trainer_step(trainer, NULL, 0));
  float first[48], second[48], third[48];
  OK(hs_trainer_parameter(trainer, "last/weight", HS_CURRENT, first, 48));
  OK(hs_trainer_load(trainer, file_in(folder, "state.safetensors"), &point));
  EXPECT(point.step == 22);
  for (int i = 0; i < 5; i++) OK(hs_trainer_step(trainer, NULL, 0));
  OK(hs_trainer_parameter(trainer, "last/weight", HS_CURRENT, second, 48));
  EXPECT(memcmp(first, second, sizeof first) == 0);
  OK(hs_trainer_load_checkpoint(trainer, checkpoint, NULL));
  const int logged = lines_logged;
  OK(hs_trainer_reopen(trainer, device, &point));
  EXPECT(point.step == 22 && lines_logged > logged);
  for (int i = 0; i < 5; i++) OK(hs_trainer_step(trainer, NULL, 0));
  OK(hs_trainer_parameter(trainer, "last/weight", HS_CURRENT, third, 48));
  EXPECT(memcmp(first, third, sizeof first) == 0);
  OK(hs_checkpoint_write(checkpoint, file_in(folder, "written.safetensors")));
  hs_checkpoint_free(checkpoint);
  char text[64];
  size_t needed = 0;
  OK(hs_file_metadata(file_in(folder, "written.safetensors"), "model", text, sizeof text, &needed));
  EXPECT(strcmp(text, "rows") == 0 && needed == 5);
  FAILS(hs_file_metadata(file_in(folder, "written.safetensors"), "none", text, 64, NULL), HS_BAD_FILE, "none");
  FAILS(hs_trainer_load(trainer, file_in(folder, "missing"), NULL), HS_BAD_FILE, "missing");
  OK(hs_trainer_save_weights(trainer, file_in(folder, "weights.safetensors"), HS_AVERAGED));
  hs_load_report *report = NULL;
  OK(hs_trainer_load_weights(trainer, file_in(folder, "weights.safetensors"), 1, &report));
  EXPECT(hs_load_report_count(report, HS_LOADED) == 5);
  int found = 0;
  for (size_t i = 0; i < 5; i++) found += strcmp(hs_load_report_name(report, HS_LOADED, i), "first.gain") == 0;
  EXPECT(found == 1);
  EXPECT(hs_load_report_name(report, HS_MISSING, 0) == NULL);
  hs_load_report_free(report);
}

static void predict(const hs_trainer *trainer, const hs_device *device, const char *folder) {
  hs_graph *graph = NULL;
  OK(hs_graph_create(&graph));
  const model m = build(graph, 2);
  const hs_values rows = {.name = "x", .f32 = rows_of_data, .count = 8};
  float of_trainer[6], of_other[6], of_file[6];
  hs_predictor *first = NULL, *second = NULL, *third = NULL;
  OK(hs_predictor_of_trainer(trainer, graph, m.logits, &first));
  OK(hs_predictor_of_predictor(first, graph, m.logits, &second));
  OK(hs_predictor_create(device, graph, m.logits, NULL, &third));
  hs_graph_free(graph);
  OK(hs_predictor_run(first, &rows, 1, of_trainer, 6));
  OK(hs_predictor_run(second, &rows, 1, of_other, 6));
  EXPECT(memcmp(of_trainer, of_other, sizeof of_trainer) == 0);
  EXPECT(of_trainer[0] > of_trainer[1] && of_trainer[4] > of_trainer[3]);
  FAILS(hs_predictor_run(third, &rows, 1, of_file, 6), HS_BAD_ARGUMENT, "");
  OK(hs_predictor_load_weights(third, file_in(folder, "weights.safetensors"), 1, NULL));
  OK(hs_predictor_run(third, &rows, 1, of_file, 6));
  EXPECT(fabsf(of_file[0] - of_trainer[0]) < 0.1f);
  FAILS(hs_predictor_run(first, &rows, 1, of_trainer, 5), HS_BAD_ARGUMENT, "6 numbers");
  hs_predictor_free(first);
  hs_predictor_free(second);
  hs_predictor_free(third);
}

static hs_metric metric_to_fit = {.name = "accuracy"};
static hs_feed feeds_to_fit[2];
static hs_dataset *set_to_fit;
static hs_status model_to_fit(void *user, hs_graph *graph, int64_t rows, hs_trainer_options *options) {
  EXPECT(user == &metric_to_fit && options->size == sizeof *options);
  const model m = build(graph, rows);
  metric_to_fit.tensor = m.accuracy;
  feeds_to_fit[0] = (hs_feed){.input = m.x};
  feeds_to_fit[1] = (hs_feed){.input = m.labels};
  *options = options_of(m, &metric_to_fit, feeds_to_fit);
  options->training_set = set_to_fit;
  return HS_OK;
}

static hs_status model_that_fails(void *user, hs_graph *graph, int64_t rows, hs_trainer_options *options) {
  (void)user;
  (void)options;
  hs_relu(graph, hs_input(graph, "x", HS_F32, HS_SHAPE(rows, -3)));
  return HS_BAD_ARGUMENT;
}

static void read_files(const hs_device *device, const char *folder) {
  hs_dataset *set = (hs_dataset *)folder;
  FAILS(hs_dataset_idx(folder, HS_TRAIN, &set), HS_BAD_FILE, "");
  EXPECT(set == NULL);
  FAILS(hs_dataset_cifar10(folder, HS_TEST, &set), HS_BAD_FILE, "");
  FAILS(hs_dataset_cifar100(folder, HS_TEST, 1, &set), HS_BAD_FILE, "");
  FAILS(hs_dataset_images(device, file_in(folder, "no images"), 32, 32, 3, &set), HS_BAD_FILE, "");
  FAILS(hs_dataset_tokens(file_in(folder, "none"), HS_ELEMENT_U16, 4, 0, &set), HS_BAD_FILE, "");
  const char *path = file_in(folder, "tokens");
  FILE *file = fopen(path, "wb");
  const uint16_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT(file != NULL && fwrite(tokens, sizeof tokens, 1, file) == 1 && fclose(file) == 0);
  OK(hs_dataset_tokens(path, HS_ELEMENT_U16, 4, 10, &set));
  EXPECT(hs_dataset_count(set) == 2);
  hs_dataset_free(set);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  make_data();
  hs_device *device = NULL;
  devices(&device);
  read_files(device, argv[1]);
  hs_graph *graph = NULL;
  OK(hs_graph_create(&graph));
  const model m = build(graph, batch);
  hs_field fields[2];
  data_fields(fields);
  hs_dataset *set = NULL;
  OK(hs_dataset_borrow(NULL, fields, 2, &set));
  const hs_metric metric = {.name = "accuracy", .tensor = m.accuracy};
  const hs_feed feeds[] = {{.input = m.x}, {.input = m.labels, .field = "labels"}};
  hs_trainer_options options = options_of(m, &metric, feeds);
  options.training_set = set;
  hs_trainer *trainer = NULL;
  hs_trainer_options wrong = options;
  wrong.loss = 0;
  FAILS(hs_trainer_create(device, graph, &wrong, &trainer), HS_BAD_ARGUMENT, "number 0");
  wrong = options;
  wrong.memory_limit = 100;
  FAILS(hs_trainer_create(device, graph, &wrong, &trainer), HS_OUT_OF_MEMORY, "");
  FAILS(hs_trainer_create(device, graph, NULL, &trainer), HS_BAD_ARGUMENT, "NULL");
  wrong = options;
  wrong.cancel = stop_at_once;
  FAILS(hs_trainer_create(device, graph, &wrong, &trainer), HS_CANCELLED, "cancelled");
  EXPECT(trainer == NULL);
  OK(hs_trainer_create(device, graph, &options, &trainer));
  EXPECT(lines_logged > 0);
  train(trainer, set);
  save(trainer, device, argv[1]);
  predict(trainer, device, argv[1]);
  by_values(device, m, options);
  by_source(device, m, options);
  hs_trainer_free(trainer);
  set_to_fit = set;
  OK(hs_trainer_create_to_fit(device, model_to_fit, &metric_to_fit, batch, &trainer));
  OK(hs_trainer_step(trainer, NULL, 0));
  OK(hs_trainer_finish(trainer));
  // In any order: what still needs a thing keeps it.
  hs_dataset_free(set);
  hs_graph_free(graph);
  hs_device_free(device);
  OK(hs_trainer_step(trainer, NULL, 0));
  hs_trainer_free(trainer);
  OK(hs_device_open(NULL, NULL, &device));
  FAILS(hs_trainer_create_to_fit(device, model_that_fails, NULL, batch, &trainer), HS_BAD_ARGUMENT, "-3");
  hs_device_free(device);
  return 0;
}
