// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A function's name alone means the program's function, else that of the only library
// which has one.
func TestInOneObject(t *testing.T) {
	library := func(name, text string) string {
		return targets.BuildText(t, name, text, "-shared", "-fPIC")
	}
	one := library("libone.so", `int alone(void) { return 1; } int twice(void) { return 1; } int everywhere(void) { return 1; } int many_more(void) { return 1; }`)
	two := library("libtwo.so", `int twice(void) { return 2; } int everywhere(void) { return 2; }`)
	program := targets.BuildText(t, "namesake[1]", `#include <dlfcn.h>
#include <stdio.h>
__asm__(".text\n.altmacro\n.macro many k\n.globl many_\\k\n.type many_\\k, @function\nmany_\\k: ret\n.size many_\\k, 1\n.endm\n"
	".set k, 0\n.rept 4100\nmany %k\n.set k, k + 1\n.endr\n");
int step(void) { return 3; }
int everywhere(void) { return step(); }
int main(void) {
	if (!dlopen("`+one+`", RTLD_NOW) || !dlopen("`+two+`", RTLD_NOW)) return 1;
	puts("ready"); fflush(stdout);
	return getchar() == everywhere();
}
`)
	target := targets.StartCommand(t, exec.Command(program))
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	mapped := func() ([]objfile.Image, error) { return images, nil }
	for name, want := range map[string]struct {
		object string // that is meant
		err    error
		text   string
	}{
		"step":                 {"namesake[1]", nil, ""},
		"everywhere":           {"namesake[1]", nil, ""},
		"many_*":               {"namesake[1]", nil, ""}, // which are too many
		"alone":                {"libone.so", nil, ""},
		"twice":                {"", objfile.ErrAmbiguous, "2 libraries have twice; write lib"},
		"memcpy":               {"libc.so.6", nil, ""}, // which is an indirect function
		"stepp":                {"", objfile.ErrNoSymbol, "close to it: step"},
		"nothing_of_this_name": {"", objfile.ErrNoSymbol, "namesake[1]"},
	} {
		asked := &attunev1.MeasurePoint{Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Symbols: []string{name}, OneObject: true}}}
		got, err := InOneObject(asked, mapped)
		if !errors.Is(err, want.err) || err != nil && !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		var meant []string
		for _, image := range images {
			if Watched(image, got.GetFunction().GetObject()) {
				meant = append(meant, image.Name())
			}
		}
		if strings.Join(meant, " ") != want.object || got.GetFunction().GetDynamicCallsOnly() == (want.object == "namesake[1]") {
			t.Errorf("%s: %v in %q", name, got.GetFunction(), meant)
		}
		if asked.GetFunction().GetObject() != "" {
			t.Errorf("%s: what was asked for has changed", name)
		}
	}
	named := &attunev1.MeasurePoint{Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Object: "libtwo.so", Symbols: []string{"twice"}, OneObject: true}}}
	if got, err := InOneObject(named, mapped); got != named || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
