// SPDX-License-Identifier: Apache-2.0

// Package declarative runs a tunlet that is written as one YAML file, without
// Go code, for the pattern that most tunlets follow: signals show a symptom,
// measure points confirm it, a model predicts a gain, something is changed, and
// an objective judges the change. docs/reference/declarative.md has the fields
// and what expressions may name; tunlets/catalogue/pipe/pipe.tunlet.yaml is an example.
//
// Conditions and models are expressions of the Common Expression Language
// (cel.dev/cel-go). They are compiled, and their types checked, when the file is
// read: what is wrong with a file is said at once, all of it, with the lines.
// An expression that needs what is not known yet (a signal that was not read, a
// point without a hit) has no value: a condition without value does not hold.
//
// A process of its own runs each file, as it does any other tunlet: one that is
// wrong harms nobody else. Nothing here is safe for use by several goroutines;
// the SDK makes one call at a time.
package declarative
