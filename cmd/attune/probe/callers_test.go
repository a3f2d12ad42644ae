// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

func TestCallersOfAProcess(t *testing.T) {
	c := callers{}
	defer c.close()
	pid, address := int32(os.Getpid()), uint64(reflect.ValueOf(TestCallersOfAProcess).Pointer())+1
	if got := c.name(pid, address); !strings.HasSuffix(got, "probe.TestCallersOfAProcess") {
		t.Errorf("named %q", got)
	}
	if c.forget(pid); len(c) != 0 {
		t.Errorf("known are %v", c)
	}
}

// TestCallersOfAnEndedProcess: what nobody has looked at is not said to be in no file.
func TestCallersOfAnEndedProcess(t *testing.T) {
	c := callers{}
	defer c.close()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if got := c.name(int32(ended.Process.Pid), 0x46af); got != "" || len(c) != 0 {
		t.Errorf("named %q, known are %v", got, c)
	}
}
