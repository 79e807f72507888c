package supervisor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/workerlink/supervisor"
)

// Greeter is an ordinary type. Its exported methods are what a child can be asked for.
type Greeter struct{ Greeting string }

// Greet returns a greeting.
func (g *Greeter) Greet(name string) string { return g.Greeting + ", " + name }

// Factories have names, so that a worker process, which is this binary run again, finds them.
var newGreeter = supervisor.DefineWith("example.Greeter",
	func(_ context.Context, greeting string) (*Greeter, error) { return &Greeter{greeting}, nil })

func Example() {
	ctx := context.Background()
	sup, err := supervisor.New(supervisor.Goroutine) // or supervisor.Process: nothing else changes
	if err != nil {
		log.Fatal(err)
	}
	id, err := sup.Register(ctx, newGreeter.With("Hello"))
	if err != nil {
		log.Fatal(err)
	}
	if err := sup.StartLink(ctx); err != nil { // every child is ready, or none
		log.Fatal(err)
	}
	text, err := supervisor.Call[string](ctx, sup, id, "Greet", "world")
	fmt.Println(text, err)
	fmt.Println(sup.Shutdown(ctx))
	// Output:
	// Hello, world <nil>
	// <nil>
}
