// SPDX-License-Identifier: Apache-2.0

//go:build vm

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// These tests change what belongs to the whole machine, and run in a virtual
// one only (make test-vm).
func TestMain(m *testing.M) {
	if os.Getenv("ATTUNE_VM") == "" {
		println("e2e: these tests change the machine's settings: run make test-vm")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const (
	// hooked is a function that DMLib sees in a dynamically linked program.
	hooked = "libc.so.6:getppid"
	// probed is one that only the kernel can watch: the program is static.
	probed = "still:own_work"

	hookedCalls, probedCalls = 200, 300
)

// programs holds the two in a folder that every user may enter: "moving" is
// linked dynamically, "still" statically. A machine that is slow may let moving through
// the start gate before its point is known: it comes by hooks while it waits.
func programs(t *testing.T) string {
	t.Helper()
	folder := asuser.Folder(t)
	for name, flags := range map[string][]string{"moving": {"-DCOMES_BY"}, "still": {"-static"}} {
		built := targets.Build(t, "../../../controller/testdata/calls.c", flags...)
		run(t, "cp", built, filepath.Join(folder, name))
	}
	return folder
}

// observed is what came out of a run. The timeline is for who reads that a test
// failed.
type observed struct {
	stdout   string
	report   report.Report
	timeline string
}

// observe runs `PREFIX attune run -- COMMAND` with both points. COMMAND starts
// moving, which reads the pipe that is the last parameter, and then still. Each
// is told how many calls to make when it is known what became of its point.
func observe(t *testing.T, prefix []string, command ...string) observed {
	t.Helper()
	ctx := patience.Context(t)
	folder := asuser.Folder(t)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	timeline, file := filepath.Join(folder, "timeline"), filepath.Join(folder, "report")
	args := append(append([]string{}, prefix...), mustAbs(t, attune), "run", "--quiet", "--mode", "observe",
		"--timeline", timeline, "--report", file, "--probe", hooked, "--probe", probed, "--")
	fifo := filepath.Join(folder, "fifo")
	run(t, "mkfifo", "-m", "666", fifo)
	feed, err := os.OpenFile(fifo, os.O_RDWR, 0) // does not wait for the reader, nor lets it wait
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	args = append(append(args, command...), fifo)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = 30 * time.Second
	cmd.Dir = "/tmp"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err = awaitDecision(ctx, timeline, "moving", hooked)
	if err == nil {
		_, writing := fmt.Fprintln(feed, hookedCalls)
		err = errors.Join(writing, feed.Close(), awaitDecision(ctx, timeline, "still", probed))
	}
	_, writing := fmt.Fprintln(stdin, probedCalls)
	_ = feed.Close() // closed, unless the first wait was in vain
	err = errors.Join(err, writing, stdin.Close(), cmd.Wait())
	text, reading := os.ReadFile(timeline)
	if err = errors.Join(err, reading); err != nil {
		t.Fatalf("%q: %v\n%s\n%s", args, err, stderr.String(), text)
	}
	o := observed{stdout: stdout.String(), timeline: string(text)}
	data := files.Read(t, file)
	if err := json.Unmarshal(data, &o.report); err != nil {
		t.Fatal(err)
	}
	return o
}

// awaitDecision waits until it is known what became of a point in a program.
func awaitDecision(ctx context.Context, timeline, program, point string) error {
	for {
		if decided(timeline, program, point) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody says what became of %s in %s", point, program)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// decided reads the timeline up to the first word on a point after the program
// has started, in whichever process, and not of the image that it replaced.
func decided(timeline, program, point string) bool {
	file, err := os.Open(timeline)
	if err != nil {
		return false // not there yet
	}
	defer file.Close()
	runs := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e struct {
			Kind, Point, Text string
			Process           int
		}
		switch {
		case json.Unmarshal(lines.Bytes(), &e) != nil:
		case e.Kind == "process_started" && strings.HasSuffix(e.Text, "/"+program):
			runs = e.Process
		case e.Kind == "point" && e.Process == runs && e.Point == point && !ofTheDead(e.Text) && !strings.HasPrefix(e.Text, "waiting"):
			return true
		}
	}
	return false
}

// ofTheDead says whether a reason is that of an image which is no more: the
// programs have what is looked for.
func ofTheDead(text string) bool {
	return slices.ContainsFunc([]string{"process is gone", "another program runs", "no such object is mapped"},
		func(words string) bool { return strings.Contains(text, words) })
}

// wantOutput checks that the programs ran as they would have without Attune.
func (o observed) wantOutput(t *testing.T) {
	t.Helper()
	const want = "ready\ndone\nready\ndone\n"
	if o.stdout != want {
		t.Errorf("output %q, want %q", o.stdout, want)
	}
	if code := o.report.Exit.Code; code == nil || *code != 0 {
		t.Errorf("exit %+v, want code 0", o.report.Exit)
	}
}

// wantHooked checks that DMLib counted, whatever else is not possible, unless
// it is refused with the words of the only reason that there is.
func (o observed) wantHooked(t *testing.T, unreachable string) {
	t.Helper()
	if unreachable != "" && o.refused(hooked, unreachable) {
		return
	}
	if hits := o.hits(hooked); hits < hookedCalls || hits > hookedCalls+10 { // shells ask, too
		t.Errorf("%s: %d hits, want %d:\n%s", hooked, hits, hookedCalls, o.timeline)
	}
}

// wantProbed checks that the kernel counted, or if refusal is given why not.
func (o observed) wantProbed(t *testing.T, refusal string) {
	t.Helper()
	if refusal != "" {
		if !o.refused(probed, refusal) {
			t.Errorf("%s is not refused with %q:\n%s", probed, refusal, o.timeline)
		}
		return
	}
	if hits := o.hits(probed); hits != probedCalls {
		t.Errorf("%s: %d hits, want %d:\n%s", probed, hits, probedCalls, o.timeline)
	}
}

func (o observed) refused(target, words string) bool {
	return slices.ContainsFunc(o.report.Points, func(p report.Point) bool {
		return p.Target == target && p.State == "refused" && strings.Contains(p.Reason, words)
	})
}

func (o observed) hits(target string) uint64 {
	var hits uint64
	for _, p := range o.report.Points {
		if p.Target == target {
			hits += p.Hits
		}
	}
	return hits
}
