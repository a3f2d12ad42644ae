// SPDX-License-Identifier: Apache-2.0

// Package measure runs programs for the benchmarks and reads how far they got:
// from their own output where they print it, else from the time they took.
// Nothing here is safe for concurrent use; benchmarks run one program at a
// time.
package measure
