// SPDX-License-Identifier: Apache-2.0

// Package settings reads the settings of a run: files, the environment and flags, later
// ones overriding.
package settings
