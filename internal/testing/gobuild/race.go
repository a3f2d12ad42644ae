// SPDX-License-Identifier: Apache-2.0

//go:build race

package gobuild

// flags has the commands built as the test itself is, with the race detector, which
// needs cgo. Without -trimpath they share the test's build cache. The detector does
// not watch the compressor, which is somebody else's: a program would be packed in
// ten seconds instead of half a second. No debugger looks at what is built, as at
// tests, so the linker has half the work.
func flags() []string {
	return []string{"-race", "-ldflags=-w", "-gcflags=github.com/klauspost/compress/...=-race=false"}
}

const cgo = "CGO_ENABLED=1"
