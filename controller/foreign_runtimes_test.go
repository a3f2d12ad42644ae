// SPDX-License-Identifier: Apache-2.0

//go:build privileged && full

package controller

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// runtimes are programs that make their code while they run, switch stacks, take time by
// signals, are emulated, or have assembly in many threads.
func runtimes() []foreign {
	return []foreign{
		{name: "x264", varies: regexp.MustCompile(`, [0-9.]+ fps`), command: func(t *testing.T) []string {
			return []string{"x264", "--quiet", "--no-progress", "--threads", "6", "--preset", "slower", "--demuxer", "raw",
				"--input-res", "176x144", "--fps", "25", "-o", "-", film(t)}
		}},
		{name: "Octave", command: line("octave-cli", "--quiet", "--norc", "testdata/foreign/numbers.m")},
		{name: "PHP", command: line("php", "-d", "opcache.enable_cli=1", "-d", "opcache.jit=tracing",
			"-d", "opcache.jit_buffer_size=32M", "testdata/foreign/compiled.php")},
		{name: "LuaJIT", command: line("luajit", "testdata/foreign/compiled.lua")},
		{name: "Haskell", command: line("sh", "-c", "exec shellcheck ../scripts/*")},
		// The program that is emulated has DMLib in its environment as well.
		{name: "emulated", command: line("qemu-x86_64", "/usr/bin/perl", "-e",
			`my %h; for (1..1000000) { $h{$_ % 5000} .= $_ & 7; delete $h{$_ % 4999} if $_ % 97 == 0 } print scalar(keys %h), "\n"; exit 3`)},
	}
}

// film is a file of pictures in which something moves.
func film(t *testing.T) string {
	t.Helper()
	const width, height, pictures = 176, 144, 700
	var all []byte
	for n := range pictures {
		for y := range height {
			for x := range width {
				all = append(all, byte((x+3*n)*(y+n)/16))
			}
		}
		for i := range width * height / 2 { // colours
			all = append(all, byte(128+(i+n)%32))
		}
	}
	path := filepath.Join(t.TempDir(), "film.yuv")
	files.Write(t, path, all, 0o600)
	return path
}
