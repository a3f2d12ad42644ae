// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package stack

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// slow is a space that waits for something before the rows of a file are there.
type slow struct {
	*Space
	meanwhile func()
}

func (s slow) Objects() []uprobe.Object {
	all := s.Space.Objects()
	for i := range all {
		rows := all[i].Rows
		all[i].Rows = func() ([]uprobe.Row, error) {
			s.meanwhile()
			return rows()
		}
	}
	return all
}

// TestOthersAreReadMeanwhile: while the rows of a file are read, when a watch begins and when
// the process has mapped something new, nobody waits who asks for something else.
func TestOthersAreReadMeanwhile(t *testing.T) {
	binary := targets.BuildText(t, "stacked", program, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-ra")
	target := targets.Start(t, binary)
	u, err := uprobe.New(uprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	attach(t, u, "stacked:seen by stack", binary)
	looks := 0
	space, err := NewSpace(func() ([]objfile.Image, error) {
		images, err := objfile.Images(target.PID)
		if looks++; looks > 1 {
			return images, err
		}
		for _, image := range images {
			if image.Path == binary {
				return []objfile.Image{image}, err
			}
		}
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	meanwhile := func() {
		read++
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			u.Expected(target.PID, 2)
		}()
		patience.Closed(t, "an answer while rows are read", asked)
	}
	if err := u.Watch(uprobe.Watch{PID: target.PID, Point: 1, Space: slow{space, meanwhile}}); err != nil {
		t.Fatal(err)
	}
	if read != 1 {
		t.Fatalf("rows of %d files were read, want those of the program", read)
	}
	var stacks [2]string
	for i := range stacks {
		target.Ask(t, "go")
		u.ReadKeys(target.PID, 1, uprobe.Running, func(key hits.Key, _ *uprobe.Aggregate) { stacks[i] += strings.Join(key.Calls(), " < ") + "\n" })
	}
	if read < 2 || looks != 2 {
		t.Errorf("rows of %d files were read in %d looks", read, looks)
	}
	const want = "stacked:main < stacked:left < stacked:inner < stacked:seen"
	if !strings.Contains(stacks[0], want) || !strings.Contains(stacks[1], want) {
		t.Errorf("stacks\n%s", stacks)
	}
}
