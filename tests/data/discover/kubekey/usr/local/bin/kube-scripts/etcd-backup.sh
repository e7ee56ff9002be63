#!/bin/bash
# A place that only kubekey makes.
