// Command quickstart calls a counter in a worker process, by payload and typed.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/workerlink/supervisor"
)

// Counter is an ordinary type: its exported methods are what can be called.
type Counter struct{ N int }

// Add adds d and returns the sum.
func (c *Counter) Add(d int) int { c.N += d; return c.N }

// Factories have names, so that a worker process (this binary, run again) finds them.
var newCounter = supervisor.DefineWith("quickstart.Counter",
	func(_ context.Context, start int) (*Counter, error) { return &Counter{N: start}, nil })

func main() {
	supervisor.Init() // first line: in a worker process it serves and never returns
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	sup, err := supervisor.New(supervisor.Process) // or supervisor.Goroutine
	if err != nil {
		return err
	}
	id, err := sup.Register(ctx, newCounter.With(10))
	if err != nil {
		return err
	}
	if err := sup.StartLink(ctx); err != nil { // every child ready, or none
		return err
	}
	defer sup.Shutdown(context.Background())

	req := supervisor.NewSendPayload(id, "Add", 5) // by payload, as in DI-engine
	if err := sup.Send(ctx, req); err != nil {
		return err
	}
	replies, err := sup.RecvAll(ctx, []supervisor.SendPayload{req})
	if err != nil {
		return err
	}
	n, err := supervisor.Call[int](ctx, sup, id, "Add", 5) // typed
	fmt.Println(replies[0].Data, n)
	return err
}
