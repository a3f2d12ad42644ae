// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/hostile"
)

// hostileObjects has programs that have mapped object files of the user's, as if they had
// loaded them: what somebody who asks for a function in these processes looks into.
func hostileObjects(p *place) error {
	if filepath.Base(os.Args[0]) == "hostile-objects" {
		return p.mapObjects()
	}
	if err := p.writeObjects(); err != nil {
		return err
	}
	for {
		command := exec.Command(p.program("hostile-objects"), p.dir, p.attack)
		command.SysProcAttr = diesWithUs
		if err := command.Start(); err != nil {
			return err
		}
		p.count("processes")
		time.Sleep(long)
		_ = command.Process.Kill()
		_ = command.Wait() // killed
	}
}

func (p *place) files() string { return filepath.Join(p.dir, "files") }

// writeObjects writes files that inflate, that have names without end, and whose DWARF
// leads in circles.
func (p *place) writeObjects() error {
	const mega = 1 << 20
	zeros := bytes.Repeat([]byte{0}, mega)
	bomb := exec.Command("xz", "-c")
	bomb.Stdin = bytes.NewReader(bytes.Repeat(zeros, 200))
	debug, err := bomb.Output()
	if err != nil {
		return fmt.Errorf("xz: %w", err)
	}
	offsets := make([]uint32, 1_000_000)
	for i := range offsets {
		offsets[i] = uint32(i % mega)
	}
	mangled := append([]byte{0}, bytes.Repeat([]byte("_ZN1a"), 2000)...)
	section := func(name string, flags elf.SectionFlag, content []byte, claim uint64) hostile.Section {
		return hostile.Section{Name: name, Type: elf.SHT_PROGBITS, Flags: flags, Content: content, Claim: claim}
	}
	for name, sections := range map[string][]hostile.Section{
		"inflates":  {section(".debug_info", elf.SHF_COMPRESSED, hostile.Bomb(200*mega, 100<<30), 0)},
		"claims":    {section(".debug_info", 0, []byte{1}, 1<<40), section(".debug_abbrev", 0, []byte{1}, 1<<40)},
		"minidebug": {section(".gnu_debugdata", 0, debug, 0)},
		"names":     hostile.Symbols(append(bytes.Repeat([]byte("a"), mega), 0), false, offsets...),
		"mangled":   hostile.Symbols(append(mangled, 0), true, offsets[:500_000]...),
		"circles":   circles(),
	} {
		if err := os.WriteFile(filepath.Join(p.files(), name), hostile.ELF(sections...), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// circles is DWARF in which an entry is nested as deep as the file is long.
func circles() []hostile.Section {
	abbreviations := []byte{1, 0x11, 1, 0x03, 0x08, 0, 0, 2, 0x13, 1, 0x49, 0x13, 0, 0, 0} // a unit with a name, structs with types
	unit := []byte{4, 0, 0, 0, 0, 0, 8, 1, 'a', 0}
	for range 1 << 20 {
		unit = append(unit, 2, 11, 0, 0, 0) // its type is the first one
	}
	info := append(binary.LittleEndian.AppendUint32(nil, uint32(len(unit))), unit...)
	return []hostile.Section{
		{Name: ".debug_info", Type: elf.SHT_PROGBITS, Content: info}, {Name: ".debug_abbrev", Type: elf.SHT_PROGBITS, Content: abbreviations},
		{Name: ".debug_str", Type: elf.SHT_PROGBITS, Content: []byte{0}},
	}
}

// mapObjects maps all files as code, and waits to be killed.
func (p *place) mapObjects() error {
	paths, err := filepath.Glob(filepath.Join(p.files(), "*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if _, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE); err != nil {
			return fmt.Errorf("map %s: %w", path, err)
		}
	}
	select {}
}
