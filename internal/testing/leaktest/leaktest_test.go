// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// leakVariable makes this test program leak what it names.
const leakVariable = "LEAKTEST_LEAK"

func TestMain(m *testing.M) { Main(m) }

// TestLeak is the test that the runs of TestMainTells leave something behind in.
func TestLeak(t *testing.T) {
	switch os.Getenv(leakVariable) {
	case "goroutine":
		go func() { select {} }()
	case "descriptor":
		file, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		kept = file
	case "child":
		if err := exec.Command("sleep", "1").Start(); err != nil {
			t.Fatal(err)
		}
	}
}

var kept *os.File // not closed by the garbage collector

func TestMainTells(t *testing.T) {
	if os.Getenv(leakVariable) != "" {
		return // one of the runs below
	}
	for leak, want := range map[string]string{
		"nothing": "", "goroutine": "found unexpected goroutines", "descriptor": "/dev/null", "child": "child",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLeak$")
		cmd.Env = append(os.Environ(), leakVariable+"="+leak)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", leak, err, out)
		}
	}
}
