// SPDX-License-Identifier: Apache-2.0

// Package targets builds tiny C programs for tests to attach to, and runs
// them. A target prints "ready" on its first line when it has reached the
// place that the test is about, and ends when its standard input does.
package targets
