// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Go_garbage SECONDS [PERCENT]: answers requests, of which each builds a tree, beside
// 6 MB of small objects that stay; prints "total SECONDS ANSWERS" at the end. PERCENT is
// GOGC.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

type node struct {
	left, right *node
	key         [3]uint64
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{key: [3]uint64{1}}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

func (n *node) sum() uint64 {
	if n == nil {
		return 0
	}
	return n.key[0] + n.left.sum() + n.right.sum()
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if len(os.Args) > 2 {
		percent, _ := strconv.Atoi(os.Args[2])
		debug.SetGCPercent(percent)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	live := tree(16)
	answers := bufio.NewWriterSize(null, 512)
	n, begin := 0, time.Now()
	for time.Since(begin).Seconds() < seconds {
		fmt.Fprintln(answers, n, tree(8).sum()+live.key[0])
		n++
	}
	_ = answers.Flush() // to nowhere
	fmt.Printf("total %.6f %d\n", time.Since(begin).Seconds(), n)
}
