// SPDX-License-Identifier: Apache-2.0

// Package workload builds the programs that the benchmarks run. C programs are
// compiled on demand. Those by which tunlets are judged are listed in package
// catalogue.
package workload
