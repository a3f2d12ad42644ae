// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/pack"
	"github.com/attune-hpc/attune/internal/packfile"
)

// A node knows the tunlets that were packed without starting them.
func TestPackedTunletsAreKnown(t *testing.T) {
	file, err := os.Open(mustPackBash(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := pack.ReadPacked(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", "/none")
	dir, err := pack.RememberPacked(packed, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	malloc := tunlethost.Find([]string{bin}, []string{"malloc"})[0]
	unstarted := tunlethost.Options{DescriptionDir: dir, TempDir: "/none"} // nothing can be started
	info, _, err := tunlethost.Describe(t.Context(), malloc, unstarted)
	if err != nil || info.GetName() != "malloc" || len(info.GetWake()) == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestPackedWithoutDescriptions(t *testing.T) {
	if dir, err := pack.RememberPacked(&packfile.File{}, t.TempDir()); dir != "" || err != nil {
		t.Errorf("%s, %v", dir, err)
	}
}
