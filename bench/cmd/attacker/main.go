// SPDX-License-Identifier: Apache-2.0

// Command attacker is a user who wants the services of a node to suffer, and others with
// them. It is given a directory that has programs of the user's in bin (hostile-exit,
// hostile-traced, hostile-maps, hostile-garbage, hostile-unread, hostile-objects), an
// empty one that is theirs, files, and the sockets of the services. It makes all of its
// attacks at once, each in a process of its own, until it is killed with its process
// group, and prints every second what they have done, a line "ATTACK WHAT COUNT" each.
//
// Descriptors 3 and 4 are devices of FUSE, which it serves, mounted on fuse/memory and
// fuse/program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// attacks are what it does, by name. Each has until the process is killed.
var attacks = map[string]func(*place) error{
	"fuse":    silentPages,
	"objects": hostileObjects,
	"execs":   execStorm,
	"stands":  standing,
	"sockets": socketFlood,
	"calls":   callFlood,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "attacker:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case os.Getuid() == 0:
		return fmt.Errorf("root attacks nobody: run it as an ordinary user")
	case len(args) == 1:
		return everything(args[0])
	case len(args) == 2 && attacks[args[1]] != nil:
		// With whoever has started it, whatever else it waits for.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return err
		}
		p := &place{dir: args[0], attack: args[1], counts: make(map[string]int)}
		go p.tell()
		return attacks[args[1]](p)
	}
	return fmt.Errorf("usage: attacker DIRECTORY")
}

// everything has each attack made, again and again if it ends.
func everything(dir string) error {
	var all sync.WaitGroup
	for name := range attacks {
		all.Go(func() {
			for {
				attack := exec.Command("/proc/self/exe", dir, name)
				attack.Stdout, attack.Stderr = os.Stdout, os.Stderr
				if name == "fuse" {
					attack.ExtraFiles = []*os.File{os.NewFile(3, "memory"), os.NewFile(4, "program")}
				}
				if err := attack.Run(); err != nil {
					fmt.Fprintln(os.Stderr, "attacker:", name, err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return nil
}

// place is where an attack is made.
type place struct {
	dir, attack string

	mu     sync.Mutex // guards counts
	counts map[string]int
}

func (p *place) program(name string) string { return filepath.Join(p.dir, "bin", name) }

// socket returns the path of one of the services' sockets.
func (p *place) socket(name string) string { return filepath.Join(p.dir, name) }

// count counts something that was done.
func (p *place) count(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[what]++
}

// tell prints the counts.
func (p *place) tell() {
	for range time.Tick(time.Second) {
		p.mu.Lock()
		for what, n := range p.counts {
			fmt.Println(p.attack, what, n)
		}
		p.mu.Unlock()
	}
}

// forGood runs a program of the user's, again when it ends, for as long at a time, and
// counts the runs that lasted so long.
func (p *place) forGood(each time.Duration, name string, args ...string) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), each)
		command := exec.CommandContext(ctx, p.program(name), args...)
		command.SysProcAttr = diesWithUs
		_ = command.Run() // it is killed
		if ctx.Err() != nil {
			p.count("runs of " + name)
		}
		cancel()
		time.Sleep(10 * time.Millisecond)
	}
}
