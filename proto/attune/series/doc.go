// SPDX-License-Identifier: Apache-2.0

// Package series is the catalogue of what can be measured of processes, and the
// codec of the rows in which it travels ([attunev1.Table]).
//
// A [Series] is one measured quantity: a signal of a process, or a column of one of
// the tables that are read of a process only when somebody wants them. Everything
// that has to know a series takes it from here: the constants and types in
// generated.go and in tunlets/sdk, the tables of docs/reference/signals.md, and the
// names in expressions of tunlets in YAML. To add one is a line in catalogue.go, go
// generate, and the code that reads it.
//
// Numbers of series and of tables stand in messages and in recordings: they are
// never changed or used again.
//
// What the package holds is read-only: it is safe for use by several goroutines.
package series

//go:generate go run ./internal/gen ../../..
