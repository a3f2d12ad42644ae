// SPDX-License-Identifier: Apache-2.0

// Package counter runs programs under attune with a tunlet that does nothing
// but count what its measure points deliver.
package counter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// Sums are what the tunlet got of one measure point.
type Sums struct {
	// Hits is the number of hits, in sums or as records.
	Hits int64
	// Sum is the sum of their values.
	Sum int64
	// Lost is how many records the tunlet was told that it did not get, of all
	// its points.
	Lost int64
}

// Attune prepares runs under attune with the given measure points, in the words
// of the tunlet's Configure. It builds the tunlet and writes its configuration
// into the folder scratch.
func Attune(ctx context.Context, scratch string, points ...string) (tuned.Attune, error) {
	if err := BuildTunlet(ctx, scratch, "bench"); err != nil {
		return tuned.Attune{}, err
	}
	dir := filepath.Join(scratch, "attune")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return tuned.Attune{}, err
	}
	text := fmt.Sprintf("tunlets:\n  bench:\n    points: %q\n", strings.Join(points, " "))
	if err := os.WriteFile(filepath.Join(dir, "attune.yaml"), []byte(text), 0o600); err != nil {
		return tuned.Attune{}, err
	}
	return tuned.Attune{
		Binary: "bin/attune", Scratch: scratch, Settings: []string{"XDG_CONFIG_HOME=" + scratch},
		// What a measure point costs is what is measured: none is to be made less of.
		Flags: []string{"--mode", "observe", "--tunlet-dir", scratch, "--tunlet", "bench", "--budget", "100"},
	}, nil
}

// BuildTunlet builds one of the tunlets in bench/cmd into a folder, made if need be.
func BuildTunlet(ctx context.Context, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	program := "attune-tunlet-" + name
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, program), "./bench/cmd/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tunlet %s: %w: %s", name, err, out)
	}
	return nil
}

// Got returns what the tunlet told of a measure point.
func Got(r tuned.Run, symbol string) (Sums, error) {
	var s Sums
	for _, remark := range r.Report.Remarks {
		rest, found := strings.CutPrefix(remark.Text, symbol+": ")
		if n, _ := fmt.Sscanf(rest, "%d hits, sum %d, %d records lost", &s.Hits, &s.Sum, &s.Lost); found && n == 3 {
			return s, nil
		}
	}
	return s, fmt.Errorf("the tunlet did not tell what it got of %s: %+v", symbol, r.Report.Tunlets)
}
