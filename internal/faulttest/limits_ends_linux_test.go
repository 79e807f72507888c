package faulttest_test

// What host and workers have of each other.

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// ours are the descriptors of a worker that lead to its host.
var ours = map[string]int{"1": unix.O_RDONLY, "2": unix.O_RDONLY, "3": unix.O_WRONLY, "4": unix.O_RDONLY}

// A copy of a worker's end in the host would keep its end of file from ever coming.
func TestO07HostKeepsNoEndOfChild(t *testing.T) {
	testkit.NoLeaks(t)
	before := len(openDescriptors(t))
	r := childtest.StartTwo(t, childtest.Processes())
	r.Fine(t, r.ID)
	r.Fine(t, r.Other)
	host := openDescriptors(t)
	require.LessOrEqual(t, len(host)-before, 2*6+1, "descriptors for two children, and the gate of the test")
	all := []map[string]string{host}
	for _, id := range []int{r.ID, r.Other} {
		worker := descriptorsOf(t, strconv.Itoa(r.Child(t, id).Pid))
		for fd, mode := range ours {
			require.Contains(t, worker[fd], "pipe:", "descriptor %s of worker %d", fd, id)
			var ends []string
			for hostFd, target := range host {
				if target == worker[fd] {
					ends = append(ends, hostFd)
				}
			}
			require.Len(t, ends, 1, "descriptors of the host for descriptor %s of worker %d", fd, id)
			require.Equal(t, mode, accessMode(t, ends[0]), "mode of the host's end of descriptor %s of worker %d", fd, id)
		}
		require.Contains(t, worker["5"], "socket:", "descriptor 5 of worker %d", id)
		for hostFd, target := range host {
			require.NotEqual(t, worker["5"], target, "descriptor %s of the host is the end of worker %d", hostFd, id)
		}
		all = append(all, worker)
	}
	t.Run("C60", func(t *testing.T) { namelessSockets(t, all...) })
	shutdown(t, r.Sup)
}

// accessMode is how a descriptor of this process was opened.
func accessMode(t *testing.T, fd string) int {
	t.Helper()
	n, err := strconv.Atoi(fd)
	require.NoError(t, err, "number of a descriptor")
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0)
	require.NoError(t, err, "flags of descriptor %s", fd)
	return flags & unix.O_ACCMODE
}

// namelessSockets asserts that no unix socket of these descriptors has a name by which others could connect.
func namelessSockets(t *testing.T, processes ...map[string]string) {
	t.Helper()
	all, err := os.ReadFile("/proc/net/unix")
	require.NoError(t, err, "list of unix sockets")
	const inode, name = 6, 7
	seen := 0
	for line := range strings.Lines(string(all)) {
		fields := strings.Fields(line)
		if !slices.ContainsFunc(processes, func(open map[string]string) bool {
			for _, target := range open {
				if len(fields) > inode && target == "socket:["+fields[inode]+"]" {
					return true
				}
			}
			return false
		}) {
			continue
		}
		seen++
		require.Len(t, fields, name, "the socket has no name: %s", line)
	}
	require.GreaterOrEqual(t, seen, 2*(len(processes)-1), "both ends of each control socket are in the list")
}
