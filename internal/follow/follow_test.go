// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What stands in a file before it is followed does not count; all that follows does, also
// behind a cut and in another file at the path.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string, flag int) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
			file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("before\n", 0)
	f, err := Path(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := func(want string, anew bool) {
		t.Helper()
		news, err := f.Look()
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, news.Left)
		if _, err := f.Read(text); err != nil || string(text) != want || news.Anew != anew {
			t.Errorf("%q (anew: %v), %v; want %q", text, news.Anew, err, want)
		}
	}
	read("", false)
	write("1\n", os.O_APPEND)
	read("1\n", false)
	write("2\n", os.O_TRUNC)
	read("2\n", true)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	read("", false)
	write("3\n", 0)
	read("3\n", true)
	write("4\n", os.O_APPEND)
	if err := os.Rename(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	write("5\n", 0)
	read("4\n", false)
	read("5\n", true)
	if other, err := Path(path); err != nil || !f.Same(other) {
		t.Errorf("the same file is taken for another one: %v", err)
	}
	if _, err := Path(t.TempDir()); err == nil {
		t.Error("a directory is followed")
	}
}

func TestSplitter(t *testing.T) {
	s := Splitter{Most: 5}
	var got []string
	for _, part := range []string{"a\nb", "c\r12%\r", "\n", "123456789", "\nend"} {
		s.Split([]byte(part), func(line []byte) { got = append(got, string(line)) })
	}
	if diff := cmp.Diff([]string{"a", "bc", "12%", "", "12345"}, got); diff != "" {
		t.Error(diff)
	}
}
