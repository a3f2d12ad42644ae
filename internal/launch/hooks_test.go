// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/inherit"
)

// TestHooks: the fork is made by the thread that was asked, the end is told while the
// program is a zombie, and a group that the kernel refuses does not keep it from running.
func TestHooks(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var (
		forked int
		ends   []byte
		child  *Child
	)
	child, err = Start(t.Context(), Command{
		Args: []string{"sh", "-c", "exit 3"}, Env: os.Environ(), Signals: Catch(inherit.State{}), Group: int(null.Fd()),
		Fork: func(fork func() error) error {
			thread := unix.Gettid()
			err := fork()
			if thread != unix.Gettid() {
				t.Error("another thread goes on")
			}
			forked++
			return err
		},
		Ended: func() { ends = append(ends, state(child.PID())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	exit := child.Wait()
	if exit.Code != 3 || forked != 1 || string(ends) != "Z" || child.InGroup {
		t.Errorf("ended with %+v, forked %d times, states at the end %q, in the group: %v", exit, forked, ends, child.InGroup)
	}
}

// TestGroupOnly: a program that has to begin in a group does not run where the kernel refuses that.
func TestGroupOnly(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	child, err := Start(t.Context(), Command{
		Args: []string{"true"}, Env: os.Environ(), Signals: Catch(inherit.State{}), Group: int(null.Fd()), GroupOnly: true,
	})
	if err == nil {
		t.Fatalf("it ended with %+v", child.Wait())
	}
	if !errors.Is(err, unix.EBADF) || !strings.Contains(err.Error(), "control group") {
		t.Errorf("error %v", err)
	}
}
