// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/proto/attune/number"
)

const (
	// maxPrinted bounds what a command prints.
	maxPrinted = 4 << 10
	// longest bounds how long one may take.
	longest = 10 * time.Second
)

// ask runs a command, as the present user, and returns the number that it prints. All that it has started
// is killed when it takes too long.
func ask(ctx context.Context, command string, env []string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	printed, complained := bounded.Head{Most: maxPrinted}, bounded.Head{Most: maxPrinted}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &printed, &complained
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch text := strings.TrimSpace(string(printed.Kept)); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return 0, fmt.Errorf("it took longer than %v", longest)
	case err != nil:
		return 0, fmt.Errorf("%w%s", err, complaint(complained.Kept))
	default:
		n, err := number.Parse(text)
		if err != nil {
			return 0, fmt.Errorf("it printed %q, which is no number", shorten(text))
		}
		return n, nil
	}
}

// complaint is what a command said on standard error, as the end of a sentence.
func complaint(text []byte) string {
	if said := shorten(strings.ToValidUTF8(string(text), "?")); said != "" {
		return ": " + said
	}
	return ""
}
