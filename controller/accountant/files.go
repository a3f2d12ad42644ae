// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/taskaccount"
	"github.com/attune-hpc/attune/internal/account"
)

const filesSource = "kernel tracepoint of system calls (BPF)"

// fileFields are the names in an account of what is told of files and the network.
var (
	networkFields = []string{"io.network_received_bytes", "io.network_sent_bytes"}
	fileFields    = append([]string{"files"}, networkFields...)
)

// missFiles says why nothing is told of files and the network.
func missFiles(a *account.Account, reason error) {
	for _, name := range fileFields {
		a.Missing[name] = reason.Error()
	}
}

// fillFiles fills in what the processes did with files and the network. living says
// whether some of them live on.
func fillFiles(a *account.Account, files *taskaccount.Files, living bool) {
	err := files.Read()
	list, totals, listErr := files.List()
	if err = errors.Join(err, listErr); err != nil {
		missFiles(a, err)
		return
	}
	a.Files = filesOf(list)
	a.IO.NetworkReceived, a.IO.NetworkSent = new(totals.Received), new(totals.Sent)
	accuracy, why := account.Exact, ""
	if living {
		accuracy = account.Sampled
	}
	if totals.LostCalls > 0 {
		accuracy, why = account.Bound, fmt.Sprintf("at least: there was no room for %d calls", totals.LostCalls)
	}
	if totals.Unseen > 0 {
		accuracy, why = account.Bound, "at least: io_uring, io_submit or system calls of 32-bit programs were used, which are not seen"
	}
	a.Cost.LostEvents += totals.LostCalls
	for _, name := range fileFields {
		a.Note(accuracy, filesSource, name)
		if why != "" {
			a.Missing[name] = why
		}
	}
}

// filesOf has one entry for each path: files that had it one after another are added
// up. Those with the most bytes come first.
func filesOf(list []taskaccount.File) []account.File {
	slices.SortFunc(list, func(a, b taskaccount.File) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(kindOf(a.Mode), kindOf(b.Mode)))
	})
	var sums []taskaccount.File
	inodes := make(map[string][]uint64) // by path
	for _, f := range list {
		inodes[f.Path] = append(inodes[f.Path], f.Inode)
		if last := len(sums) - 1; last >= 0 && sums[last].Path == f.Path && kindOf(sums[last].Mode) == kindOf(f.Mode) {
			sums[last].Add(f)
			continue
		}
		sums = append(sums, f)
	}
	slices.SortStableFunc(sums, func(a, b taskaccount.File) int {
		return cmp.Compare(b.Read+b.Written, a.Read+a.Written)
	})
	out := make([]account.File, 0, len(sums))
	for _, f := range sums {
		out = append(out, account.File{
			Path: f.Path, Kind: kindOf(f.Mode), Read: new(f.Read), Written: new(f.Written), ReadCalls: new(f.ReadCalls), WrittenCalls: new(f.WrittenCalls),
			MovedFrom: new(f.Sent), MovedTo: new(f.Received), Opens: new(f.Opens), Executions: new(f.Executions), Maps: new(f.Maps), Mapped: new(f.Mapped),
			Inodes: inodes[f.Path],
		})
	}
	return out
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return account.KindDirectory
	case unix.S_IFCHR, unix.S_IFBLK:
		return account.KindDevice
	case unix.S_IFIFO:
		return account.KindFIFO
	}
	return account.KindFile
}
