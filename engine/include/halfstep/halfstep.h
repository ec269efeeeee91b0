#pragma once

/// Halfstep: trains neural networks in half and mixed precision on Vulkan devices.
#include <halfstep/checkpoint.h>
#include <halfstep/custom_operator.h>
#include <halfstep/data.h>
#include <halfstep/device.h>
#include <halfstep/encodings.h>
#include <halfstep/error.h>
#include <halfstep/exchange.h>
#include <halfstep/graph.h>
#include <halfstep/image_folder.h>
#include <halfstep/inspector.h>
#include <halfstep/ops.h>
#include <halfstep/optimizer.h>
#include <halfstep/pattern.h>
#include <halfstep/precision.h>
#include <halfstep/predictor.h>
#include <halfstep/process.h>
#include <halfstep/recorder.h>
#include <halfstep/sampling.h>
#include <halfstep/schedule.h>
#include <halfstep/tensor.h>
#include <halfstep/text.h>
#include <halfstep/trainer.h>
#include <halfstep/update_rule.h>
#include <halfstep/version.h>
