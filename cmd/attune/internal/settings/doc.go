// SPDX-License-Identifier: Apache-2.0

// Package settings reads the settings of a run: flags, the environment and files,
// later ones overriding. Other commands read their own with its [Reader].
package settings
