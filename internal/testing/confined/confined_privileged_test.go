// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package confined

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/packaging/systemd"
)

// tries is a program that says what it has, and tries what units deny: it has no line
// for what is denied.
const tries = `
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#define MAY(what, call) do { if ((long)(call) != -1) puts("may " what); } while (0)
int main(int argc, char **argv) {
	char line[256], path[4096];
	FILE *status = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, status))
		if (!strncmp(line, "CapBnd", 6))
			fputs(line, stdout);
	rewind(status);
	while (fgets(line, sizeof line, status))
		if (!strncmp(line, "NoNewPrivs", 10) || !strncmp(line, "Seccomp:", 8) || !strncmp(line, "Umask", 5))
			fputs(line, stdout);
	snprintf(path, sizeof path, "%s/file", argv[1]);
	MAY("write to /etc", open("/etc/attune-test", O_WRONLY | O_CREAT, 0600));
	MAY("set the kernel", open("/proc/sys/kernel/hostname", O_WRONLY));
	MAY("write to its directory", open(path, O_WRONLY | O_CREAT, 0600));
	MAY("map writable code", mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	MAY("mount", mount("none", "/mnt", "tmpfs", 0, 0));
	MAY("enter namespaces", setns(open("/proc/self/ns/mnt", O_RDONLY), 0));
	MAY("make namespaces", unshare(CLONE_NEWUSER));
	MAY("set the clock", syscall(SYS_settimeofday, 0, 0));
	MAY("trace", ptrace(PTRACE_SEIZE, getppid(), 0, 0));
	MAY("use packets", socket(AF_PACKET, SOCK_RAW, 0));
	MAY("use TCP", socket(AF_INET, SOCK_STREAM, 0));
	MAY("use netlink", socket(AF_NETLINK, SOCK_RAW, 0));
	return argc - 2;
}
`

// TestApply: what the units deny is denied, or what passes under them would say
// nothing.
func TestApply(t *testing.T) {
	tests := []struct {
		name, text   string
		capabilities uint64
		want         string
	}{
		{"attuned", systemd.Attuned, 0x1c011a810ee, `Umask:	0077
NoNewPrivs:	1
Seccomp:	2
may write to its directory
may trace
may use TCP
may use netlink
`},
		{"attuned, narrow", systemd.Attuned + systemd.Narrow, 0x1c0118800ee, `Umask:	0077
NoNewPrivs:	1
Seccomp:	2
may write to its directory
may trace
may use TCP
may use netlink
`},
		{"Analyzer", systemd.Analyzer, 0, `Umask:	0077
NoNewPrivs:	1
Seccomp:	2
may write to its directory
may use TCP
`},
		{"issuing service", systemd.Issuer, 0, `Umask:	0077
NoNewPrivs:	1
Seccomp:	2
may write to its directory
may use TCP
`},
	}
	own := bounding(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(targets.BuildText(t, "tries", tries, "-D_GNU_SOURCE"), dir)
			Apply(t, cmd, ".", tt.text, dir)
			out, err := cmd.CombinedOutput()
			want := fmt.Sprintf("CapBnd:\t%016x\n%s", tt.capabilities&own, tt.want)
			if err != nil || string(out) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, out, want)
			}
			if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
				t.Error(err)
			}
		})
	}
}

// bounding is the bounding set of this process: in a container root lacks some.
func bounding(t *testing.T) (set uint64) {
	t.Helper()
	status := files.Read(t, "/proc/self/status")
	_, line, _ := strings.Cut(string(status), "CapBnd:")
	if _, err := fmt.Sscanf(line, "%x", &set); err != nil {
		t.Fatal(err)
	}
	return set
}

// TestParseRefuses: a word that is not known is an error, not a right more or less.
func TestParseRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"CapabilityBoundingSet=CAP_EVERYTHING": "no capability", "SystemCallFilter=@everything": "@everything",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
