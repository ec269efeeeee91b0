// What is the same however the rows of a workgroup are spread over its invocations. Included after one that says how: it
// has the functions that are called here.
#ifndef HALFSTEP_ATTENTION_MAIN
#define HALFSTEP_ATTENTION_MAIN

// Adds the other rows of this part that `head` has.
void add_head(Head head, uint own) {
  uvec2 ends = own_ends(own_rows_of_group());
  uvec2 range = others_of(head, ends.x, ends.y);
  range = uvec2(max(range.x, first) / uint(TILE) * uint(TILE), min(range.y, end));
  // The newest lavapipe runs a loop's first round even where no invocation does, and crashes on what that loads. (A do-while
  // loop takes AMD's compiler more registers than there are.)
  if (range.x < range.y) {
    for (uint other = range.x; other < range.y; other += uint(TILE)) add_tile(head, own, other);
  }
}

void main() {
  uint own = own_row();
  uint index = linear_group() / own_tiles;
  if (index >= own_heads) return;
#ifdef PASS_keys
  uint key_heads = heads / group;
  Head head = head_of(index / key_heads, index % key_heads * group + first_head);
#else
  Head head = head_of(index / heads, index % heads);
#endif
  uint carried_row = index * own_tiles * own_rows_of_group() + own;
  prepare(head, own);
  start_sums(head, own, carried_row);
#ifdef PASS_keys
  for (uint h = first_head; h < end_head; h++) {
    add_head(head, own);
    head.query_head++;
  }
#else
  add_head(head, own);
#endif
  if (CONTINUED) {
    carry_sums(carried_row);
  } else {
    store_results(head, own);
  }
}

#endif
