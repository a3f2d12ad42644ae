// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// program is bench/workloads/entered.c as it runs, or where calls is true timeouts.c of
// internal/testing/targets.
type program struct {
	calls  bool
	pid    int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

func start(ctx context.Context, path string, threads int) (*program, error) {
	cmd := exec.CommandContext(ctx, path, strconv.Itoa(threads))
	cmd.Stderr = os.Stderr
	stdin, stdout, err := measure.StartPiped(cmd)
	if err != nil {
		return nil, err
	}
	p := &program{pid: cmd.Process.Pid, cmd: cmd, stdin: stdin, stdout: stdout}
	_, err = p.stdout.ReadString('\n') // it is ready
	return p, err
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// ask returns how many rounds the program made, how many of its bytes were
// wrong, and its variable.
func (p *program) ask() (rounds, wrong int, knob int64, err error) {
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		return 0, 0, 0, err
	}
	line, err := p.stdout.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &rounds, &wrong, &knob)
	}
	return rounds, wrong, knob, err
}

// endedWell is the exit code of a program of internal/testing/targets.
const endedWell = 7

// endCalls is end for a program that looks itself whether it goes on.
func (p *program) endCalls() (wrong int, err error) {
	if _, err := io.WriteString(p.stdin, "check\nend\n"); err != nil {
		return 0, err
	}
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line != "right\n" {
		wrong = 1
		fmt.Fprint(os.Stderr, "inject: the program: ", line)
	}
	if err = p.cmd.Wait(); p.cmd.ProcessState.ExitCode() == endedWell {
		err = nil
	}
	return wrong, err
}

// end ends the program. It must have gone on to its end.
func (p *program) end() (wrong int, err error) {
	if p.calls {
		return p.endCalls()
	}
	before, _, _, err := p.ask()
	if err != nil {
		return 0, err
	}
	time.Sleep(50 * time.Millisecond)
	after, wrong, _, err := p.ask()
	if err != nil {
		return wrong, err
	}
	if after == before {
		return wrong, fmt.Errorf("it hangs after %d rounds", after)
	}
	if err := p.stdin.Close(); err != nil {
		return wrong, err
	}
	return wrong, p.cmd.Wait()
}

// variableWrites is how often the variable is written.
const variableWrites = 1000

// writes sets a variable again and again, and has the program say what it
// holds.
func (d *document) writes(p *program) error {
	knob, err := objfile.Resolve(p.pid, "entered", "knob", objfile.Variable)
	if err != nil {
		return err
	}
	process, err := proc.Open(p.pid)
	if err != nil {
		return err
	}
	defer process.Close()
	var took []float64
	for i := range variableWrites {
		began := time.Now()
		if err := process.Write(knob.Address, binary.LittleEndian.AppendUint64(nil, uint64(i))); err != nil {
			return err
		}
		took = append(took, time.Since(began).Seconds()*1e6)
	}
	_, _, value, err := p.ask()
	if err != nil {
		return err
	}
	if value != variableWrites-1 {
		return fmt.Errorf("the variable holds %d after %d was written", value, variableWrites-1)
	}
	d.Write = present.Figure(measure.Median(took))
	return nil
}

// resources are what a program has.
type resources struct {
	Descriptors int `json:"descriptors"`
	Mappings    int `json:"mappings"`
	Threads     int `json:"threads"`
	Kilobytes   int `json:"address_space_kilobytes"`
}

func (r resources) minus(o resources) resources {
	return resources{r.Descriptors - o.Descriptors, r.Mappings - o.Mappings, r.Threads - o.Threads, r.Kilobytes - o.Kilobytes}
}

// settleTime is what a thread that has done its work may take to end.
const settleTime = 100 * time.Millisecond

// resourcesOf looks at a program that nobody is in. What could not be read is
// 0.
func resourcesOf(pid int) (r resources) {
	time.Sleep(settleTime)
	if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		r.Descriptors = len(entries)
	}
	if content, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		r.Mappings = strings.Count(string(content), "\n")
	}
	if stat, err := procid.ReadStat(pid); err == nil {
		r.Threads, r.Kilobytes = stat.Threads, int(stat.VirtualBytes>>10)
	}
	return r
}
