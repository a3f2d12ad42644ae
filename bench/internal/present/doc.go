// SPDX-License-Identifier: Apache-2.0

// Package present prints what benchmarks measured: the machine, tables, and
// goals with PASS or MISS.
package present
