package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
)

var (
	upper = executor.Define("example.upper", func(_ context.Context, s string) (string, error) {
		return strings.ToUpper(s), nil
	})
	divide = executor.Define("example.divide", func(_ context.Context, n int) (int, error) {
		return 12 / n, nil
	})
)

func Example() {
	ctx := context.Background()
	x, err := executor.New(executor.Options{MaxWorkers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Shutdown(ctx) //nolint:errcheck // there is nothing left to do then

	f, err := upper.Submit(ctx, x, "one")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Result(ctx))
	// Output: ONE <nil>
}

func ExampleMap() {
	ctx := context.Background()
	x, err := executor.New(executor.Options{MaxWorkers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Shutdown(ctx) //nolint:errcheck // there is nothing left to do then

	for item := range executor.Map(ctx, x, divide, slices.Values([]int{1, 0, 3})) {
		var panicked *supervisor.PanicError
		if errors.As(item.Err, &panicked) {
			fmt.Println(item.In, "failed:", panicked.Value)
			continue
		}
		fmt.Println(item.In, item.Out)
	}
	// Output:
	// 1 12
	// 0 failed: runtime error: integer divide by zero
	// 3 4
}

func ExampleReusable() {
	ctx := context.Background()
	o := executor.Options{Name: "example", MaxWorkers: 2}
	for range 2 {
		lease, err := executor.Reusable(ctx, o)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.Reason())
		lease.Release()
	}
	o.MaxWorkers = 4
	lease, err := executor.Reusable(ctx, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Reason())
	_ = lease.KillWorkers()
	// Output:
	// new
	// reused
	// resized
}

// dictionary stands for something that takes long to load.
type dictionary map[string]string

func (d dictionary) lookUp(_ context.Context, word string) (string, error) {
	if meaning, ok := d[word]; ok {
		return meaning, nil
	}
	return "", fmt.Errorf("no such word: %s", word)
}

var (
	loadDictionary = supervisor.DefineWith("example.dictionary", func(_ context.Context, language string) (dictionary, error) {
		return dictionary{"worker": "one who works, in " + language}, nil
	})
	lookUp = executor.Method("example.lookUp", loadDictionary.With("English"), dictionary.lookUp)
)

func ExampleMethod() {
	ctx := context.Background()
	x, err := executor.New(executor.Options{MaxWorkers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Shutdown(ctx) //nolint:errcheck // there is nothing left to do then

	for item := range executor.Map(ctx, x, lookUp, slices.Values([]string{"worker", "wroker"})) {
		fmt.Println(item.Out, item.Err)
	}
	// Output:
	// one who works, in English <nil>
	//  executor: task "example.lookUp" (worker 0): no such word: wroker
}
