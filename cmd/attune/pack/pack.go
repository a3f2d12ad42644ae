// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/packfile"
)

// packProgram makes the packed file. It has its name only when it is complete.
func packProgram(ctx context.Context, p *cli.Env, o packOptions) error {
	flags, err := packable(o)
	if err != nil {
		return err
	}
	glue, err := dmlib.Glue()
	if err != nil {
		return err
	}
	sources, err := o.sources(ctx)
	defer closeAll(sources)
	if err != nil {
		return err
	}
	header := packfile.Header{Glue: glue, Flags: flags, Machine: objfile.HostMachine, Attune: buildinfo.Get().Version}
	var parts map[packfile.Kind]int64
	size, err := writeFile(o.output, sources[0].Mode|0o500, func(w io.Writer) (err error) {
		parts, err = packfile.Write(w, header, sources)
		return err
	})
	if err != nil {
		return exitcode.UsageError(err, "name a file in a directory that you may write to with -o")
	}
	sayPacked(p, o, size, parts, flags)
	return nil
}

// packable refuses what would not run as it does now, and says how the program
// is to be started.
func packable(o packOptions) (packfile.Flags, error) {
	program := objfile.Inspect(o.program)
	refuse := func(err error, remedy string) (packfile.Flags, error) {
		return 0, &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: remedy}
	}
	if err := program.Runnable(); err != nil {
		return refuse(err, "name a program that can be run here")
	}
	if program.Kind == objfile.KindScript {
		return refuse(fmt.Errorf("%s is a script", o.program), "pack the program that it starts, or use `attune run` in front of it")
	}
	if privileges := privilegesOf(program); privileges != "" {
		return refuse(fmt.Errorf("%s gets privileges from the kernel (%s), which its packed copy would not have", o.program, privileges),
			"use `attune run` or the node's service")
	}
	packed, err := isPacked(o.program)
	if err != nil {
		return refuse(err, "see that it can be read")
	}
	if packed {
		return refuse(fmt.Errorf("%s is packed already", o.program), "`attune unpack --extract` gives the program back")
	}
	flags, err := placeFlags(o)
	switch program.Kind {
	case objfile.KindELF32, objfile.KindDynamicMusl, objfile.KindDynamicOther:
		flags |= packfile.NoPreload
	}
	if o.run.Quiet {
		flags |= packfile.Quiet
	}
	return flags, err
}

// privilegesOf says what a program gets from the kernel, for this user or others;
// empty: nothing.
func privilegesOf(program objfile.Inspection) string {
	info, err := os.Stat(program.Path)
	switch {
	case err == nil && info.Mode()&os.ModeSetuid != 0:
		return "set-user-id"
	case err == nil && info.Mode()&os.ModeSetgid != 0:
		return "set-group-id"
	case program.Privileged != objfile.NotPrivileged:
		return program.Privileged.String()
	}
	return ""
}

// isPacked tells whether a file ends with the record of a packed one.
func isPacked(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // read only
	_, err = ReadPacked(file)
	return !errors.Is(err, packfile.ErrNotPacked), nil
}

// sources lists the parts. The caller closes them, also after an error.
func (o packOptions) sources(ctx context.Context) ([]packfile.Source, error) {
	found := packableTunlets(o.run)
	sources, filesErr := o.openFiles(PackedTunlets(found))
	said, saidErr := describedTunlets(ctx, found)
	library, libraryErr := dmlib.Library()
	return append(sources, packfile.Source{
		Kind: packfile.Library, Name: dmlib.Name(library), Mode: 0o555, Content: bytes.NewReader(library),
	}, packfile.Source{
		Kind: packfile.Headers, Name: "memory-headers", Mode: 0o444, Content: bytes.NewReader(shm.Headers(shm.Geometry{})),
	}, packfile.Source{
		Kind: packfile.Config, Name: "attune.yaml", Mode: 0o444, Content: bytes.NewReader(o.settings),
	}, packfile.Source{
		Kind: packfile.Descriptions, Name: "tunlets.json", Mode: 0o444, Compress: true, Content: bytes.NewReader(said),
	}), errors.Join(filesErr, saidErr, libraryErr)
}

// openFiles opens program, controller and tunlets; a tunlet that is another name of a file is a link.
func (o packOptions) openFiles(tunlets []PackedTunlet) (sources []packfile.Source, err error) {
	open := func(kind packfile.Kind, name, path string) {
		source, openErr := openFile(kind, name, path)
		if openErr != nil {
			err = errors.Join(err, openErr)
			return
		}
		sources = append(sources, source)
	}
	open(packfile.Program, filepath.Base(o.program), o.program)
	open(packfile.Controller, "attune", "/proc/self/exe")
	for _, t := range tunlets {
		if t.Path != "" {
			open(packfile.Tunlet, t.Name, t.Path)
			continue
		}
		sources = append(sources, packfile.Source{
			Kind: packfile.TunletLink, Name: t.Name, Mode: 0o444, Content: strings.NewReader(t.To),
		})
	}
	return sources, err
}

// openFile opens a file to be packed: the program as it is, what tunes it compressed.
func openFile(kind packfile.Kind, name, path string) (packfile.Source, error) {
	file, err := os.Open(path)
	if err != nil {
		return packfile.Source{}, err
	}
	info, err := file.Stat()
	if err != nil {
		return packfile.Source{}, errors.Join(err, file.Close())
	}
	return packfile.Source{
		Kind: kind, Name: name, Mode: info.Mode().Perm(), Compress: kind != packfile.Program, Content: file,
	}, nil
}

func closeAll(sources []packfile.Source) {
	for _, s := range sources {
		if file, is := s.Content.(io.Closer); is {
			_ = file.Close() // read only
		}
	}
}

// writeFile makes an executable file, in one step and for whom the mode lets, and returns
// its size in bytes.
func writeFile(path string, mode os.FileMode, write func(io.Writer) error) (size int64, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", path)
	}
	killing := cli.CatchKilling()
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	defer killing.Removes(file.Name())()
	err = write(file)
	if err == nil {
		err = file.Chmod(mode)
	}
	if info, statErr := file.Stat(); statErr == nil {
		size = info.Size()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return size, err
}

// sayPacked says what was made, of so many bytes, and what will not work.
func sayPacked(p *cli.Env, o packOptions, size int64, parts map[packfile.Kind]int64, flags packfile.Flags) {
	where := "memory"
	if flags&packfile.Beside != 0 {
		where = "the folder of the packed file, for it looks for files beside itself"
	}
	if o.place != placeAuto {
		where = o.place
	}
	fmt.Fprintf(p.Stdout, "%s: %.1f MB, %.1f MB more than the program (controller %.1f, tunlets %.1f); it runs from %s\n",
		o.output, megabytes(size), megabytes(size-parts[packfile.Program]), megabytes(parts[packfile.Controller]),
		megabytes(parts[packfile.Tunlet]), where)
	if reason := objfile.Inspect(o.program).PreloadRefusal(); reason != "" {
		fmt.Fprintf(p.Stdout, "it is only watched from outside: %s\n", reason)
	}
	for _, t := range packableTunlets(o.run) {
		if t.Err != nil {
			fmt.Fprintf(p.Stdout, "without the tunlet %s: %v\n", t.Name, t.Err)
		}
	}
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
