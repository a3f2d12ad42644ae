// SPDX-License-Identifier: Apache-2.0

// Package workload is the catalogue of the programs that the benchmarks run:
// those with a problem that a tunlet mends, and those without, which must not
// notice Attune. C programs are compiled on demand.
package workload
