// SPDX-License-Identifier: Apache-2.0

// Package slurm holds no Go but the tests of the Slurm plugin that is beside it,
// which is C: Slurm loads it. They run it in a real cluster of two nodes.
package slurm
