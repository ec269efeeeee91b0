// Must match engine/state/step_state.h, which documents the fields.
#ifndef HALFSTEP_OPTIMIZER_STATE
#define HALFSTEP_OPTIMIZER_STATE

// Of an optimizer other than the trainer's own. An array of them follows the StepState in its buffer.
struct OptimizerState {
  float rate;
  float unused[3];
};

#endif
