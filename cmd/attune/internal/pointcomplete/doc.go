// SPDX-License-Identifier: Apache-2.0

// Package pointcomplete completes measure points in a shell: objects, functions,
// static probes.
package pointcomplete
