// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// probeTimeout bounds one process; they need milliseconds, an interpreter tens.
const probeTimeout = 5 * time.Second

// stderrBytes of what a process says are kept for the message.
const stderrBytes = 300

// run tells the object a marker in a process of its own and returns the
// object's data there. The process runs as the owner, with nothing in its
// environment but what the variable needs.
func (p *Prober) run(ctx context.Context, image objfile.Image, v Variable, owner owner, marker uint64) (parts []data, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	helper, err := p.helperFile()
	if err != nil {
		return nil, err
	}
	defer helper.Close()
	program := fmt.Sprintf("/proc/self/fd/%d", helperFD)
	if v.Script != nil {
		program = owner.program
	}
	arguments := append([]string{program}, v.arguments(image.Path, marker)...)
	cmd := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	cmd.Env = v.environment(marker)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{helper}
	cmd.SysProcAttr = owner.attributes()
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", arguments[0], err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if line == "ready\n" {
		parts, err = writable(cmd.Process.Pid, image)
	}
	ended := errors.Join(stdin.Close(), cmd.Wait())
	if line != "ready\n" {
		text := strings.TrimSpace(said.String())
		return nil, fmt.Errorf("%s: %w: %s", image.Name(), errors.Join(errors.New("did not get ready"), ended), text[:min(len(text), stderrBytes)])
	}
	return parts, err
}

// writable reads what the process may write of the object, which must be the
// same file.
func writable(pid int, like objfile.Image) ([]data, error) {
	images, err := objfile.Images(pid)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(images, func(i objfile.Image) bool { return i.Inode == like.Inode && i.Device == like.Device })
	if at < 0 {
		return nil, fmt.Errorf("%s: %w", like.Path, ErrOtherFile)
	}
	file, err := images[at].Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	process, err := proc.Open(pid)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	var parts []data
	for _, segment := range file.Writable() {
		part := data{start: segment.Address, content: make([]byte, segment.Size)}
		if err := process.Read(images[at].Address(segment.Address), part.content); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
