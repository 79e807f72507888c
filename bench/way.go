package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/workerlink/supervisor"
)

// A Way is one way to call a worker.
type Way struct {
	Name string

	// Open makes so many workers, which live until [Pool.Close].
	Open func(workers int) (Pool, error)
}

// A Pool is the workers of one [Way].
type Pool interface {
	// Caller returns what one goroutine calls, any number of times, to add d on
	// the given worker. It returns the worker's new sum.
	Caller(worker int) func(d int) (int, error)

	// Close ends the workers and waits for them. No call may be in flight.
	Close() error
}

// Ways returns all ways. The first is what the times of a call are compared
// with, the second what the throughputs are.
func Ways() []Way {
	return []Way{
		{Name: "channels, no library", Open: openChannels},
		{Name: "net/rpc over pipes", Open: openRPC},
		{Name: "supervisor.Call, goroutine", Open: func(n int) (Pool, error) { return openSupervisor(supervisor.Goroutine, n) }},
		{Name: "supervisor.Call, process", Open: func(n int) (Pool, error) { return openSupervisor(supervisor.Process, n) }},
	}
}

// Init is the first line of a program that measures: in a worker process of
// any of the ways it serves and never returns.
func Init() {
	supervisor.Init()
	if os.Getenv(rpcMarker) == "" {
		return
	}
	if err := serveRPC(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// closers ends several parts and joins their errors.
func closers(parts ...func() error) error {
	var errs []error
	for _, end := range parts {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// Counter is the object of every worker.
type Counter struct{ n int }

// Add adds d and returns the sum.
func (c *Counter) Add(d int) int { c.n += d; return c.n }

var newCounter = supervisor.Define("supervisor/bench.Counter",
	func(context.Context) (*Counter, error) { return new(Counter), nil })
