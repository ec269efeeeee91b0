// Rows that a predictor keeps from run to run, on the first device there is.
#include "expect.h"

int main(void) {
  hs_device *device = NULL;
  hs_graph *graph = NULL;
  hs_predictor *predictor = NULL;
  OK(hs_device_open(NULL, NULL, &device));
  OK(hs_graph_create(&graph));
  const hs_tensor cache = hs_cache(graph, "kept", HS_SHAPE(1, 1, 2, 2));
  const hs_tensor row = hs_input(graph, "row", HS_F32, HS_SHAPE(1, 1, 1, 2));
  const hs_tensor first = hs_input(graph, "first", HS_U32, HS_SHAPE(1));
  const hs_tensor next = hs_store_rows(graph, cache, row, first);
  FAILS(hs_update(NULL, cache, next), HS_BAD_ARGUMENT, "a graph, got NULL");
  OK(hs_update(graph, cache, next));
  OK(hs_predictor_create(device, graph, hs_scale(graph, next, 2), NULL, &predictor));
  hs_graph_free(graph);
  const float rows[3][2] = {{1, 2}, {9, 9}, {3, 4}};
  const uint32_t places[] = {0, 0, 1};
  float kept[4];
  for (int i = 0; i < 3; i++) {
    const hs_values inputs[] = {{.name = "row", .f32 = rows[i], .count = 2},
                                {.name = "first", .u32 = &places[i], .count = 1}};
    // A call that fails has stored no row.
    if (i == 1) FAILS(hs_predictor_run(predictor, inputs, 2, kept, 3), HS_BAD_ARGUMENT, "4 numbers");
    else OK(hs_predictor_run(predictor, inputs, 2, kept, 4));
  }
  EXPECT(kept[0] == 2 && kept[1] == 4 && kept[2] == 6 && kept[3] == 8);
  OK(hs_predictor_clear_caches(predictor));
  const hs_values again[] = {{.name = "row", .f32 = rows[1], .count = 2}, {.name = "first", .u32 = &places[2], .count = 1}};
  OK(hs_predictor_run(predictor, again, 2, kept, 4));
  EXPECT(kept[0] == 0 && kept[1] == 0 && kept[2] == 18 && kept[3] == 18);
  hs_predictor_free(predictor);
  hs_device_free(device);
  return 0;
}
