package testkit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of orphaned descendants, so that they can be seen.
func adoptOrphans() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// addSystem lists processes, descriptors and shared memory.
func addSystem(all map[holding]string) {
	for _, p := range children() {
		all[holding{classProcess, strconv.Itoa(p.pid)}] = " (" + p.name + ") in state " + p.state
	}
	addDescriptors(all)
	addMappings(all)
	addFiles(all, "shared memory", "/dev/shm")
}

// addDescriptors lists number and target of what is open. Process handles and anonymous memory have classes of their own,
// as they show what kind of thing was forgotten.
func addDescriptors(all map[holding]string) {
	const dir = "/proc/self/fd"
	entries, _ := os.ReadDir(dir) // without /proc nothing can be seen
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil || strings.HasPrefix(target, "/proc/"+strconv.Itoa(os.Getpid())+"/fd") {
			continue // the one that lists them
		}
		class := classDescriptor
		switch {
		case target == "anon_inode:[pidfd]":
			class = "pidfd"
		case strings.HasPrefix(target, "/memfd:"):
			class = "memfd"
		}
		all[holding{class, e.Name() + " -> " + target}] = ""
	}
}

// addMappings lists the shared mappings.
func addMappings(all map[holding]string) {
	maps, _ := os.ReadFile("/proc/self/maps") // likewise
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasSuffix(fields[1], "s") {
			all[holding{"shared mapping", strings.Join(fields, " ")}] = ""
		}
	}
}

// process is one child of this process.
type process struct {
	pid, group  int
	name, state string
}

// children returns the processes whose parent is this one, zombies included.
func children() []process {
	var found []process
	for _, pid := range candidates() {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue // it has ended
		}
		if p, parent := parseStat(stat); parent == os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}

// candidates returns the processes among which the children are: those that the kernel lists for each thread or, where it
// keeps no such lists, all.
func candidates() []string {
	var pids []string
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is valid
	for _, name := range lists {
		list, _ := os.ReadFile(name) // of a thread that has ended there is nothing
		pids = append(pids, strings.Fields(string(list))...)
	}
	if len(lists) > 0 {
		return pids
	}
	all, _ := filepath.Glob("/proc/[0-9]*") // likewise
	for _, name := range all {
		pids = append(pids, filepath.Base(name))
	}
	return pids
}

// parseStat reads pid, name, state, parent and group. The name is in parentheses and may have some itself.
func parseStat(stat []byte) (p process, parent int) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, 0
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 3 {
		return p, 0
	}
	p.name, p.state = string(stat[open+1:end]), fields[0]
	p.pid, _ = strconv.Atoi(strings.TrimSpace(string(stat[:open]))) // the kernel's own numbers
	parent, _ = strconv.Atoi(fields[1])
	p.group, _ = strconv.Atoi(fields[2])
	return p, parent
}

// reapAdopted reaps the dead that became ours when their parent, a worker, ended. The library waits for its workers, which
// lead groups, and exec.Cmd for the members of this group: those are left to them.
func reapAdopted() {
	for _, p := range children() {
		if p.state == "Z" && p.group != p.pid && p.group != syscall.Getpgrp() {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// killLeft ends the processes that a test has left, so that they do not disturb the next ones.
func killLeft(before, now map[holding]string) {
	for _, p := range children() {
		h := holding{classProcess, strconv.Itoa(p.pid)}
		_, old := before[h]
		if _, left := now[h]; left && !old {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may be a zombie
		}
	}
}

// Children returns the ids of the processes whose parent is this one, zombies included, in rising order.
func Children() []int {
	var pids []int
	for _, p := range children() {
		pids = append(pids, p.pid)
	}
	slices.Sort(pids)
	return pids
}
