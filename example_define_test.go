package supervisor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/workerlink/supervisor"
)

// Clock counts ticks.
type Clock struct{ ticks int }

// Tick returns how many ticks there were.
func (c *Clock) Tick() int { c.ticks++; return c.ticks }

// A factory without an argument, in a package variable: a worker finds it before main runs.
var newClock = supervisor.Define("example.Clock",
	func(context.Context) (*Clock, error) { return &Clock{}, nil })

func ExampleDefine() {
	ctx := context.Background()
	sup, _ := supervisor.New(supervisor.Goroutine)
	id, _ := sup.Register(ctx, newClock)
	_ = sup.StartLink(ctx)
	for range 2 {
		fmt.Println(supervisor.Call[int](ctx, sup, id, "Tick"))
	}
	fmt.Println(sup.Shutdown(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// <nil>
}

// A factory that can fail, and looks at how it was configured.
var newLimited = supervisor.DefineWith("example.Limited",
	func(_ context.Context, balance int) (*Account, error) {
		if balance < 0 {
			return nil, fmt.Errorf("a balance of %d: %w", balance, ErrOverdrawn)
		}
		return &Account{balance}, nil
	})

func ExampleDefineWith() {
	ctx := context.Background()
	sup, _ := supervisor.New(supervisor.Goroutine)
	_, _ = sup.Register(ctx, newLimited.With(10))
	_, _ = sup.Register(ctx, newLimited.With(-1), supervisor.WithName("debtor"))
	err := sup.StartLink(ctx) // all or none
	fmt.Println(err)
	fmt.Println(errors.Is(err, ErrOverdrawn))
	// Output:
	// supervisor: child 1 ("debtor") did not start: a balance of -1: example: overdrawn
	// true
}

func ExampleObject() {
	ctx := context.Background()
	account := &Account{Balance: 5}
	sup, _ := supervisor.New(supervisor.Goroutine)
	id, _ := sup.Register(ctx, supervisor.Object(account)) // a goroutine child shares it by reference
	_ = sup.StartLink(ctx)
	fmt.Println(supervisor.Call[int](ctx, sup, id, "Deposit", 10))
	_ = sup.Shutdown(ctx)
	fmt.Println(account.Balance)
	// Output:
	// 15 <nil>
	// 15
}

func ExampleRegisterError() {
	// A package variable or an init function has called
	//	supervisor.RegisterError("example.ErrOverdrawn", ErrOverdrawn)
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 3)
	defer sup.Close()
	_, err := supervisor.Call[int](ctx, sup, 0, "Withdraw", 10)
	fmt.Println(errors.Is(err, ErrOverdrawn)) // also if the child is a process
	var remote *supervisor.RemoteError
	if errors.As(err, &remote) {
		fmt.Println(remote.Text)
	}
	// Output:
	// true
	// balance 3: example: overdrawn
}
