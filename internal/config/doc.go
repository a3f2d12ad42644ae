// SPDX-License-Identifier: Apache-2.0

// Package config holds what a run is configured with, wherever it came from:
// plain data that is checked in one place. Reading files, environment and
// flags is left to cmd.
package config
