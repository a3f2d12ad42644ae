// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestRedact(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"HOME", "/home/ann", "/home/ann"},
		{"PWD", "/work", "/work"},
		{"OLDPWD", "/", "/"},
		{"PATH", "/usr/bin:/bin", "/usr/bin:/bin"},
		{"OMP_NUM_THREADS", "8", "8"},
		{"LC_ALL", "C", "C"},
		{"SSL_CERT_FILE", "/etc/ssl/ca.pem", "/etc/ssl/ca.pem"},
		{"GITHUB_TOKEN", "x", Hidden},
		{"aws_secret_access_key", "x", Hidden},
		{"PGPASSWORD", "x", Hidden},
		{"DB_PASS", "x", Hidden},
		{"SSHPASS", "x", Hidden},
		{"DBPASS", "x", Hidden},
		{"PASSAGE", "x", "x"},
		{"MYSQL_PWD", "x", Hidden},
		{"API_KEY", "", ""},
		{"SSH_AUTH_SOCK", "/tmp/agent", Hidden},
		{"DATABASE_URL", "postgres://ann:s3cret@db/x?y=1", "postgres://ann:" + Hidden + "@db/x?y=1"},
		{"proxy", "http://a:b@p:3128 http://c:d@q", "http://a:" + Hidden + "@p:3128 http://c:" + Hidden + "@q"},
		{"AT", "https://ann:s3@cr@t@db/x@y", "https://ann:" + Hidden + "@db/x@y"},
		{"AT_SITE", "https://ann@site:s3cret@db", "https://ann@site:" + Hidden + "@db"},
		{"PROXIES", "http://a:b@p,http://c:d@q", "http://a:" + Hidden + "@p,http://c:" + Hidden + "@q"},
		{"GIT", "git+ssh://git@host:3128/x@1", "git+ssh://git@host:3128/x@1"},
		{"URL", "http://p:3128/a@b", "http://p:3128/a@b"},
		{"GREETING", "ghp_0123456789abcdef", Hidden},
		{"HEADER", "Bearer eyJhbGciOi.eyJzdWIi.x", Hidden},
		{"PEM", "-----BEGIN RSA PRIVATE", Hidden},
		{"TASK", "ask-me-anything-please", "ask-me-anything-please"},
		{"BYTES", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			variables, names := redact([]string{tt.name + "=" + tt.value})
			if variables[tt.name] != tt.want || slices.Contains(names, tt.name) != strings.Contains(tt.want, Hidden) {
				t.Errorf("%q, hidden: %v; want %q", variables[tt.name], names, tt.want)
			}
		})
	}
}

// TestRulesAreDocumented: the reference page has each rule by which values are left out.
func TestRulesAreDocumented(t *testing.T) {
	page := files.Read(t, "../../docs/reference/account.md")
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, rule := range []string{
		"The whole value, if the name contains " + strings.Join(secretNames, ", ") + ", in letters of any case, or ends in " + strings.Join(secretEnds, ", ") + ".",
		"The whole value, if it contains a private key (-----BEGIN) or a token that its form gives away: of GitHub, GitLab, Slack, AWS, OpenAI and Hugging Face, or a JSON Web Token.",
		"The password in an address with a user's name: scheme://user:password@host.",
	} {
		if !strings.Contains(text, rule) {
			t.Errorf("docs/reference/account.md is without: %s", rule)
		}
	}
}

