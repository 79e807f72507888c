package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/workerlink/supervisor"
)

func ExampleSupervisor_Restart() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 10)
	defer sup.Close()
	fmt.Println(supervisor.Call[int](ctx, sup, 0, "Deposit", 5))
	fmt.Println(sup.Restart(ctx, 0)) // a new life, and a new object from the same factory
	fmt.Println(supervisor.Call[int](ctx, sup, 0, "Deposit", 5))
	// Output:
	// 15 <nil>
	// <nil>
	// 15 <nil>
}

func ExampleSupervisor_Serve() {
	// Serve fits what runs services: an errgroup, a tree of suture services.
	ctx, cancel := context.WithCancel(context.Background())
	sup, _ := supervisor.New(supervisor.Goroutine)
	id, _ := sup.Register(ctx, newAccount.With(1))
	_ = sup.StartLink(ctx)
	var group sync.WaitGroup
	group.Go(func() { fmt.Println("served:", sup.Serve(ctx)) })
	fmt.Println(supervisor.Call[int](ctx, sup, id, "Deposit", 1))
	cancel() // the end of ctx is an orderly one
	group.Wait()
	// Output:
	// 2 <nil>
	// served: <nil>
}

func ExampleWithEvents() {
	ctx := context.Background()
	show := func(e supervisor.Event) { // on a goroutine of its own, one at a time
		fmt.Println(e.Kind, e.Name)
	}
	sup, _ := supervisor.New(supervisor.Goroutine, supervisor.WithEvents(show))
	id, _ := sup.Register(ctx, newAccount.With(1), supervisor.WithName("savings"))
	_ = sup.StartLink(ctx)
	_ = sup.Restart(ctx, id)
	_ = sup.Shutdown(ctx)
	// Output:
	// started savings
	// stopped savings
	// started savings
	// stopped savings
	// shutdown
}

func ExampleSupervisor_Snapshot() {
	sup := running(supervisor.Goroutine, 1)
	defer sup.Close()
	s := sup.Snapshot()
	fmt.Println(s.Running, len(s.Children), s.Children[0].Kind, s.Children[0].State)
	load, err := json.Marshal(s.Children[0].Load) // it is plain data
	fmt.Println(string(load), err)
	// Output:
	// true 1 goroutine up
	// {"queued":0,"in_flight":0,"late":0} <nil>
}

// echo is a kind of child of its own: each life answers with what it was sent.
type echo struct{}

// Start begins a life.
func (echo) Start(_ context.Context, life *supervisor.Life) (supervisor.Link, error) {
	return &echoLink{life: life, done: make(chan struct{})}, nil
}

// echoLink is one life.
type echoLink struct {
	life *supervisor.Life
	once sync.Once
	done chan struct{}
}

// Submit answers at once. A kind that does not would answer later, from wherever its work is done.
func (l *echoLink) Submit(r *supervisor.Request) error {
	l.life.Reply(r, fmt.Sprint(r.Method, r.Args), nil)
	return nil
}

// Stop ends the life.
func (l *echoLink) Stop(context.Context) error { l.once.Do(func() { close(l.done) }); return nil }

// Wait waits for its end.
func (l *echoLink) Wait() error { <-l.done; return nil }

func ExampleChild() {
	ctx := context.Background()
	sup, _ := supervisor.New(supervisor.Goroutine)
	id, _ := sup.RegisterChild(ctx, echo{})
	_ = sup.StartLink(ctx)
	fmt.Println(supervisor.Call[string](ctx, sup, id, "Anything", 1, "two"))
	fmt.Println(sup.Shutdown(ctx))
	// Output:
	// Anything[1 two] <nil>
	// <nil>
}
