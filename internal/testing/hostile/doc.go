// SPDX-License-Identifier: Apache-2.0

// Package hostile makes files as an attacker would: object files whose parts no
// compiler writes. For tests and benchmarks only.
package hostile
