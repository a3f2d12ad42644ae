// SPDX-License-Identifier: Apache-2.0

// Package crate describes runs of commands as an RO-Crate: the file ro-crate-metadata.json, by
// RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) and its profile Process Run Crate 0.5
// (https://w3id.org/ro/wfrun/process/0.5).
//
// It has no state, and reads and writes no files.
package crate
