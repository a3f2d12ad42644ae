// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// programs are those of the benchmark. Each is used as its manual says, does a
// fixed amount of work, and has no problem that a tunlet knows. repository is one
// that git may pack again.
func programs(repository string) []catalogue.Case {
	python := []catalogue.Need{{Command: workload.DebianPython, Package: "python3-minimal"}}
	return []catalogue.Case{
		{
			Name:    "g++",
			Needs:   []catalogue.Need{{Command: "g++", Package: "g++"}},
			Command: []string{"g++", "-O2", "-std=c++17", "-c", "-o", "/dev/null", "{src}/quiet_compiled.cpp"},
		},
		{
			Name:    "sort pipeline",
			Command: []string{"sh", "-c", "cut -d ' ' -f 2,6 {sample} | LC_ALL=C sort -k 2,2n -k 1,1 | uniq -c | sort -rn | head -n 3"},
		},
		{
			Name: "python with sqlite", Needs: python,
			Command: []string{workload.DebianPython, "{src}/quiet_sqlite.py"},
		},
		{
			Name:    "numpy",
			Needs:   append(python, catalogue.Need{Module: "numpy", Package: "python3-numpy"}),
			Command: []string{workload.DebianPython, "{src}/quiet_numpy.py"},
		},
		{
			Name:    "node",
			Needs:   []catalogue.Need{{Command: "node", Package: "nodejs"}},
			Command: []string{"node", "{src}/quiet_node.js"},
		},
		{
			Name:    "git gc",
			Needs:   []catalogue.Need{{Command: "git", Package: "git"}},
			Command: []string{"git", "-C", repository, "gc", "--quiet", "--aggressive"},
		},
		{
			Name:  "ffmpeg",
			Needs: []catalogue.Need{{Command: "ffmpeg", Package: "ffmpeg"}},
			Command: []string{"ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=12",
				"-c:v", "libx264", "-f", "null", "-"},
		},
		{
			Name:    "perl",
			Needs:   []catalogue.Need{{Command: "perl", Package: "perl-base"}},
			Command: []string{"perl", "-ne", `$n{$1} += $2 if /step (\d+) energy (\S+)/; END { print scalar keys %n }`, "{sample}"},
		},
	}
}

const (
	repositoryFiles   = 16
	repositoryCommits = 150
	fileLines         = 800
)

// makeRepository makes a repository with a history of texts that change a little in
// each commit, the same every time.
func makeRepository(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "git", "init", "--quiet", "--bare", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "fast-import", "--quiet")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = writeHistory(in)
	return errors.Join(err, in.Close(), cmd.Wait())
}

// writeHistory writes the history as fast-import reads it.
func writeHistory(to io.Writer) error {
	out := bufio.NewWriter(to)
	random := rand.New(rand.NewPCG(3, 4))
	files := make([][]string, repositoryFiles)
	for i := range files {
		for range fileLines {
			files[i] = append(files[i], line(random))
		}
	}
	for n := range repositoryCommits {
		fmt.Fprintf(out, "commit refs/heads/main\ncommitter Ann <ann@example.org> %d +0000\ndata 4\nwork\n", 1_700_000_000+n)
		for i, lines := range files {
			for range 5 {
				lines[random.IntN(len(lines))] = line(random)
			}
			text := strings.Join(lines, "")
			fmt.Fprintf(out, "M 100644 inline file%d.txt\ndata %d\n%s\n", i, len(text), text)
		}
	}
	return out.Flush()
}

func line(random *rand.Rand) string {
	return fmt.Sprintf("step %d energy %.6f rank %d\n", random.IntN(100000), random.NormFloat64(), random.IntN(64))
}
