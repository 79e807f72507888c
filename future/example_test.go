package future_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor/future"
)

func Example() {
	f, r := future.New[int]()
	go func() { r.Resolve(42) }()

	n, err := f.Result(context.Background())
	fmt.Println(n, err)
	// Output: 42 <nil>
}

func ExampleFuture_Result() {
	f, r := future.New[string]()
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()

	_, err := f.Result(ctx)
	fmt.Println(err, errors.Is(err, context.DeadlineExceeded))

	r.Resolve("late, but not lost")
	fmt.Println(f.Result(ctx))
	// Output:
	// supervisor: timeout true
	// late, but not lost <nil>
}

func ExampleResolver_OnCancel() {
	f, r := future.New[int]()
	ctx, cancel := context.WithCancel(context.Background())
	r.OnCancel(cancel)
	go func() {
		<-ctx.Done() // the work sees that nobody wants it
		r.Reject(future.ErrCanceled)
	}()

	f.Cancel()
	<-f.Done()
	fmt.Println(f.Err())
	// Output: supervisor: canceled
}
