// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

const debianPython = workload.DebianPython

// Processors are shared as batch systems do it: each user has their own, so that what
// the attacker's programs take by themselves is not taken from the other user's. The
// services run on all.
func hostileProcessors() string  { return fmt.Sprintf("%d-%d", runtime.NumCPU()/2, runtime.NumCPU()-1) }
func harmlessProcessors() string { return fmt.Sprintf("0-%d", max(0, runtime.NumCPU()/2-1)) }

// asHarmless is a command line of the harmless user's, on their processors.
func asHarmless(command ...string) []string {
	id := strconv.Itoa(harmlessUser)
	return append([]string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "taskset", "-c", harmlessProcessors()}, command...)
}

// prepare builds all programs into the folder.
func (f folder) prepare(ctx context.Context) error {
	programs := workload.Catalogue{Sources: workload.Repository.Sources, Cache: f.path("built")}
	if missing := programs.Build(ctx, "", "hostile", "", "-pthread"); missing != "" {
		return errors.New(missing)
	}
	for _, name := range []string{"detected", "malloc_storm"} {
		if missing := programs.Build(ctx, "", name, ""); missing != "" {
			return errors.New(missing)
		}
	}
	if workload.MissingModule(ctx, "numpy") {
		return errors.New("numpy is not installed (apt-get install python3-numpy)")
	}
	tests := "internal/testing"
	for _, c := range [][]string{
		{"gcc", "-O2", "-D_GNU_SOURCE", "-o", f.path("confine"), tests + "/confined/testdata/confine.c"},
		{"gcc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", f.path("built/unread"), tests + "/targets/programs/unread.c"},
		{"go", "build", "-o", f.path("bin/attacker"), "./bench/cmd/attacker"},
		{"go", "build", "-o", f.path("tunlets/attune-tunlet-bench"), "./bench/cmd/attune-tunlet-bench"},
	} {
		if out, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", c, err, out)
		}
	}
	err := os.MkdirAll(f.path("harmless"), 0o755)
	for from, to := range map[string]string{
		"bin/attune": "bin/attune", "bin/attuned": "bin/attuned", "bin/attune-tunlets": "bin/attune-tunlets",
		"bench/workloads/numpy_storm.py": "harmless/" + jobScript, f.path("built/detected"): "harmless/detected",
		f.path("built/malloc_storm"): "harmless/malloc_storm",
	} {
		err = errors.Join(err, measure.CopyProgram(from, f.path(to)))
	}
	err = errors.Join(err, measure.CopyProgram(f.path("harmless/"+jobScript), f.path("harmless/"+plainScript)),
		measure.CopyProgram(f.path("harmless/detected"), f.path("harmless/launcher")), os.WriteFile(f.path("policy.yaml"), []byte(policy), 0o600))
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, f.path("bin/attune-tunlets"), "link", f.path("bin")).CombinedOutput(); err != nil {
		return fmt.Errorf("tunlets: %w: %s", err, out)
	}
	return f.prepareAttack(f.path("built/hostile"), f.path("built/unread"))
}

// rates are rounds in a second, and in a second of the processor that the program had.
type rates struct {
	Second    []float64 `json:"in_a_second"`
	Processor []float64 `json:"in_a_processor_second"`
}

// addMalloc measures how fast the program is that nobody has registered. It ends by its own clock,
// so that rounds in a second follow from how much of a processor it had, too.
func (f folder) addMalloc(ctx context.Context, to *rates, seconds float64) error {
	result, err := measure.Run(ctx, asHarmless(f.path("harmless/malloc_storm"), number(seconds)))
	if err != nil {
		return err
	}
	rate, err := measure.Native().Rate(result)
	to.Second = append(to.Second, rate)
	to.Processor = append(to.Processor, rate*result.Wall.Seconds()/result.CPU.Seconds())
	return err
}

// gain is how many times faster the job is that is tuned, over the second half of its
// time, than the same one under another name.
func (f folder) gain(ctx context.Context, seconds float64) (float64, error) {
	plain, err := late(ctx, asHarmless(debianPython, f.path("harmless/"+plainScript), number(seconds)))
	if err != nil {
		return math.NaN(), err
	}
	tuned, err := late(ctx, asHarmless(debianPython, f.path("harmless/"+jobScript), number(seconds)))
	return tuned / plain, err
}

func number(seconds float64) string { return strconv.FormatFloat(seconds, 'g', -1, 64) }

// late is the rate over the second half of a run.
func late(ctx context.Context, command []string) (float64, error) {
	result, err := measure.Run(ctx, command)
	if err != nil {
		return math.NaN(), err
	}
	progress, began := measure.Native().Progress(result), measure.Native().Beginning(result)
	for _, half := range progress {
		last := progress[len(progress)-1]
		if half.At.Before(last.At) && half.At.Sub(began) >= last.At.Sub(began)/2 {
			return (last.Count - half.Count) / last.At.Sub(half.At).Seconds(), nil
		}
	}
	return math.NaN(), fmt.Errorf("%v: no progress", command)
}
