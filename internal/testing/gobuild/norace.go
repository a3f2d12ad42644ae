// SPDX-License-Identifier: Apache-2.0

//go:build !race

package gobuild

// flags has the commands built as the Makefile builds them, which shares its build
// cache.
func flags() []string { return []string{"-trimpath"} }

const cgo = "CGO_ENABLED=0"
