#!/bin/sh
# independence_test.sh LIST: what the plain loops and the optimizers use must not contain //dist, or comparing
# strategies with them would prove nothing.
if [ -s "$1" ]; then
  echo "these are used without sharding and need //dist:"
  cat "$1"
  exit 1
fi
