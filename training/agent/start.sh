#!/bin/sh
trap 'exit 0' TERM
while :; do
    sleep 3600 &
    wait $!
done
