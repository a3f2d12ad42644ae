// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/ps"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestPS(t *testing.T) {
	source := "../../controller/actuate/system/testdata/keeper.c"
	dynamic := targets.Start(t, targets.Build(t, source))
	static := targets.Start(t, targets.Build(t, source, "-static"))
	got := shell(t, "$ATTUNE_BINARY ps --json", "")
	var list []ps.Process
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || got.code != 0 {
		t.Fatalf("%v in %+v", err, got)
	}
	found := map[int]ps.Process{}
	for _, r := range list {
		found[r.PID] = r
		if r.Threads == 0 || r.Program == "" || len(r.Ways) != 3 {
			t.Errorf("incomplete: %+v", r)
		}
	}
	for pid, preload := range map[int]bool{dynamic.PID: true, static.PID: false} {
		r := found[pid]
		if r.Threads != 4 || r.Program != "keeper" || !r.Ways[0].Available || r.Ways[2].Available != preload {
			t.Errorf("%+v, want preload %v", r, preload)
		}
		if !preload && r.Ways[2].Reason == "" {
			t.Error("no reason")
		}
	}
	if _, listed := found[os.Getpid()]; !listed {
		t.Error("this test is not listed")
	}
	if got := shell(t, "$ATTUNE_BINARY ps", ""); !strings.Contains(got.stdout, strconv.Itoa(static.PID)) || got.code != 0 {
		t.Errorf("%+v", got)
	}
}
