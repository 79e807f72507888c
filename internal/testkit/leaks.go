package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// leakWait is for what is on its way to its end. Only this package's own tests, which leave things behind, change it.
var leakWait = 2 * time.Second * Slowdown

const pollStep = 2 * time.Millisecond

// NoLeaks checks, when the test and its other clean-up are over, that nothing is left of it: no process, no descriptor,
// no goroutine of this module, no shared memory, no temporary file. What is still ending gets two seconds. Call it first
// thing, and not in tests that run in parallel with others. It sees processes and descriptors on Linux only.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := inventory()
	t.Cleanup(func() {
		t.Helper()
		deadline := time.Now().Add(leakWait)
		for {
			reapAdopted()
			now := inventory()
			left := compare(before, now)
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				killLeft(before, now)
				t.Errorf("left after the test:\n%s", strings.Join(left, "\n"))
				return
			}
			<-time.After(pollStep)
		}
	})
}

// holding is something that a process has: what it is, its number or name, and what else can be said of it.
type holding struct{ class, name string }

// inventory is all that can leak, with a text for the reader.
func inventory() map[holding]string {
	all := make(map[holding]string)
	addGoroutines(all)
	addSystem(all)
	addFiles(all, "temporary file", os.TempDir())
	return all
}

// compare says what is there now and was not before. Of descriptors it also says what is missing: whoever closes one that
// is not his does harm later and elsewhere.
func compare(before, now map[holding]string) []string {
	var found []string
	for h, text := range now {
		if _, ok := before[h]; !ok {
			found = append(found, h.class+" "+h.name+text)
		}
	}
	for h := range before {
		if _, ok := now[h]; !ok && h.class == classDescriptor {
			found = append(found, h.class+" "+h.name+" was open before and is closed")
		}
	}
	slices.Sort(found)
	return found
}

const (
	classDescriptor = "descriptor"
	classProcess    = "process"
)

// addFiles lists what lies in a directory, however deep.
func addFiles(all map[holding]string, class, dir string) {
	_ = filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err == nil && name != dir { // what vanishes meanwhile is no leak
			all[holding{class, name}] = ""
		}
		return nil
	})
}

// module is in the name of every function of ours.
const module = "github.com/workerlink/supervisor"

// addGoroutines lists the goroutines that run code of ours or were started by it.
func addGoroutines(all map[holding]string) {
	for i, stack := range strings.Split(Stacks(), "\n\n") {
		if i == 0 || !strings.Contains(stack, module) { // the first one is this one
			continue
		}
		head, rest, _ := strings.Cut(stack, "\n")
		id, _, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		all[holding{"goroutine", id}] = ":\n" + rest
	}
}
