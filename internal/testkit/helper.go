package testkit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// helperVariable names the helper that a process is to play.
const helperVariable = "TESTKIT_HELPER"

// helpers are the parts that this binary can play besides its tests.
var helpers = struct {
	mu   sync.Mutex
	play map[string]func()
	used map[string]bool
}{play: make(map[string]func()), used: make(map[string]bool)}

// Helper names a part that the test binary plays in a process of its own, started by [Command]. The process exits when
// play returns. Call it from a package variable or init function; it returns the name. A name taken twice panics, and a
// whole run that never uses a helper fails.
func Helper(name string, play func()) string {
	helpers.mu.Lock()
	defer helpers.mu.Unlock()
	if helpers.play[name] != nil {
		panic(fmt.Sprintf("testkit: helper %q is there twice", name))
	}
	helpers.play[name] = play
	return name
}

// Command returns the command that plays a helper with the given arguments, which it finds in os.Args[1:]. The process
// is killed when the test ends; waiting for it is up to the caller.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	helpers.mu.Lock()
	defer helpers.mu.Unlock()
	if helpers.play[name] == nil {
		t.Fatalf("testkit: there is no helper %q", name)
	}
	helpers.used[name] = true
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), helperVariable+"="+name)
	return cmd
}

// playHelper plays the helper that this process is, if it is one, and exits.
func playHelper() {
	name, ok := os.LookupEnv(helperVariable)
	if !ok {
		return
	}
	_ = os.Unsetenv(helperVariable) // its own children are no helpers
	helpers.mu.Lock()
	play := helpers.play[name]
	helpers.mu.Unlock()
	if play == nil {
		fmt.Fprintf(os.Stderr, "testkit: there is no helper %q\n", name)
		os.Exit(2)
	}
	play()
	os.Exit(0)
}

func unusedHelpers() []string {
	helpers.mu.Lock()
	defer helpers.mu.Unlock()
	var unused []string
	for name := range helpers.play {
		if !helpers.used[name] {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	return unused
}

// wholeRun reports whether all tests were asked for.
func wholeRun() bool {
	for name, all := range map[string]string{"test.run": "", "test.skip": "", "test.list": "", "test.short": "false"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != all {
			return false
		}
	}
	return true
}
