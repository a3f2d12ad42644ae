// SPDX-License-Identifier: Apache-2.0

// Package tuner is what attune run, attach and probe and packed programs have in
// common: a [Tuner] is an Analyzer and a controller in this process, its outputs,
// its log, what it has learnt, and how all that ends.
package tuner
