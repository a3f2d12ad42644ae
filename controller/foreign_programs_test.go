// SPDX-License-Identifier: Apache-2.0

//go:build privileged && full

package controller

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// foreigners are programs that take faults of their own, have filters that kill, lock
// their memory, lack room, have hundreds of threads, throw or have an odd layout.
func foreigners() []foreign {
	return []foreign{
		{name: "JVM", command: line("java", "testdata/foreign/Traps.java")},
		{name: "node", command: line("node", "testdata/foreign/traps.js")},
		{name: "Go with cgo", command: func(t *testing.T) []string {
			out := filepath.Join(t.TempDir(), "cgo")
			build := exec.Command("go", "build", "-o", out, "./testdata/foreign/cgo")
			build.Env = append(os.Environ(), "CGO_ENABLED=1")
			if text, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			return []string{out}
		}},
		{name: "C++", command: func(t *testing.T) []string {
			return []string{targets.BuildWith(t, "g++", "coroutines", "-O2", "-std=c++20", "-pthread", "testdata/foreign/coroutines.cc")}
		}},
		// Whatever its filter does not name kills it; it locks its memory.
		{
			name: "chrony", refuses: "seccomp filter", varies: regexp.MustCompile(`(?m)^\S+Z `),
			command: func(t *testing.T) []string {
				silent, err := net.ListenPacket("udp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = silent.Close() })
				_, port, _ := net.SplitHostPort(silent.LocalAddr().String())
				return []string{filepath.Join(unpacked(t, "chrony"), "usr/sbin/chronyd"),
					"-u", "root", "-F", "1", "-m", "-Q", "-t", "2", "-f", "/dev/null", "server 127.0.0.1 port " + port + " iburst maxsamples 1"}
			},
		},
		{name: "QEMU", command: func(t *testing.T) []string {
			return []string{"qemu-system-x86_64", "-accel", "tcg", "-m", "16", "-overcommit", "mem-lock=on", "-display", "none", "-debugcon", "stdio",
				"-device", "isa-debug-exit,iobase=0x501,iosize=1", "-drive", "format=raw,if=floppy,file=" + bootSector(t), "-nodefaults", "-no-reboot"}
		}},
		{name: "little address space", command: func(t *testing.T) []string {
			script := `seq 400000 | sort -R --random-source=/usr/bin/sort | sort -n | cksum`
			return []string{"prlimit", fmt.Sprintf("--as=%d", 12*peakOf(t, script)/10), "sh", "-c", script}
		}},
		{name: "SBCL", command: line("sbcl", "--script", "testdata/foreign/traps.lisp")},
		{name: "256 threads", command: func(t *testing.T) []string {
			return []string{"sh", "-c", "seq 4000000 | pigz -n -p 256 -9 | cksum"}
		}},
		{name: "no random layout, big stack", command: line("setarch", "-R", "bash", "-c",
			`ulimit -s unlimited; exec perl -e 'my %h; for (1..6000000) { $h{$_ % 5000} .= $_ & 7; delete $h{$_ % 4999} if $_ % 97 == 0 } print scalar(keys %h), "\n"; exit 3'`)},
	}
}

// unpacked is where a package of Debian's lies that is not installed: it would take the
// place of this machine's own.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	script := `cd "$1" && apt-get -q -o APT::Sandbox::User=root download "$2" && dpkg-deb -x "$2"_*.deb .`
	if text, err := exec.Command("sh", "-c", script, "sh", dir, name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return dir
}

// bootSector is a disk from which a machine counts for a while, says so and goes off.
func bootSector(t *testing.T) string {
	t.Helper()
	code := binary.LittleEndian.AppendUint32([]byte{0x66, 0xb9}, 300_000_000) // mov ecx, n
	code = append(code, 0x66, 0x49, 0x75, 0xfc,                               // dec ecx; jnz
		0xb0, 'o', 0xe6, 0xe9, 0xb0, 'k', 0xe6, 0xe9, // out 0xe9, al
		0xba, 0x01, 0x05, 0xb0, 3, 0xee, 0xf4) // out 0x501, 3; hlt
	sector := make([]byte, 512)
	copy(sector, code)
	copy(sector[510:], []byte{0x55, 0xaa})
	path := filepath.Join(t.TempDir(), "disk")
	files.Write(t, path, sector, 0o600)
	return path
}

// peakOf is the most address space that a process of a shell script had, in bytes.
func peakOf(t *testing.T, script string) (most uint64) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return most
		case <-time.After(time.Millisecond):
		}
		pids, err := procid.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			if stat, err := procid.ReadStat(pid); err == nil && stat.ProcessGroup == cmd.Process.Pid {
				most = max(most, stat.VirtualBytes)
			}
		}
	}
}
