#!/bin/sh
# Installs what is missing, builds, and trains one epoch of Fashion-MNIST in mixed precision. Further arguments go to
# the sample: ./samples/quickstart.sh --device 0 --limit 6000
set -eu
cd "$(dirname "$0")/.."

./samples/setup.sh
cmake --preset release --log-level=WARNING
cmake --build --preset release --target float32_master_weights
exec build/release/bin/float32_master_weights mixed --epochs 1 "$@"
