// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSetBrief(t *testing.T) {
	m, app := mustApp(t, small())
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := BriefAt(path)
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	if want := (Brief{uint64(st.Dev), st.Ino, st.Ctim.Nano()}); program != want {
		t.Errorf("got %+v, want %+v", program, want)
	}
	m.SetBrief([]Brief{{1, 2, 3}, program})
	if got := *app.U32("brief_count"); got != 2 {
		t.Errorf("%d programs, want 2", got)
	}
	if at := headerBrief + briefSize; load64(app.Data, at+briefInode) != st.Ino || load64(app.Data, at+briefChanged) != uint64(st.Ctim.Nano()) {
		t.Error("the second one is not there")
	}
	m.SetBrief(make([]Brief, MaxBrief+1))
	if got := *app.U32("brief_count"); got != MaxBrief {
		t.Errorf("%d programs, want as many as there is room for", got)
	}
	m.SetBrief(nil)
	if got := *app.U32("brief_count"); got != 0 {
		t.Errorf("%d programs, want none", got)
	}
	if _, err := BriefAt(path + "-none"); err == nil {
		t.Error("a file that is not there has a name")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.SetBrief([]Brief{program}) // is ignored
}
