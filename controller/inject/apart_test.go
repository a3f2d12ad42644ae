// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestNamespaceOfTheLoader: an object that a program loaded with a C library of its own
// gets its memory from there, and gives it back there.
func TestNamespaceOfTheLoader(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "apart", buildLibrary(t, "part",
		`char *strdup(const char *); int part(void) { char *p = strdup("here"); int ok = p != NULL; free(p); return ok; }`))
	result := b.inject(t, h.PID)
	defer free(t, result)
	h.Right(t)
	images, err := objfile.Images(h.PID)
	if err != nil {
		t.Fatal(err)
	}
	led, err := Extend(t.Context(), mustOpen(t, h.PID), result.Memory, images, result.Slots)
	if err != nil || len(led) != 0 {
		t.Errorf("led %v to hooks later, %v; want none", led, err)
	}
	part := imageOf(t, h.PID, "libpart.so")
	for _, s := range result.Slots {
		if s.Address >= part.Start && s.Address < part.End {
			t.Errorf("slot %+v is of the library", s)
		}
	}
	if len(result.Slots) == 0 {
		t.Error("no slots lead to hooks")
	}
	h.Right(t)
	h.Finish(t)
}

// tells prints where its C library's getppid lies.
const tells = `
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    char line[16];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin))
        printf("%lu\n", (unsigned long)dlsym(RTLD_DEFAULT, "getppid"));
    return 0;
}
`

// TestGroundOfAnAuditedProgram: an auditor (LD_AUDIT) has a C library of its own, which is
// mapped before the program's. Where a thread of the program may be borrowed is told by
// the program's, and a thread in the auditor's is not.
func TestGroundOfAnAuditedProgram(t *testing.T) {
	auditor := buildLibrary(t, "auditor", `char *strdup(const char *);
unsigned la_version(unsigned version) { free(strdup("audited")); return version; }`)
	target := targets.Start(t, targets.BuildText(t, "tells", tells), "LD_AUDIT="+auditor)
	process := mustOpen(t, target.PID)
	own, err := strconv.ParseUint(target.Ask(t, "where"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newExecution(process, constant(1), ExecuteOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !e.ground.libc.Has(own) || e.ground.held(own) {
		t.Errorf("the program's C library has %#x, taken for it is %#x", own, e.ground.libc)
	}
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	other := 0
	for _, image := range images {
		if code := executable(target.PID, image); isLibc(image) && !code.Has(own) {
			other++
			if !e.ground.held(code.Start) || !e.ground.held(code.End-1) {
				t.Errorf("the auditor's C library %#x is not held", code)
			}
		}
	}
	if other != 1 {
		t.Errorf("%d other C libraries, want the auditor's", other)
	}
	if value, _, err := Execute(t.Context(), process, constant(9), patiently(ExecuteOptions{})); err != nil || value != 9 {
		t.Errorf("executed: %d, %v", value, err)
	}
}

// TestInjectAnAuditedProgram: DMLib comes into the program, not into the auditor.
func TestInjectAnAuditedProgram(t *testing.T) {
	b := newBench(t)
	auditor := buildLibrary(t, "auditor", `unsigned la_version(unsigned version) { return version; }`)
	target := targets.Start(t, targets.BuildText(t, "tells", tells), "LD_AUDIT="+auditor)
	result := b.inject(t, target.PID)
	defer free(t, result)
	target.Ask(t, "where")
	target.EndWell(t)
}
