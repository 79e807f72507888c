//go:build linux || darwin

package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/workerlink/supervisor"
)

// Crasher is not to be trusted.
type Crasher struct{}

// Pid is that of the process in which it lives.
func (*Crasher) Pid() int { return os.Getpid() }

// Crash ends that process.
func (*Crasher) Crash(code int) { os.Exit(code) }

var newCrasher = supervisor.Define("example.Crasher",
	func(context.Context) (*Crasher, error) { return &Crasher{}, nil })

func ExampleExitError() {
	ctx := context.Background()
	sup, _ := supervisor.New(supervisor.Process)
	id, _ := sup.Register(ctx, newCrasher)
	if err := sup.StartLink(ctx); err != nil { // main, or TestMain, has called supervisor.Init
		fmt.Println(err)
		return
	}
	defer sup.Close()
	_, err := supervisor.Call[int](ctx, sup, id, "Crash", 7)
	var exit *supervisor.ExitError
	if errors.As(err, &exit) {
		fmt.Println("the worker exited with code", exit.Code)
	}
	pid, err := supervisor.Call[int](ctx, sup, id, "Pid") // of its next life
	fmt.Println(pid != exit.Pid, pid != os.Getpid(), err)
	// Output:
	// the worker exited with code 7
	// true true <nil>
}

func ExampleProc() {
	ctx := context.Background()
	sup, _ := supervisor.New(supervisor.Process)
	id, _ := sup.Register(ctx, newLookup, supervisor.Proc{Env: []string{"COLOUR=blue"}, CleanEnv: true})
	if err := sup.StartLink(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer sup.Close()
	fmt.Println(supervisor.Call[string](ctx, sup, id, "Get", "COLOUR"))
	// Output: blue <nil>
}

// Lookup reads the environment of its process.
type Lookup struct{}

// Get returns a variable.
func (*Lookup) Get(name string) string { return os.Getenv(name) }

var newLookup = supervisor.Define("example.Lookup",
	func(context.Context) (*Lookup, error) { return &Lookup{}, nil })
