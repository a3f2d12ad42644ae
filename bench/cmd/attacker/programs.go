// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// diesWithUs has a program end when its parent's thread does.
var diesWithUs = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

const (
	// answersFor and silentFor are how long the user's file systems answer, and do not.
	answersFor, silentFor = 12 * time.Second, 4 * time.Second
	// stormers is how many programs are executed at a time.
	stormers = 4
	// long is how long programs run that have time.
	long = 10 * time.Second
)

// execStorm executes programs that end at once, each as a job of its own.
func execStorm(p *place) error {
	var job atomic.Int64
	for range stormers - 1 {
		go p.storm(&job)
	}
	p.storm(&job)
	return nil
}

func (p *place) storm(job *atomic.Int64) {
	for {
		command := exec.Command(p.program("hostile-exit"), "exit")
		command.Env = []string{"SLURM_JOB_ID=" + strconv.FormatInt(job.Add(1), 10)}
		if err := command.Run(); err == nil {
			p.count("execs")
		}
	}
}

// standing has programs that cannot be stopped, for another one traces them, that have as
// many mappings as the kernel gives, or write over what they share with Attune.
func standing(p *place) error {
	for _, how := range []string{"traced", "maps", "garbage"} {
		go p.forGood(long, "hostile-"+how, how)
	}
	select {}
}

// silentPages has a program whose arguments, and one whose code, are in file systems that
// stop answering for some time, over and over.
func silentPages(p *place) error {
	cat, err := os.ReadFile("/bin/cat")
	if err != nil {
		return err
	}
	time.Sleep(answersFor) // the other attacks are seen first
	memory, _ := silentfs.Serve(os.NewFile(3, "memory"), filepath.Join(p.dir, "fuse/memory"), make([]byte, 1<<20))
	program, _ := silentfs.Serve(os.NewFile(4, "program"), filepath.Join(p.dir, "fuse/program"), cat)
	unread := exec.Command(p.program("hostile-unread"), "file", memory.File)
	executed := exec.Command("/bin/sh", "-c", `exec "$0"`, program.File) // this process serves it
	for _, command := range []*exec.Cmd{unread, executed} {
		command.SysProcAttr = diesWithUs
		if _, err := command.StdinPipe(); err != nil {
			return err
		}
	}
	said, err := unread.StdoutPipe()
	if err := errors.Join(err, unread.Start(), executed.Start()); err != nil {
		return err
	}
	if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		return err
	}
	for link := ""; link != program.File; time.Sleep(time.Millisecond) {
		link, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", executed.Process.Pid))
	}
	go p.asked("reads of memory without answer", memory.Asked)
	go p.asked("reads of a program without answer", program.Asked)
	for {
		p.count("silences")
		memory.Silence(true)
		program.Silence(true)
		time.Sleep(silentFor)
		memory.Silence(false)
		program.Silence(false)
		time.Sleep(answersFor)
	}
}

// asked counts what is asked for in vain.
func (p *place) asked(what string, asked <-chan struct{}) {
	for range asked {
		p.count(what)
	}
}
