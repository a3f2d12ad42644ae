// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// outcome is everything the parent of a program sees of it.
type outcome struct {
	stdout, stderr string
	status         string
}

// observe runs a shell script in which $RUN stands before the program.
func observe(t *testing.T, script, run string) outcome {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Environ(), "RUN="+run)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.String()}
}

// Each script must show the same with and without the launcher.
func TestProgramSeesNoDifference(t *testing.T) {
	tests := []struct{ name, script string }{
		{"arguments", `$RUN printf '<%s>' a 'b c' '' '*' $'\n'`},
		{"argv 0", `PATH=/usr/bin:/bin $RUN sh -c 'tr "\0" "|" </proc/$$/cmdline'`},
		{"environment", `env -i A=1 B= LD_BIND_NOW= PATH=/usr/bin:/bin $RUN env`},
		{"stdin to stdout", `printf 'x\0y' | $RUN cat`},
		{"stdin at end of file", `$RUN wc -c </dev/null`},
		{"stdin is the same file, with its offset", `echo 123456 >f; exec <f; head -c0; read -r -n2 x; $RUN cat`},
		{"stdin closed", `$RUN cat <&-`},
		{"stdout closed", `$RUN echo x >&-`},
		{"all closed", `$RUN ls -l /proc/self/fd <&- >&- 2>&-; echo $?`},
		{"closed descriptors stay closed", `exec 9>&1; $RUN sh -c 'for n in 0 1 2 3 4 5 6 7 8; do [ -e /proc/$$/fd/$n ] && echo $n; done >&9' <&- >&- 2>&-`},
		{"descriptors", `exec 9>f 7</dev/null; $RUN bash -c 'cd /proc/$$/fd; for n in *; do [ -e $n ] && echo $n $(basename $(readlink $n)); done' </dev/null 2>/dev/null | grep -v pipe:`},
		{"inherited descriptor 9", `exec 9>f; $RUN sh -c 'echo hello >&9'; cat f`},
		{"signal state", `$RUN grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status`},
		{"ignored signals", `trap '' HUP INT QUIT TERM PIPE USR1 TSTP TTOU XCPU; $RUN grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status`},
		{"limits", `ulimit -n 123 -c 0 -s 4096 -u 5000; $RUN cat /proc/self/limits`},
		{"soft limits below hard ones", `ulimit -S -n 99 -c 0; $RUN cat /proc/self/limits`},
		{"umask", `umask 027; $RUN sh -c umask`},
		{"working directory", `mkdir d; cd d; $RUN pwd | sed s,.*/d$,d,`},
		{"working directory deleted", `mkdir d; cd d; rmdir ../d; $RUN readlink /proc/self/cwd | sed 's,.*/d ,d ,'`},
		{"nice", `nice -n 5 $RUN nice`},
		{"affinity", `taskset -c 0 $RUN grep Cpus_allowed_list /proc/self/status`},
		{"process group and session", `$RUN sh -c 'read -r a b c d pgrp sid rest </proc/self/stat; echo $((pgrp == '$$')) $((sid == '$$'))'`},
		{"exit 0", `$RUN true`},
		{"exit 3", `$RUN sh -c 'exit 3'`},
		{"exit 255", `$RUN sh -c 'exit 255'`},
		{"broken pipe", `$RUN yes | head -1; echo ${PIPESTATUS[0]}`},
		{"broken pipe at the start", `trap '' PIPE; $RUN sh -c 'trap "" PIPE; yes 2>&1' | head -1; echo ${PIPESTATUS[0]}`},
		{"end of file when the program closes its output", `mkfifo f; $RUN sh -c 'exec >&- 2>&-; read x <f' | { timeout 10 cat; echo end $?; echo go >f; }`},
		{"not found", `$RUN ./nothing 2>/dev/null; echo $?; $RUN nothing-of-this-name 2>/dev/null; echo $?`},
		{"empty name", `$RUN "" 2>/dev/null; echo $?`},
		{"directory", `mkdir d; $RUN ./d 2>/dev/null; echo $?`},
		{"not executable", `echo x >f; $RUN ./f 2>/dev/null; echo $?`},
		{"below a file", `echo x >f; $RUN ./f/g 2>/dev/null; echo $?`},
		{"empty file", `: >f; chmod +x f; $RUN ./f; echo $?`},
		{"script", `printf '#!/bin/sh\necho $0 $1\n' >f; chmod +x f; $RUN ./f a`},
		{"script without #!", `echo 'echo $0 $1; exit 4' >f; chmod +x f; $RUN ./f a`},
		{"script with a missing interpreter", `printf '#!/no/such\n' >f; chmod +x f; $RUN ./f 2>/dev/null; echo $?`},
		{"path search goes on after a refused file", `mkdir a b; echo x >a/p; printf '#!/bin/sh\necho b\n' >b/p; chmod +x b/p; PATH=a:b:/usr/bin:/bin $RUN p`},
		{"path search reports a refused file", `mkdir a b; echo x >a/p; PATH=a:b:/usr/bin:/bin $RUN p 2>/dev/null; echo $?`},
		{"empty element of PATH", `printf '#!/bin/sh\necho $0\n' >p; chmod +x p; PATH=:/usr/bin:/bin $RUN p`},
		{"no PATH", `unset PATH; $RUN ls -d /`},
		{"too many arguments", `$RUN true $(seq 400000 1000000) 2>/dev/null; echo $?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// env starts a program as execvp has it, and is the reference.
			want, got := observe(t, tt.script, "/usr/bin/env"), observe(t, tt.script, launcher)
			if got != want {
				t.Errorf("direct:\n%+v\nlaunched:\n%+v", want, got)
			}
		})
	}
}

// Death by each signal looks the same to the parent, but for the core bit.
func TestDeathBySignal(t *testing.T) {
	// nohup, and shells that run something in the background, have these ignored:
	// what this process catches starts with its default in a child.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	t.Cleanup(func() { signal.Stop(caught) })
	for n := syscall.Signal(1); n <= 64; n++ {
		switch n {
		case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN,
			syscall.SIGTTOU, syscall.SIGURG, syscall.SIGWINCH:
			continue // these do not kill
		case 32, 33:
			continue // glibc's own; its posix_spawn, and so make, leaves them ignored
		}
		t.Run(fmt.Sprintf("%d %v", int(n), n), func(t *testing.T) {
			t.Parallel()
			script := fmt.Sprintf(`ulimit -c 0; exec $RUN sh -c 'kill -%d $$'`, int(n))
			want, got := observe(t, script, "/usr/bin/env"), observe(t, script, launcher)
			if got != want || !strings.Contains(got.status, "signal") {
				t.Errorf("direct: %+v, launched: %+v", want, got)
			}
		})
	}
}

func TestAMissingProgramIsExplained(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"name", `PATH=/usr/bin:/bin $RUN nothing-of-this-name`, "run: nothing-of-this-name: command not found; check the spelling and PATH\n"},
		{"directory", `$RUN /`, "run: /: cannot execute: is a directory\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := observe(t, tt.script, launcher).stderr; got != tt.want {
				t.Errorf("stderr %q, want %q", got, tt.want)
			}
		})
	}
}
