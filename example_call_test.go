package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
)

func ExampleCall() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the call's own limit
	defer cancel()
	sup := running(supervisor.Goroutine, 100)
	defer sup.Close()
	balance, err := supervisor.Call[int](ctx, sup, 0, "Withdraw", 30)
	fmt.Println(balance, err)
	_, err = supervisor.Call[int](ctx, sup, 0, "Withdraw", "thirty") // checked before anything is sent
	fmt.Println(errors.Is(err, supervisor.ErrBadArgs))
	// Output:
	// 70 <nil>
	// true
}

func ExampleGo() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 1, 2)
	defer sup.Close()
	first := supervisor.Go[int](ctx, sup, 0, "Deposit", 10)
	second := supervisor.Go[int](ctx, sup, 1, "Deposit", 10) // both are under way
	fmt.Println(first.Result(ctx))
	fmt.Println(second.Result(ctx))
	// Output:
	// 11 <nil>
	// 12 <nil>
}

func ExampleBroadcast() {
	sup := running(supervisor.Goroutine, 5, 50, 500)
	defer sup.Close()
	results, err := supervisor.Broadcast[int](context.Background(), sup, "Withdraw", 20)
	for _, r := range results {
		fmt.Println(r.ProcID, r.Value, errors.Is(r.Err, ErrOverdrawn))
	}
	fmt.Println(errors.Is(err, ErrOverdrawn)) // joins those of the results
	// Output:
	// 0 0 true
	// 1 30 false
	// 2 480 false
	// true
}

func ExampleGetChildAttr() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 7, 8)
	defer sup.Close()
	fmt.Println(supervisor.GetChildAttr[int](ctx, sup, 0, "Balance"))
	all, err := supervisor.GetAttr[int](ctx, sup, "Balance")
	fmt.Println(all, err)
	// Output:
	// 7 <nil>
	// [{0 7 <nil>} {1 8 <nil>}] <nil>
}

func ExampleCallError() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	sup := running(supervisor.Goroutine, 3)
	defer sup.Close()
	for _, method := range []string{"Audit", "Missing", "Wait"} {
		_, err := supervisor.Call[int](ctx, sup, 0, method)
		var call *supervisor.CallError // every verdict that is not a value
		if !errors.As(err, &call) {
			continue
		}
		var panicked *supervisor.PanicError
		switch {
		case errors.As(err, &panicked):
			fmt.Println(call.Method, "panicked:", panicked.Value)
		case errors.Is(err, supervisor.ErrTimeout):
			fmt.Println(call.Method, "took too long")
		default:
			fmt.Println(call.Method, "was surely not executed:", call.Unexecuted)
		}
	}
	// Output:
	// Audit panicked: the books do not balance
	// Missing was surely not executed: true
	// Wait took too long
}

// Meeting is over when everybody has come.
type Meeting struct{ everybody sync.WaitGroup }

// Join waits for the others.
func (m *Meeting) Join() { m.everybody.Done(); m.everybody.Wait() }

func ExampleWithConcurrency() {
	ctx := context.Background()
	meeting := &Meeting{}
	meeting.everybody.Add(3)
	sup, _ := supervisor.New(supervisor.Goroutine)
	id, _ := sup.Register(ctx, supervisor.Object(meeting), supervisor.WithConcurrency(3))
	_ = sup.StartLink(ctx)
	defer sup.Close()
	var reqs []supervisor.SendPayload
	for range 3 { // one at a time, as is the default, they would wait for ever
		reqs = append(reqs, supervisor.NewSendPayload(id, "Join"))
		_ = sup.Send(ctx, reqs[len(reqs)-1])
	}
	replies, err := sup.RecvAll(ctx, reqs)
	fmt.Println(len(replies), err)
	// Output: 3 <nil>
}
