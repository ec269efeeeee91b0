// Loads the library again and again, and two copies of it at once; each trains; nothing of it stays:
// plug_in LIBRARY COPY
#define _GNU_SOURCE // of dlopen's RTLD_ flags on old systems
#include "expect.h"
#include <dlfcn.h>
#include <locale.h>
#include <signal.h>

/// A function of the library, by its own type.
#define OF(library, name) ((__typeof__(&name))dlsym(library, #name))

static float fit(void *library) {
  hs_graph *graph = NULL;
  hs_device *device = NULL;
  hs_trainer *trainer = NULL;
  const float xs[] = {-1, 0, 1, 2}, ys[] = {-3, -1, 1, 3};
  EXPECT(OF(library, hs_graph_create)(&graph) == HS_OK);
  hs_tensor x = OF(library, hs_input)(graph, "x", HS_F32, HS_SHAPE(4, 1));
  hs_tensor y = OF(library, hs_input)(graph, "y", HS_F32, HS_SHAPE(4, 1));
  hs_tensor weight = OF(library, hs_parameter)(graph, "w", HS_SHAPE(1, 1), OF(library, hs_constant)(0));
  hs_trainer_options options = {.size = sizeof options};
  options.loss = OF(library, hs_mse_loss)(graph, OF(library, hs_linear)(graph, x, weight, 0), y);
  options.precision = &(hs_precision){.size = sizeof(hs_precision), .preset = "float32"};
  const hs_values inputs[] = {{.name = "x", .f32 = xs, .count = 4}, {.name = "y", .f32 = ys, .count = 4}};
  EXPECT(OF(library, hs_device_open)(NULL, NULL, &device) == HS_OK);
  EXPECT(OF(library, hs_trainer_create)(device, graph, &options, &trainer) == HS_OK);
  for (int i = 0; i < 5; i++) EXPECT(OF(library, hs_trainer_step)(trainer, inputs, 2) == HS_OK);
  float slope = 0;
  EXPECT(OF(library, hs_trainer_parameter)(trainer, "w", HS_CURRENT, &slope, 1) == HS_OK);
  OF(library, hs_trainer_free)(trainer);
  OF(library, hs_graph_free)(graph);
  OF(library, hs_device_free)(device);
  EXPECT(slope > 0.1f);
  return slope;
}

/// Whether this process has the file mapped, and how many threads it has.
static int mapped(const char *file) {
  char line[8192];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  EXPECT(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) found |= strstr(line, file) != NULL;
  fclose(maps);
  return found;
}

static int threads(void) {
  char line[256];
  int count = 0;
  FILE *status = fopen("/proc/self/status", "r");
  EXPECT(status != NULL);
  while (fgets(line, sizeof line, status) != NULL) sscanf(line, "Threads: %d", &count);
  fclose(status);
  return count;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  struct sigaction before[32], after;
  for (int i = 1; i < 32; i++) sigaction(i, NULL, &before[i]);
  const char *locale = setlocale(LC_ALL, NULL);
  float first = 0;
  for (int turn = 0; turn < 10; turn++) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    EXPECT(library != NULL);
    if (turn == 0) EXPECT(threads() == 1);
    void *copy = turn == 5 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    const float slope = fit(library);
    if (turn == 0) first = slope;
    EXPECT(slope == first);
    if (copy != NULL) {
      EXPECT(OF(copy, hs_relu) != OF(library, hs_relu));
      EXPECT(fit(copy) == first && fit(library) == first);
      EXPECT(dlclose(copy) == 0 && !mapped(argv[2]));
    }
    EXPECT(dlclose(library) == 0);
    EXPECT(!mapped(argv[1]));
  }
  for (int i = 1; i < 32; i++) {
    sigaction(i, NULL, &after);
    EXPECT(after.sa_handler == before[i].sa_handler);
  }
  EXPECT(strcmp(locale, setlocale(LC_ALL, NULL)) == 0);
  return 0;
}
