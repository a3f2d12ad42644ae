// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Inspection is what is known of a program before it is run.
type Inspection struct {
	// Path that was inspected.
	Path string
	// Kind of the file.
	Kind Kind
	// Detail says more on the kind, for KindCorrupt and the like; may be empty.
	Detail string
	// Interpreter is the dynamic loader of a dynamic program.
	Interpreter string
	// Machine that an ELF file is built for.
	Machine elf.Machine
	// Privileged says whether the kernel would start it in secure mode.
	Privileged Privileged
	// Script is set for KindScript.
	Script *Script
}

// Script is what a script's first line says.
type Script struct {
	// Interpreter is the path behind #!.
	Interpreter string
	// Argument is the rest of the line, which the kernel hands over as one
	// argument; may be empty.
	Argument string
	// Program is what will run in the end: the interpreter, or what it names
	// where that is env(1) (looked up in PATH) or a script again.
	Program *Inspection
}

// EnvProgram is the program that the line has env(1) run; "" if there is none, or it cannot
// be told.
func (s *Script) EnvProgram() string { return envProgram(s.Interpreter, s.Argument) }

// Inspect looks at the program that a user wants to run. path is as execve(2)
// takes it: nothing is looked up in PATH. It has no error: what cannot be
// found out is a kind of its own.
func Inspect(path string) Inspection { return inspect(path, thisProcess(), 0) }

func inspect(path string, by starter, depth int) Inspection {
	i := Inspection{Path: path}
	if i.Kind = pathKind(path); i.Kind == KindUnknown {
		i.inspectFile(by, depth)
	}
	return i
}

func (i *Inspection) inspectFile(by starter, depth int) {
	file, err := openRegular(i.Path)
	if err != nil {
		i.Kind, i.Detail = KindUnreadable, err.Error()
		return
	}
	defer file.Close()
	i.Privileged = by.privileged(file)
	if i.Script = readScript(file, by, depth); i.Script != nil {
		i.Kind = KindScript
		return
	}
	i.inspectELF(file)
}

// readScript returns nil if the file does not begin with #!.
func readScript(file *os.File, by starter, depth int) *Script {
	head := make([]byte, maxShebang)
	n, _ := file.ReadAt(head, 0)
	interpreter, argument, ok := parseShebang(head[:n])
	if !ok {
		return nil
	}
	s := &Script{Interpreter: interpreter, Argument: argument}
	if interpreter == "" || depth >= maxScripts {
		return s
	}
	program := inspect(interpreter, by, depth+1)
	if name := s.EnvProgram(); name != "" {
		if path, err := exec.LookPath(name); err == nil {
			program = inspect(path, by, depth+1)
		} else {
			program = Inspection{Path: name, Kind: KindMissing, Detail: "not found in PATH"}
		}
	}
	s.Program = &program
	return s
}

// pathKind tells what can be told without opening; KindUnknown is a regular
// file that this user may execute.
func pathKind(path string) Kind {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return KindUnreachable
	case err != nil:
		return KindMissing
	case info.IsDir():
		return KindDirectory
	case !info.Mode().IsRegular():
		return KindSpecial
	}
	// Root passes faccessat for any file with one x bit, as execve does; a
	// mount with noexec is seen as well.
	if unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil {
		return KindNotExecutable
	}
	return KindUnknown
}

func (i *Inspection) inspectELF(file *os.File) {
	key, err := keyOf(file)
	if err != nil {
		i.Kind, i.Detail = KindUnreadable, err.Error()
		return
	}
	r := reader{at: file, size: uint64(key.size)}
	if i.Kind = i.foreign(r); i.Kind != KindUnknown {
		return
	}
	headers, err := readHeaders(r)
	if err == nil {
		err = headers.complete(r)
	}
	f := linking{layout: layout{reader: r, headers: headers, name: nameOf(file)}}
	if err == nil {
		f.dynamic, err = readDynamic(r, headers)
	}
	if err == nil {
		i.Interpreter, err = f.Interpreter()
	}
	if err != nil {
		i.Kind, i.Detail = KindCorrupt, err.Error()
		return
	}
	i.Kind = i.elfKind(&f)
}

// foreign tells what this machine's own loader does not run. Class and machine
// stand at the same place in files of all classes.
func (i *Inspection) foreign(r reader) Kind {
	head, err := r.bytes("file header", 0, min(r.size, 20), 20)
	switch {
	case err != nil || len(head) < 4 || string(head[:4]) != elf.ELFMAG:
		return KindNotELF
	case len(head) < 20:
		i.Detail = "cut off within the file header"
		return KindCorrupt
	}
	i.Machine = elf.Machine(uint16(head[18]) | uint16(head[19])<<8)
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		i.Machine = elf.Machine(uint16(head[19]) | uint16(head[18])<<8)
	}
	switch elf.Class(head[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
		return KindELF32
	case elf.ELFCLASS64:
	default:
		i.Detail = "neither 32-bit nor 64-bit"
		return KindCorrupt
	}
	if i.Machine != HostMachine {
		return KindOtherMachine
	}
	return KindUnknown
}

// HostMachine is the processor architecture that this program runs on
// (docs/design/0038).
const HostMachine = elf.EM_X86_64

// complete checks that the file holds all of its segments.
func (h *headers) complete(r reader) error {
	for n, p := range h.programs {
		if elf.ProgType(p.Type) != elf.PT_LOAD {
			continue
		}
		if p.Off > r.size || p.Filesz > r.size-p.Off {
			return fmt.Errorf("%w: cut off: segment %d ends beyond the end of the file", ErrCorrupt, n)
		}
		if p.Filesz > p.Memsz {
			return fmt.Errorf("%w: segment %d is larger in the file than in memory", ErrCorrupt, n)
		}
	}
	if _, ok := h.program(elf.PT_LOAD); !ok {
		return fmt.Errorf("%w: nothing to load", ErrCorrupt)
	}
	return nil
}

func (i *Inspection) elfKind(f *linking) Kind {
	loader := filepath.Base(i.Interpreter)
	switch {
	case f.Type() != elf.ET_EXEC && f.Type() != elf.ET_DYN:
		i.Detail = "neither a program nor a library: " + f.Type().String()
		return KindCorrupt
	case i.Interpreter == "" && f.Type() == elf.ET_EXEC:
		return KindStatic
	case i.Interpreter == "" && f.dynamic.pie():
		return KindStaticPIE
	case i.Interpreter == "" && (isGlibcLoader(f.SOName()) || isMuslLoader(filepath.Base(i.Path))):
		return KindLoader
	case i.Interpreter == "" && f.SOName() == "" && f.headers.file.Entry != 0:
		return KindStaticPIE // linkers before 2.26 do not write DF_1_PIE
	case i.Interpreter == "":
		return KindLibrary
	case isMuslLoader(loader):
		return KindDynamicMusl
	case isGlibcLoader(loader):
		return KindDynamic
	}
	return KindDynamicOther
}

func isGlibcLoader(name string) bool {
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld64.so.")
}

func isMuslLoader(name string) bool { return strings.HasPrefix(name, "ld-musl-") }
