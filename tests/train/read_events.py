"""Reads a folder of event files that watching.sh has made with TensorBoard's own reader, and fails where something is
missing. Usage: read_events.py FOLDER"""

import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
events.Reload()

tags = events.Tags()
for tag in ["loss", "accuracy", "rate", "loss_scale", "gradient_norm", "skipped"]:
    assert f"train/{tag}" in tags["scalars"], tags
losses = events.Scalars("train/loss")
assert [event.step for event in losses] == list(range(1, 25)), losses
assert all(0 < event.value < 100 for event in losses), losses
assert [event.step for event in events.Scalars("test/accuracy")] == [12, 24]

(name,) = tags["distributions"]
assert name == "exponents/conv1/weight.gradient", name
histogram = events.Histograms(name)[0].histogram_value
assert len(histogram.bucket) == len(histogram.bucket_limit) == 64
assert sum(histogram.bucket) == histogram.num > 0
assert -41 <= histogram.min < histogram.max <= 25, histogram

assert [event.step for event in events.Images("predictions")] == [12, 24], tags

graph = events.Graph()
names = {node.name for node in graph.node}
assert any(name.startswith("forward/conv1/conv2d") for name in names), names
assert {name.split("/")[0] for name in names} == {"feed", "forward", "backward", "update"}, names
assert all(source in names for node in graph.node for source in node.input)

assert b"float32_master_weights" in events.Tensors("run")[0].tensor_proto.string_val[0]
hyperparameters = plugin_data_pb2.HParamsPluginData.FromString(
    events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
flags = hyperparameters.session_start_info.hparams
assert flags["batch-size"].number_value == 8 and flags["precision"].string_value == "mixed", flags
end = plugin_data_pb2.HParamsPluginData.FromString(
    events.SummaryMetadata("_hparams_/session_end_info").plugin_data.content)
assert end.session_end_info.status == 1, end