// TestFiles: checksums are of what is there at the end, and say if that is not what was there.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	files.Write(t, path("same"), "abc", 0o600)
	files.Write(t, path("written"), "abc", 0o600)
	files.Write(t, path("replaced"), "abc", 0o600)
	r := Begin(Options{Inputs: []string{path("same"), path("written"), path("replaced"), dir, path("none")}, Outputs: []string{path("out"), path("not made")}})
	r.Started(os.Getpid(), path("same"))
	files.Write(t, path("written"), "abcd", 0o600)
	files.Write(t, path("new"), "abc", 0o600)
	if err := os.Rename(path("new"), path("replaced")); err != nil {
		t.Fatal(err)
	}
	files.Write(t, path("out"), "", 0o600)
	files.Write(t, path("seen"), "abc", 0o600)
	p := r.End(t.Context(), []account.File{
		{Path: path("seen"), Read: new(uint64(3)), Inodes: []uint64{inodeOf(t, path("seen"))}}, {Path: path("out"), Written: new(uint64(1))}, {Path: path("same"), Read: new(uint64(3))},
		{Path: path("removed"), Written: new(uint64(3))}, {Path: "/etc/passwd", Read: new(uint64(3))}, {Path: path("opened"), Read: new(uint64(0))},
	})
	const abc, empty = "ba7816bf", "e3b0c442"
	short := func(files []account.DataFile) (list []string) {
		for _, f := range files {
			text := strings.TrimPrefix(strings.Replace(f.Path, dir, ".", 1), "./") + " " + f.SHA256[:min(8, len(f.SHA256))]
			for _, word := range []struct {
				text string
				is   bool
			}{{" directory", f.Directory}, {" changed", f.Changed}, {" found", f.Found}, {" missing", f.Missing != ""}} {
				if word.is {
					text += word.text
				}
			}
			list = append(list, text)
		}
		return list
	}
	want := []string{"same " + abc, "written 88d4266f changed", "replaced " + abc + " changed", ".  directory changed", "none  missing", "seen " + abc + " found"}
	if diff := cmp.Diff(want, short(p.Inputs)); diff != "" {
		t.Errorf("inputs (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"out " + empty, "not made  missing"}, short(p.Outputs)); diff != "" {
		t.Errorf("outputs (-want +got)\n%s", diff)
	}
	if p.Executable == nil || p.Executable.Changed || !strings.HasPrefix(p.Executable.SHA256, abc) {
		t.Errorf("executable %+v", p.Executable)
	}
	if p.Limits["RLIMIT_NOFILE"].Soft == nil || p.User.Umask == "" || p.Machine.Architecture == "" {
		t.Errorf("limits %v, user %+v, machine %+v", p.Limits, p.User, p.Machine)
	}
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// TestReplacedOutputs: a command that another user wrote leaves links to what that user may not read, a
// pipe, and terabytes of holes in place of what it has written.
func TestReplacedOutputs(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	files.Write(t, path("secret"), "secret", 0o600)
	var written []account.File
	for _, name := range []string{"link", "below/secret", "moved", "pipe", "holes"} {
		if err := os.MkdirAll(filepath.Dir(path(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		files.Write(t, path(name), "abc", 0o600)
		written = append(written, account.File{Path: path(name), Written: new(uint64(3)), Inodes: []uint64{inodeOf(t, path(name))}})
	}
	r := Begin(Options{})
	for _, name := range []string{"link", "below", "pipe"} {
		if err := os.RemoveAll(path(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink(path("secret"), path("link")), os.Symlink(dir, path("below")), os.Rename(path("secret"), path("moved")),
		unix.Mkfifo(path("pipe"), 0o600), os.Truncate(path("holes"), 1<<42),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if p := r.End(t.Context(), written); len(p.Outputs) > 0 {
		t.Errorf("%+v", p.Outputs)
	}
}

// TestDirectoryByLink: a file is there once, by the path that the kernel has for it, also where the
// working directory was reached by a symbolic link.
func TestDirectoryByLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, link := filepath.Join(top, "gpfs"), filepath.Join(top, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Symlink("gpfs", link), os.Symlink("data", filepath.Join(home, "in"))); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(home, "data"), "abc", 0o600)
	t.Chdir(link)
	t.Setenv("PWD", link)
	r := Begin(Options{Inputs: []string{"in"}, Outputs: []string{"out"}})
	files.Write(t, "out", "abc", 0o600)
	data, out := filepath.Join(home, "data"), filepath.Join(home, "out")
	p := r.End(t.Context(), []account.File{
		{Path: data, Read: new(uint64(3)), Inodes: []uint64{inodeOf(t, data)}}, {Path: out, Written: new(uint64(3)), Inodes: []uint64{inodeOf(t, out)}},
	})
	// The input has the name that was given, of a link: it is this name that the command knows.
	if len(p.Inputs) != 1 || p.Inputs[0].Path != filepath.Join(home, "in") || p.Inputs[0].Changed || p.Inputs[0].SHA256 == "" {
		t.Errorf("inputs %+v", p.Inputs)
	}
	if len(p.Outputs) != 1 || p.Outputs[0].Path != out || p.Outputs[0].Found {
		t.Errorf("outputs %+v", p.Outputs)
	}
}

// TestNobodyWaitsForChecksums: they end with their context.
func TestNobodyWaitsForChecksums(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	files.Write(t, path, "abc", 0o600)
	r := Begin(Options{Inputs: []string{path}})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if p := r.End(ctx, nil); p.Inputs[0].SHA256 != "" || p.Inputs[0].Missing == "" {
		t.Errorf("%+v", p.Inputs[0])
	}
}

func TestJobs(t *testing.T) {
	ad := filepath.Join(t.TempDir(), "job.ad")
	files.Write(t, ad, "ClusterId = 17\nProcId = 3\nOther = \"x\"\n", 0o600)
	got := jobs([]string{"SLURM_JOB_ID=5", "SLURM_JOB_NAME=x", "JOB_ID=", "_CONDOR_JOB_AD=" + ad})
	if diff := cmp.Diff(map[string]string{"SLURM_JOB_ID": "5", "CONDOR_JOBID": "17.3"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestStream: what was written since, and only its end if it is too much.
func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags int
		write string
		want  account.Captured
	}{
		{name: "nothing", write: "", want: account.Captured{}},
		{name: "all of it", write: "new", want: account.Captured{Text: "new", Bytes: 3}},
		{name: "appended", flags: os.O_APPEND, write: "new", want: account.Captured{Text: "new", Bytes: 3}},
		{name: "the end", write: "0123456789", want: account.Captured{Text: "23456789", Bytes: 10, Truncated: true}},
		{name: "whole characters", write: "012€456789", want: account.Captured{Text: "456789", Bytes: 12, Truncated: true}},
		{name: "bytes", write: "a\xff", want: account.Captured{Base64: []byte("a\xff"), Bytes: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			files.Write(t, path, "old ", 0o600)
			file, err := os.OpenFile(path, os.O_WRONLY|tt.flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.Seek(0, 2); err != nil {
				t.Fatal(err)
			}
			s := openStream(int(file.Fd()), false)
			if _, err := file.WriteString(tt.write); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, s.end(8)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got := openStream(1, true).end(8); got.Missing != "it is closed" {
		t.Errorf("closed: %+v", got)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	if got := openStream(int(writer.Fd()), false).end(8); !strings.Contains(got.Missing, "no file") {
		t.Errorf("pipe: %+v", got)
	}
}
